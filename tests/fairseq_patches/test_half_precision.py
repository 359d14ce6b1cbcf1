"""--bf16 on a CPU: weights in float32, products in bfloat16."""

from types import SimpleNamespace

import pytest
import torch

from docnmt_fairseq.fairseq_patches.checkpoints import MASTER_WEIGHTS
from docnmt_fairseq.native import cpu
from tests.support import toy
from tests.support.architectures import ARCHITECTURES

NARROW = ["--context-top-t", "2", "--context-top-t-anneal-start", "3", "--selection-loss", "1"]
NARROW += ["--selection-loss-phase", "dense"]
FAMILIES = {
    "conditional": NARROW,
    "tree": [*NARROW, "--tree-order", "keys", "--tree-merge", "average"],
}
ROUNDING = 2**-7  # of a bfloat16, relative: the losses of a few updates from one start


@pytest.mark.parametrize(
    ("mechanism", "mode"),
    [("conditional", "--bf16"), pytest.param("tree", "--memory-efficient-bf16", marks=pytest.mark.slow)],
)
def test_mechanisms_learn(data_bin, tmp_path, mechanism, mode):
    fixed = ["--context-attention", mechanism, "--max-update", "5", *FAMILIES[mechanism]]
    half, full = (
        toy.train(data_bin, tmp_path / name, *fixed, *extra) for name, extra in (("half", [mode]), ("full", []))
    )
    learnt, exact = (torch.load(one, weights_only=True)["model"] for one in (half, full))
    assert learnt.keys() == exact.keys()
    assert all(value.isfinite().all() for value in learnt.values())
    assert toy.validate(data_bin, half) == pytest.approx(toy.validate(data_bin, full), rel=4 * ROUNDING)


@pytest.mark.parametrize("has_products", [False, True])
def test_warning_on_processors_that_emulate_bfloat16(data_bin, tmp_path, monkeypatch, caplog, has_products):
    monkeypatch.setattr(cpu, "capabilities", lambda: SimpleNamespace(bf16=has_products))
    toy.train(data_bin, tmp_path, "--bf16", "--max-update", "1")
    assert ("emulates bfloat16" in caplog.text) == (not has_products)


def test_resumed_training_equals_uninterrupted(data_bin, tmp_path):
    updates = ["--context-attention", "conditional", "--bf16", "--max-update"]
    whole = toy.train(data_bin, tmp_path / "whole", *updates, "6")
    toy.train(data_bin, tmp_path / "parts", *updates, "3")
    parts = toy.train(data_bin, tmp_path / "parts", *updates, "6")
    toy.assert_same_state(whole, parts, atol=0, rtol=0)
    saved = [torch.load(one, weights_only=True)["last_optimizer_state"][MASTER_WEIGHTS] for one in (whole, parts)]
    for weights, other in zip(*saved):
        assert weights.dtype == torch.float32 and torch.equal(weights, other)
    assert any((weights != weights.bfloat16()).any() for weights in saved[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(
    ("family", "mode"),
    [
        *((name, "--bf16") for name in ARCHITECTURES if not name.startswith("sources")),
        *(("conditional, block", mode) for mode in ("--fp16", "--amp", "--memory-efficient-fp16")),
    ],
)
def test_families_learn_on_a_gpu(data_bin, tmp_path, family, mode):
    architecture = ARCHITECTURES[family]
    options = [*architecture.options, "--fp16-init-scale", "4", "--optimizer", "fused_adamw", "--max-update", "4"]
    half, full = (
        toy.train(data_bin, tmp_path / name, *options, *extra, here=["--num-workers", "0"], **architecture.kind)
        for name, extra in (("half", [mode]), ("full", []))
    )
    found, expected = (toy.validation(data_bin, one, task=architecture.task)["loss"] for one in (half, full))
    assert found == pytest.approx(expected, rel=8 * ROUNDING)
