"""A training step waits for the device nowhere and moves the batch in one copy; on it the same comes out."""

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.context.conditional.kernels.pytorch import kernel
from tests.support import toy
from tests.support.counted_device import HostRead, counted
from tests.support.device import NEEDED, device, moved, on_cpu, step
from tests.support.marks import slow_except
from tests.support.variants import VARIANTS, build

pytestmark = NEEDED
QUICK = ("document_transformer_tiny", "document_rnn_tiny", "conditional block", "hierarchical sources")


@pytest.mark.parametrize("name", slow_except(QUICK, VARIANTS))
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
    """The torch kernel must know how many pairs fall on the sentences of each length: large documents, once a layer."""
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


def test_reads_are_detected():
    """The count is worth something: whatever makes the CPU wait raises."""
    reads = [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).any()),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x.unique(),
        lambda x: x.repeat_interleave(torch.ones_like(x, dtype=torch.long)),
        lambda x: torch.equal(x, x),
    ]
    with device() as there:
        x = torch.arange(4.0).to(there)
        for read in reads:
            with counted(raising=True), pytest.raises(HostRead):
                read(x)
        with counted(raising=True) as count:
            x[torch.arange(2, device=there)] + x.repeat_interleave(2)[:2].index_select(
                0, torch.tensor([0, 1]).to(there)
            )
    assert len(count.copies) == 1


def test_mixed_devices():
    with device() as there, pytest.raises(RuntimeError, match="tensors of the CPU"):
        torch.arange(4.0).to(there) + torch.ones(4)


def test_device_is_removed():
    """Or data loaders would pin memory for it, in whatever test comes later."""
    with device():
        assert torch.accelerator.is_available()
    assert not torch.accelerator.is_available() or torch.cuda.is_available()
