"""What checkpoints say of the training they are of."""

import torch


def updates(checkpoint):
    """How many a checkpoint has had."""
    return torch.load(checkpoint, weights_only=True)["optimizer_history"][-1]["num_updates"]


def best_loss(checkpoint):
    """The lowest validation loss that the training had when it saved."""
    return torch.load(checkpoint, weights_only=True)["extra_state"]["best"]


def saved(folder):
    """The place in the data that the last checkpoint of a folder holds, and its updates."""
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    return state["extra_state"]["train_iterator"], state["optimizer_history"][-1]["num_updates"]
