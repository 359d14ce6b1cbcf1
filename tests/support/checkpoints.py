"""State of the training in a checkpoint."""

import torch


def updates(checkpoint):
    """Returns the number of updates."""
    return torch.load(checkpoint, weights_only=True)["optimizer_history"][-1]["num_updates"]


def best_loss(checkpoint):
    """Returns the lowest validation loss of the training."""
    return torch.load(checkpoint, weights_only=True)["extra_state"]["best"]


def saved(folder):
    """Returns the position in the data and the updates of the last checkpoint of a folder."""
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    return state["extra_state"]["train_iterator"], state["optimizer_history"][-1]["num_updates"]
