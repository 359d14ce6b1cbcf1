"""Running mechanisms, and comparing fast paths with loop references."""

import pytest
import torch

PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-9), pytest.param(torch.float32, 1e-4, marks=pytest.mark.slow)],
    ids=["64", "32"],
)


def assert_same(fast, slow, wanted, tolerance):
    """Compares results and the gradients of some weighting of them."""
    torch.testing.assert_close(fast, slow, atol=tolerance, rtol=tolerance)
    weight = torch.linspace(-1, 1, fast.numel(), dtype=fast.dtype).view_as(fast)
    of_fast = torch.autograd.grad((fast * weight).sum(), wanted, allow_unused=True)
    of_slow = torch.autograd.grad((slow * weight).sum(), wanted, allow_unused=True)
    for tensor, a, b in zip(wanted, of_fast, of_slow):
        a, b = (torch.zeros_like(tensor) if gradient is None else gradient for gradient in (a, b))
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


def run(mechanism, x, layout):
    """Returns what tokens x get from their context; as tokens at the encoder's entrance the same x will do."""
    return mechanism(x, layout, x) if mechanism.reads_embeddings else mechanism(x, layout)


def stirred(module, dtype=torch.float64):
    """Gives every parameter a random value, so that nothing is zero by initialisation."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.5, generator=generator)
    return module.to(dtype)
