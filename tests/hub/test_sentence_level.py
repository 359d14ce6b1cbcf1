"""Sentence-level part of document models."""

import json
from pathlib import Path

import pytest

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import TrainedModel, export, size_of
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from tests.support import toy

CONTEXT = ["--context-attention", "conditional"]


def sentence_level(prepared, *options, without_context=False):
    """Returns the sentence-level part of an untrained model."""
    _, task, model = toy.build(prepared / "data-bin", *options)
    trained = TrainedModel(Ensemble(task, [model], paths=[Path("model.pt")]), without_context)
    return SentenceTransformer.of(trained, "an engine")


@pytest.mark.parametrize("limit, number", [(70, 70), (5000, 4096)])
def test_number_of_sinusoids(prepared, limit, number):
    found = sentence_level(prepared, f"--max-source-positions={limit}", "--max-target-positions=80")
    assert [len(found.positions(side)) for side in ("encoder", "decoder")] == [number, 80]


def test_learned_positions_are_complete(prepared):
    found = sentence_level(prepared, "--word-positions", "learned", "--max-source-positions", "5000")
    assert found.positions("encoder").shape == (5000, 8)


@pytest.mark.parametrize("options", [[], CONTEXT])
def test_required_options_without_context(prepared, options):
    found = sentence_level(prepared, *options, without_context=True)
    with pytest.raises(InputError):
        found.check_all_taken("an engine")
    found.array(*(name for name in found.parameters() if name.endswith("embed_tokens.weight")))
    inside = [name for name in found.parameters() if ".context." not in name]
    for name in inside:
        found.array(name)
    found.check_all_taken("an engine")
    assert (len(inside) < len(found.parameters())) == bool(options)


@pytest.mark.parametrize("options, hint", [([], True), (["--sentence-positions", "learned"], False)])
def test_without_context_is_suggested(prepared, options, hint):
    with pytest.raises(InputError) as error:
        sentence_level(prepared, *CONTEXT, *options)
    assert ("--without-context" in str(error.value)) == hint


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_export_marker_and_size(trained, prepared, tmp_path, precision):
    folder = tmp_path / "model"
    export(str(trained()), folder, "huggingface", precision, data=prepared)
    found = json.loads((folder / "docnmt_export.json").read_text())
    assert (found["format"], found["precision"]) == ("huggingface", precision)
    assert found["written_by"].startswith("docnmt_fairseq ")
    before = size_of(folder)
    (folder / "text").mkdir()
    (folder / "text" / "file").write_bytes(b"12345")
    assert size_of(folder) == before + 5
