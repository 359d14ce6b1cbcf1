"""Plans of a batch's layout are made by the collater and moved in one copy."""

from dataclasses import replace

import pytest
import torch

from docnmt_fairseq.batch import transfer
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.context.conditional import attention
from docnmt_fairseq.context.conditional.kernels import base as kernel
from docnmt_fairseq.layers.auxiliary_losses import collect
from tests.support import toy
from tests.support.counted_device import counted
from tests.support.device import NEEDED, device, moved, on_cpu, step
from tests.support.marks import slow_except
from tests.support.variants import VARIANTS, build

QUICK = ("conditional block", "memory gated-feed-forward", "tree block", "flat sources", "pieces", "document_rnn_tiny")


PRESETS = {name for name in VARIANTS if name.endswith("_tiny")} - set(QUICK)  # mechanisms in their default placement


@pytest.fixture(scope="module", params=slow_except(QUICK, [name for name in VARIANTS if name not in PRESETS]))
def model_and_batch(request, data_bin):
    """Returns a model and a batch of the data loader."""
    task, model = build(request.param, data_bin)
    task.request_plans()
    return model, toy.batch_of(task)


def test_collater_makes_all_plans(model_and_batch, monkeypatch):
    model, batch = model_and_batch
    missing = []

    def plan(layout, key):
        if key not in layout._plans:
            missing.append(key)
            layout._plans[key] = key.make(layout)
        return layout._plans[key]

    monkeypatch.setattr(DocumentLayout, "plan", plan)
    with collect():  # auxiliary losses need plans, too
        output, _ = model.train()(**batch["net_input"])
    output.sin().sum().backward()
    assert not missing


def test_layout_moves_in_one_copy(model_and_batch, monkeypatch):
    _, batch = model_and_batch
    layout, copies = batch["net_input"]["layout"].gathered(), []
    copied = transfer._copied
    monkeypatch.setattr(transfer, "_copied", lambda *given: copies.append(given) or copied(*given))
    monkeypatch.setattr(transfer, "_packed", None)
    moved = layout.to(torch.device("meta"))
    assert len(copies) == 1 and layout.device.type == "cpu"
    found = tensors_of(moved)
    assert {tensor.device.type for tensor in found} == {"meta"}
    assert sorted(map(str, (tensor.shape for tensor in found))) == sorted(
        map(str, (tensor.shape for tensor in tensors_of(layout)))
    )


def tensors_of(structure):
    found = {}
    transfer._collect(structure, found, set())
    return list(found.values())


@pytest.mark.parametrize("name", QUICK)
def test_result_is_independent_of_groups(data_bin, name, request):
    """Batches of tests are divided into more groups than others."""
    task, model = build(name, data_bin)
    batch = toy.batch_of(task)
    layout = batch["net_input"]["layout"]
    few = model.eval()(**batch["net_input"])[0]
    request.getfixturevalue("production_price")
    again = replace(layout, _plans={})
    many = model(**{**batch["net_input"], "layout": again})[0]
    torch.testing.assert_close(few, many, atol=1e-5, rtol=1e-5)


def test_plans_are_requested_when_batches_are_made(data_bin, monkeypatch):
    """A model for a GPU is built on the CPU, but needs no compiled kernels for CPUs."""
    with monkeypatch.context() as patch:
        patch.setattr(attention, "kernel_for", lambda *_: pytest.fail("a kernel was asked for"))
        _, task, _ = toy.build(data_bin, "--context-attention", "conditional", "--context-top-t", "2")
        task.load_dataset("test")
    assert not task.dataset("test").plans
    lines = [torch.tensor([5, 2]), torch.tensor([6, 7, 2])]
    assert task.documents_in_memory(lines).plans == task.plans and len(task.plans) > 3
    task.get_batch_iterator(task.dataset("test"), max_tokens=100)
    assert task.dataset("test").plans == task.plans


ON_DEVICE = ("document_transformer_tiny", "document_rnn_tiny", "conditional block", "hierarchical sources")
OTHERS = (
    "memory gated-feed-forward",
    "tree block",
    "han of targets",
    "ca-att in the decoder",
    "selection loss",
    "pieces",
)


@NEEDED
@pytest.mark.parametrize("name", slow_except(ON_DEVICE, ON_DEVICE + OTHERS))
def test_training_step_never_waits_for_the_device(name, data_bin):
    """It moves the batch in one copy and computes the same there."""
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


@NEEDED
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
