"""Updates of all parameters at once: as fairseq's, in a number of operations that does not grow with theirs."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim import fp16_optimizer
from omegaconf import OmegaConf

import docnmt_fairseq
from tests.support.counted_device import Operations
from tests.support.unchanged import unchanged

docnmt_fairseq.register()
SHAPES = [(7, 5), (3,), (2, 2, 2), (1,)]
KINDS = {"bf16": (torch.bfloat16, False), "fp16": (torch.float16, True), "fp16, one by one": (torch.float16, False)}


def optimizer_of(cls, dtype, flat, shapes=SHAPES, name="adam"):
    generator = torch.Generator().manual_seed(2)
    parameters = [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.bf16, cfg.common.fp16 = dtype == torch.bfloat16, dtype == torch.float16
    cfg.common.fp16_no_flatten_grads, cfg.optimization.update_freq = not flat, [1]
    cfg.optimizer = {"_name": name, "lr": [0.01], "adam_betas": "(0.9, 0.98)"}
    return cls.build_optimizer(cfg, parameters)


def give_gradients(optimizer, number):
    """As a backward pass does: by the number of the step; one parameter has none by turns."""
    generator = torch.Generator().manual_seed(number)
    for place, parameter in enumerate(optimizer.fp16_params):
        gradient = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
        parameter.grad = None if place == 1 and number % 2 else gradient
    optimizer._needs_sync = True


def tensors_of(optimizer):
    full = optimizer.fp32_params
    full = list(full.values()) if isinstance(full, dict) else full
    return [*optimizer.fp16_params, *full, *(tensor.grad for tensor in full)]


def update(optimizer):
    optimizer.multiply_grads(torch.tensor(0.5))
    norm = optimizer.clip_grad_norm(1.0)
    optimizer.step()
    return norm


@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_fairseqs_to_the_bit(monkeypatch, kind):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)  # the index of the CPU
    fairseqs = unchanged(fp16_optimizer).FP16Optimizer
    assert fairseqs.step is not fp16_optimizer.FP16Optimizer.step
    ours, theirs = optimizer_of(fp16_optimizer.FP16Optimizer, *KINDS[kind]), optimizer_of(fairseqs, *KINDS[kind])
    for number in range(6):
        for optimizer in (ours, theirs):
            if number != 5:  # whose second parameter had a gradient before and has none now
                optimizer.zero_grad()
            if number != 3:  # in which a batch was left out: the step is one by gradients of zero
                give_gradients(optimizer, number)
        assert all(map(torch.equal, tensors_of(ours), tensors_of(theirs)))
        assert torch.equal(update(ours), update(theirs))
        assert all(map(torch.equal, tensors_of(ours), tensors_of(theirs)))
    assert all(half.grad is None or half.grad.isfinite().all() for half in ours.fp16_params)


def test_what_is_not_trained_stays():
    optimizer = optimizer_of(fp16_optimizer.FP16Optimizer, torch.bfloat16, False)
    optimizer.fp16_params[0].requires_grad_(False)
    optimizer.fp32_params[0].data += 1  # would show
    before = optimizer.fp16_params[0].clone()
    give_gradients(optimizer, 0)
    update(optimizer)
    assert torch.equal(optimizer.fp16_params[0], before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_the_norm_is_fairseqs_to_the_bit(monkeypatch, dtype):
    generator = torch.Generator().manual_seed(2)
    holders = [SimpleNamespace(grad=torch.randn(shape, generator=generator).to(dtype)) for shape in SHAPES]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    expected = unchanged(utils).clip_grad_norm_(holders, 0)
    assert torch.equal(utils.clip_grad_norm_(holders, 0), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_operations_do_not_grow_with_the_parameters(monkeypatch, kind):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    counts = []
    for shapes in (SHAPES, SHAPES * 20):
        optimizer = optimizer_of(fp16_optimizer.FP16Optimizer, *KINDS[kind], shapes, "fused_adamw")
        for _ in range(2):  # in the first the moments are made
            optimizer.zero_grad()
            give_gradients(optimizer, 0)
            with Operations() as operations:
                update(optimizer)
                optimizer.zero_grad()
        counts.append(operations.count)
    assert counts[0] == counts[1] < 40
