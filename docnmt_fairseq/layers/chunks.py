"""How much is computed at a time where the whole would not fit: on a CPU what its cache holds, elsewhere far more."""

import torch

NUMBERS = 2**26  # held at a time where launching an operation costs more than many numbers do


def numbers_at_a_time(device: torch.device, on_cpu: int) -> int:
    """How many numbers an intermediate result may have.

    Args:
        device: that computes.
        on_cpu: how many on a CPU, as measured.
    """
    return on_cpu if device.type == "cpu" else NUMBERS
