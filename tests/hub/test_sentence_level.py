"""Sentence-level part of document models."""

from pathlib import Path

import pytest

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from tests.support import toy

CONTEXT = ["--context-attention", "conditional"]


def sentence_level(prepared, *options, without_context=False):
    """Returns the sentence-level part of an untrained model."""
    _, task, model = toy.build(prepared / "data-bin", *options)
    return SentenceTransformer.of(Ensemble(task, [model], paths=[Path("model.pt")]), "an engine", without_context)


def test_number_of_positions(prepared):
    found = sentence_level(prepared, "--max-source-positions=5000", "--max-target-positions=80")
    assert [len(found.positions(side)) for side in ("encoder", "decoder")] == [4096, 80]
    found = sentence_level(prepared, "--word-positions", "learned", "--max-source-positions", "5000")
    assert found.positions("encoder").shape == (5000, 8)


@pytest.mark.parametrize("options", [[], CONTEXT])
def test_all_parameters_but_those_of_context_must_be_exported(prepared, options):
    found = sentence_level(prepared, *options, without_context=True)
    with pytest.raises(InputError):
        found.check_all_taken("an engine")
    inside = [name for name in found.parameters if ".context." not in name]
    for name in inside:
        found.array(name)
    found.check_all_taken("an engine")
    assert (len(inside) < len(found.parameters)) == bool(options)


@pytest.mark.parametrize("options, hint", [([], True), (["--sentence-positions", "learned"], False)])
def test_without_context_is_suggested(prepared, options, hint):
    with pytest.raises(InputError) as error:
        sentence_level(prepared, *CONTEXT, *options)
    assert ("--without-context" in str(error.value)) == hint
