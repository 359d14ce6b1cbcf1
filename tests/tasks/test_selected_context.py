"""Mechanisms with selected context sentences and a gate, end to end."""

import pytest

from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import IDS, text_of, write_lines

SEARCH = ["--beam", "2", "--max-len-b", "10"]


def train(data_bin, folder, *options):
    return toy.train(data_bin, folder, "--max-update", "4", "--context-init", "xavier", *options)


@pytest.fixture(scope="module", params=["memory", pytest.param("context-aware", marks=pytest.mark.slow), "han"])
def checkpoint(request, data_bin, tmp_path_factory):
    """Returns a model that looks at two other sentences of the document, chosen at random."""
    options = ["--context-attention", request.param, "--context-sentences", "2", "--context-selection", "random"]
    return train(data_bin, tmp_path_factory.mktemp(request.param), *options)


def test_translations_do_not_depend_on_batch_and_seed(data_bin, checkpoint):
    together = toy.generate(data_bin, checkpoint, *SEARCH).hypotheses
    assert toy.generate(data_bin, checkpoint, *SEARCH, "--max-tokens", "25", "--seed", "5").hypotheses == together
    assert sorted(together) == IDS


@pytest.mark.slow
def test_context_from_the_training_set(data_bin, tmp_path):
    options = ["--context-selection", "training-set", "--context-sentences", "2"]
    trained = train(data_bin, tmp_path, "--context-attention", "memory", *options)
    together = toy.generate(data_bin, trained, *SEARCH).hypotheses
    assert sorted(together) == IDS
    assert toy.generate(data_bin, trained, *SEARCH, "--max-tokens", "25", "--seed", "5").hypotheses == together
    without = toy.generate(data_bin, trained, *SEARCH, "--context", "none").hypotheses
    assert 6 in {number for number in IDS if together[number] != without[number]}  # a document of one sentence, too
    source = [" ".join(line) for line in text_of("test")[0]]
    write_lines(tmp_path / "input", source)
    typed = toy.interactive(data_bin, trained, tmp_path / "input", *SEARCH).hypotheses
    assert [typed[number] for number in sorted(typed)] == [together[number] for number in IDS]
    search, prepared = SearchOptions(beam=2, max_len_b=10), toy.as_prepared(data_bin, tmp_path / "prepared")
    translator = DocumentTranslator.from_checkpoint(trained, data=prepared, cpu=True, search=search)
    found = translator.translate([source])[0]
    assert [found[number] for number in IDS] == [together[number][0] for number in IDS]


def test_context_is_used(data_bin, checkpoint):
    with_context = toy.generate(data_bin, checkpoint, *SEARCH).hypotheses
    without = toy.generate(data_bin, checkpoint, *SEARCH, "--context", "none").hypotheses
    changed = {number for number in IDS if with_context[number] != without[number]}
    assert changed and 6 not in changed  # line 6 is a document of one sentence


def test_first_sentences_have_no_context(data_bin, tmp_path):
    trained = train(data_bin, tmp_path, "--context-attention", "memory")
    with_context = toy.generate(data_bin, trained, *SEARCH).hypotheses
    without = toy.generate(data_bin, trained, *SEARCH, "--context", "none").hypotheses
    changed = {number for number in IDS if with_context[number] != without[number]}
    assert changed and not changed & {0, 6, 8}


OPTIONS = [
    "--memory-rnn ca-cnn --em-steps 1 --memory-scope batch",
    "--context-sentences 3 --memory-combination parallel --memory-scope document --freeze-sentence-model",
    "--memory-without-rnn --memory-without-attention --encoder-normalize-before",
    "--context-selection next --checkpoint-activations --memory-without-attention --context-layers 0,1",
    "--attention-dropout 0.1 --activation-dropout 0.1 --dropout 0.1 --context-dropout 0.5",
]


@pytest.mark.parametrize("options", [OPTIONS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in OPTIONS[1:])])
def test_memory_options(data_bin, tmp_path, options):
    trained = train(data_bin, tmp_path, "--context-attention", "memory", *options.split())
    assert sorted(toy.generate(data_bin, trained, *SEARCH).hypotheses) == IDS
