"""Activations of the feed-forward by name: fairseq's, and swish."""

from typing import Callable

import torch.nn.functional as F
from fairseq import utils
from torch import Tensor

SWISH = "swish"  # which fairseq lists nowhere and makes a class of
ACTIVATIONS = (*utils.get_available_activation_fns(), SWISH)


def activation_of(name: str) -> Callable[[Tensor], Tensor]:
    """The activation of that name, of ``ACTIVATIONS``."""
    activation: Callable[[Tensor], Tensor] = F.silu if name == SWISH else utils.get_activation_fn(name)
    return activation
