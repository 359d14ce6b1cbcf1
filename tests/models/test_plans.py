"""What a training step asks of a batch's layout: made where batches are collated, and moved in one copy."""

from dataclasses import replace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from docnmt_fairseq.batch import device
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from tests.support import toy

SOURCES = ["--extra-sources", "previous:1,next:2,random"]
OVERLAP = ["--max-document-sentences", "2", "--context-overlap", "1"]
TINY = [  # the size of all architectures of documents
    name for name, model in ARCH_MODEL_REGISTRY.items()
    if model.__module__.startswith("docnmt_fairseq") and name.endswith("_tiny") and not name.startswith("concatenation")
]  # fmt: skip
VARIANTS = {name: ["--arch", name] for name in TINY}
for _name in CONTEXT_MECHANISMS.names():
    for _placement in CONTEXT_MECHANISMS[_name].placements:
        VARIANTS[f"{_name} {_placement}"] = ["--context-attention", _name, "--context-placement", _placement]
for _name in DECODER_MECHANISMS.names():
    VARIANTS[f"{_name} in the decoder"] = ["--decoder-context-attention", _name]
for _name in TARGET_MECHANISMS.names():
    VARIANTS[f"{_name} of targets"] = ["--target-context-attention", _name]
for _name in ATTENTION_COMBINATIONS.names():
    VARIANTS[f"{_name} sources"] = [*SOURCES, "--attention-combination", _name]
VARIANTS["pieces"] = ["--context-attention", "conditional", *OVERLAP]
VARIANTS["shared encoder"] = [*SOURCES, "--attention-combination", "flat", "--extra-encoder", "shared", *OVERLAP]
VARIANTS["two recurrent layers"] = ["--arch", "document_rnn_tiny", "--decoder-layers", "2", "--encoder-layers", "2"]
VARIANTS["recurrent, flat sources"] = ["--arch", "document_rnn_tiny", *SOURCES, "--attention-combination", "flat"]


@pytest.fixture(params=VARIANTS)
def step(request, data_bin):
    """A model in training and a batch as the data loader gives it."""
    options = VARIANTS[request.param]
    arch = options[1] if options[0] == "--arch" else "document_transformer"
    extra = options[2:] if options[0] == "--arch" else options
    _, task, model = toy.build(data_bin, *extra, arch=arch, tiny=toy.TINY if "transformer" in arch else toy.TINY_RNN)
    return model.train(), toy.batch_of(task)


def test_the_collater_makes_every_plan_of_a_training_step(step, monkeypatch):
    model, batch = step
    missing = []

    def plan(layout, key):
        if key not in layout._plans:
            missing.append(key)
            layout._plans[key] = key.make(layout)
        return layout._plans[key]

    monkeypatch.setattr(DocumentLayout, "plan", plan)
    output, _ = model(**batch["net_input"])
    output.sin().sum().backward()
    assert not missing


def test_a_layout_with_its_plans_moves_in_one_copy(step, monkeypatch):
    _, batch = step
    layout, copies = batch["net_input"]["layout"], []
    move = device._move_together
    monkeypatch.setattr(device, "_move_together", lambda *given: copies.append(given) or move(*given))
    moved = layout.to(torch.device("meta"))
    assert len(copies) == 1 and layout.device.type == "cpu"
    found = tensors_of(moved)
    assert {tensor.device.type for tensor in found} == {"meta"}
    assert sorted(map(str, (tensor.shape for tensor in found))) == sorted(
        map(str, (tensor.shape for tensor in tensors_of(layout)))
    )


def tensors_of(structure):
    found = {}
    device._collect(structure, found, set())
    return list(found.values())


def test_groups_of_production_compute_the_same(step, request):
    """The tests' batches fall into more groups than they would outside of the tests."""
    model, batch = step
    layout = batch["net_input"]["layout"]
    few = model.eval()(**batch["net_input"])[0]
    request.getfixturevalue("production_price")
    anew = replace(layout, _plans={})
    many = model(**{**batch["net_input"], "layout": anew})[0]
    torch.testing.assert_close(few, many, atol=1e-5, rtol=1e-5)
