"""A training step never waits for the device, moves the batch in one copy and computes the same there."""

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.context.conditional.kernels.pytorch import kernel
from tests.support import toy
from tests.support.counted_device import counted
from tests.support.device import NEEDED, device, moved, on_cpu, step
from tests.support.marks import slow_except
from tests.support.variants import build

pytestmark = NEEDED
QUICK = ("document_transformer_tiny", "document_rnn_tiny", "conditional block", "hierarchical sources")
OTHERS = (
    "memory gated-feed-forward",
    "tree block",
    "han of targets",
    "ca-att in the decoder",
    "selection loss",
    "pieces",
)


@pytest.mark.parametrize("name", slow_except(QUICK, QUICK + OTHERS))
def test_training_step(name, data_bin):
    task, model = build(name, data_bin)
    model.train()
    loss, gradients = step(task, model, toy.batch_of(task))
    expected = on_cpu(loss), {key: on_cpu(value) for key, value in gradients.items()}
    with device() as there:
        model.to(there)
        sample = moved(toy.batch_of(task), there)
        with counted(raising=True) as count:
            loss, gradients = step(task, model, sample)
        found = on_cpu(loss), {key: on_cpu(value) for key, value in gradients.items()}
    assert len(count.copies) == 1, count.copies
    torch.testing.assert_close(found[0], expected[0], atol=1e-4, rtol=1e-4)
    for key, gradient in found[1].items():
        torch.testing.assert_close(gradient, expected[1][key], atol=1e-3, rtol=1e-3, msg=key)


def test_remaining_synchronisations(data_bin, monkeypatch):
    """The torch kernel reads how many pairs have sentences of each length, for large documents, once per layer."""
    monkeypatch.setattr(kernel, "TOKENS_PER_PLACE", 0)
    task, model = build("conditional block", data_bin)
    with device() as there:
        model.train().to(there)
        sample = moved(toy.batch_of(task), there)
        with counted() as count:
            output, _ = model(**sample["net_input"])
        with counted(raising=True):
            output.sin().sum().backward()
    layers = sum(isinstance(module, CONTEXT_MECHANISMS["conditional"]) for module in model.modules())
    assert [name for name, _ in count.reads] == ["_to_copy"] * layers and len(count.copies) == 1
