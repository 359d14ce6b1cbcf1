"""Plans of a batch's layout are made by the collater and moved in one copy."""

import contextlib
from dataclasses import replace

import pytest
import torch
from fairseq import utils

from docnmt_fairseq.batch import transfer
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional import attention
from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from docnmt_fairseq.layers.auxiliary_losses import collect
from docnmt_fairseq.tasks.auxiliary_losses import with_auxiliary_losses
from tests.support import toy
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


@pytest.mark.parametrize("name", [*ON_DEVICE, *OTHERS])
def test_training_step_never_reads_the_device(name, data_bin, monkeypatch):
    """Tensors of the device "meta" have no values, and operations with tensors of the CPU fail."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **options: contextlib.nullcontext())  # not on that device
    task, model = build(name, data_bin)
    model.train().to("meta")
    sample = utils.apply_to_sample(lambda x: x.to("meta"), toy.batch_of(task))
    criterion = with_auxiliary_losses(DocumentLabelSmoothedCrossEntropy(task, False, 0.1))
    loss, _, _ = criterion(model, sample)
    loss.backward()
    assert loss.device.type == "meta"
