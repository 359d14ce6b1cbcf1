"""Context selection by similarity, end to end: the same translations from a data-bin, typed, and as plain text."""

import json
import shutil

import numpy as np
import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.data.selected_context import similar_file, vectors_file
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.report.inspection import dataset_of_lines
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import IDS, write_lines

SEARCH = ["--beam", "2", "--max-len-b", "10"]
SIMILAR = ["--context-selection", "similar", "--context-sentences", "2", "--context-init", "xavier"]
LINES = ["a b c", "d", "e e a", "<p>", "b", "", "c d", "", "a", "b", "c", "d", "e", "a b c d e a b", ""]


def write_vectors(path):
    rng = np.random.default_rng(3)
    write_lines(path, [" ".join([word, *map(str, rng.normal(size=4).round(3))]) for word in "abcd"])  # e: unknown


@pytest.fixture(scope="module")
def own_bin(data_bin, tmp_path_factory):
    """Returns the toy data-bin with its similar sentences, as an output of docnmt prepare."""
    folder = tmp_path_factory.mktemp("similar")
    shutil.copytree(data_bin, folder / "data-bin")
    options = {"source_lang": "src", "target_lang": "tgt", "tokenizer": "none", "truecase": False, "subwords": "none"}
    (folder / "manifest.json").write_text(json.dumps({"options": options}))
    write_vectors(folder / "vec")
    write_lines(folder / "corpus", LINES)
    model = ["--model", str(folder / "model.npz")]
    corpus = ["--corpus", str(folder / "corpus"), "--output", str(folder / "model.npz")]
    assert cli.main(["embed", "fit", "--vectors", str(folder / "vec"), *corpus]) == 0
    assert cli.main(["embed", "neighbours", str(folder), *model, "--sentences", "4"]) == 0
    return folder / "data-bin"


def train(own_bin, folder, *options):
    return toy.train(own_bin, folder, "--max-update", "4", *options)


@pytest.fixture(scope="module")
def checkpoint(own_bin, tmp_path_factory):
    return train(own_bin, tmp_path_factory.mktemp("checkpoint"), "--context-attention", "context-aware", *SIMILAR)


def typed(own_bin, checkpoint, folder, *options):
    """Returns the translations of the test set's lines, in order: typed one at a time they have other numbers."""
    write_lines(folder / "input", LINES)
    found = toy.interactive(own_bin, checkpoint, folder / "input", *SEARCH, *options).hypotheses
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize(
    "options",
    [
        ["--context-attention", "memory", *SIMILAR],
        pytest.param(["--context-attention", "ca-att", *SIMILAR], marks=pytest.mark.slow),
        ["--extra-sources", "similar:2"],
    ],
    ids=lambda options: options[1],
)
def test_translations_do_not_depend_on_the_batch(own_bin, tmp_path, options):
    trained = train(own_bin, tmp_path, *options)
    together = toy.generate(own_bin, trained, *SEARCH).hypotheses
    assert sorted(together) == IDS
    assert toy.generate(own_bin, trained, *SEARCH, "--max-tokens", "25").hypotheses == together
    assert typed(own_bin, trained, tmp_path) == [together[number] for number in IDS]


def test_similar_sentences_are_used(own_bin, checkpoint):
    similar = toy.generate(own_bin, checkpoint, *SEARCH).hypotheses
    without = toy.generate(own_bin, checkpoint, *SEARCH, "--context", "none").hypotheses
    overrides = ["--model-overrides", "{'context_selection': 'previous'}"]
    previous = toy.generate(own_bin, checkpoint, *SEARCH, *overrides).hypotheses
    table = np.load(similar_file(own_bin / "test.src-tgt.src"))
    for number in IDS:
        first = number in (0, 6, 8)
        assert (similar[number] == without[number]) == first
        chosen = set(table[number][table[number] > 0][:2].tolist())
        if chosen == {1, 2} or chosen == {1} or first:
            assert similar[number] == previous[number]
    assert similar != previous


def test_text_in_memory(own_bin, checkpoint, tmp_path):
    expected = toy.generate(own_bin, checkpoint, *SEARCH).hypotheses
    assert typed(own_bin, checkpoint, tmp_path, "--buffer-size", "100") == [expected[number] for number in IDS]
    search = SearchOptions(beam=2, max_len_b=10)
    translator = DocumentTranslator.from_checkpoint(checkpoint, data=own_bin.parent, cpu=True, search=search)
    found = translator.translate([LINES])[0]
    assert [found[number] for number in IDS] == [expected[number][0] for number in IDS]
    dataset = dataset_of_lines(load_ensemble(checkpoint, data=own_bin), LINES, "text")
    np.testing.assert_array_equal(dataset.similar, np.load(similar_file(own_bin / "test.src-tgt.src")))


def test_chunks_contain_their_context(own_bin):
    pieces = ["--max-document-sentences", "2", "--context-overlap", "1"]
    _, task, _ = toy.build(own_bin, "--context-attention", "memory", *SIMILAR, *pieces)
    layout = toy.batch_of(task)["net_input"]["layout"]
    of_extra_sources = np.load(similar_file(own_bin / "test.src-tgt.src"))[IDS].tolist()
    assert layout.sentences.lengths.tolist() == [2, 3, 1, 2, 3, 3]
    sentences = [0, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10]
    places = np.concatenate([np.arange(length) for length in layout.sentences.lengths])
    for sentence, place, found in zip(sentences, places, layout.similar.tolist()):
        assert found == [back if back <= place else 0 for back in of_extra_sources[sentence]]


def test_missing_and_wrong_files_are_refused(own_bin, data_bin, tmp_path, checkpoint):
    def load(folder, *options):
        _, task, _ = toy.build(folder, "--context-attention", "memory", *SIMILAR, *options)
        task.load_dataset("test")

    with pytest.raises(InputError):
        load(data_bin)
    folder = shutil.copytree(own_bin, tmp_path / "bin")
    file = similar_file(folder / "test.src-tgt.src")
    with pytest.raises(InputError):
        load(folder, "--context-sentences", "5")
    for content in (b"no array", b""):
        file.write_bytes(content)
        with pytest.raises(InputError):
            load(folder)
    vectors_file(folder, "src").unlink()
    write_lines(tmp_path / "input", LINES)
    with pytest.raises(InputError, match=r"similar\.src\.npz.*docnmt embed neighbours"):
        toy.interactive(folder, checkpoint, tmp_path / "input")


def test_context_stays_in_the_document(own_bin, tmp_path):
    folder = shutil.copytree(own_bin, tmp_path / "bin")
    file = similar_file(folder / "test.src-tgt.src")
    np.save(file, np.full_like(np.load(file), 3))
    _, task, _ = toy.build(folder, "--context-attention", "memory", *SIMILAR)
    layout = toy.batch_of(task)["net_input"]["layout"]
    assert layout.similar[:, 0].tolist() == [0, 0, 0, 3, 0, 0, 0, 0, 3, 3, 3]
