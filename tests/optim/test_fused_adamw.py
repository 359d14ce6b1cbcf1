"""--optimizer fused_adamw: fairseq's Adam in other kernels."""

import pytest
import torch
from fairseq.optim.adam import Adam

from docnmt_fairseq.optim.fused_adamw import MixedAdamW
from tests.support import toy

SETTING = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.1}
FUSED = ["--optimizer", "fused_adamw", "--adam-betas", "(0.9, 0.98)", "--weight-decay", "0.01"]
FUSED += ["--context-attention", "conditional", "--max-update"]


def weights(dtype):
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in ((7, 5), (3,), (2, 2, 2))]


def steps(optimizer, parameters, count, start=0):
    """Takes steps by gradients that depend on the number of the step alone; the second parameter has one by turns."""
    for number in range(start, start + count):
        generator = torch.Generator().manual_seed(number)
        for place, parameter in enumerate(parameters):
            gradient = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
            parameter.grad = None if place == 1 and number % 2 else gradient
        optimizer.step()
    return parameters


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_updates_equal_fairseq(dtype):
    ours, theirs = weights(dtype), weights(dtype)
    steps(MixedAdamW(ours, **SETTING), ours, 20)
    steps(Adam(theirs, **SETTING), theirs, 20)
    for one, other, start in zip(ours, theirs, weights(dtype)):
        assert one.dtype == dtype
        precision = {"atol": 1e-6, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-3, "rtol": 2**-8}
        torch.testing.assert_close(one, other, **precision)
        assert not torch.allclose(one, start, **precision)


@pytest.mark.parametrize("precision", [[], ["--memory-efficient-bf16"]], ids=str)
def test_resumed_training_equals_uninterrupted(data_bin, tmp_path, precision):
    options = [*FUSED[:-1], *precision, "--update-freq", "2", "--max-update"]
    whole = toy.train(data_bin, tmp_path / "whole", *options, "4")
    toy.train(data_bin, tmp_path / "parts", *options, "2")
    parts = toy.train(data_bin, tmp_path / "parts", *options, "4")
    toy.assert_same_state(whole, parts, atol=0, rtol=0)


def test_training_equals_fairseq(data_bin, tmp_path):
    ours = toy.train(data_bin, tmp_path / "ours", *FUSED, "4")
    adam = ["--optimizer", "adam", *FUSED[2:]]
    theirs = toy.train(data_bin, tmp_path / "theirs", *adam, "4")
    learnt, expected = toy.state(ours), toy.state(theirs)
    # The keys' biases, whose true gradient is zero, take whole steps by rounding alone.
    for name in (name for name in learnt if "k_proj.bias" not in name and "sentence" not in name):
        torch.testing.assert_close(learnt[name], expected[name], atol=2e-3, rtol=1e-2, msg=name)
