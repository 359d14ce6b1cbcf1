import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import HoldOut
from docnmt_fairseq.recipes.select import held_out_runs, shortened, write_held_out


def made(sizes):
    return [Document([[(f"s{d}.{s}", f"t{d}.{s}") for s in range(size)]]) for d, size in enumerate(sizes)]


@given(st.lists(st.integers(1, 9), min_size=20, max_size=40), st.integers(1, 12), st.integers(1, 99))
def test_runs_are_apart_and_long_enough(sizes, sentences, seed):
    runs = held_out_runs(sizes, HoldOut(["valid", "test"], sentences, seed))
    valid, test = runs["valid"], runs["test"]
    assert not set(valid) & set(test)
    for run in (valid, test):
        assert sum(sizes[d] for d in run) >= sentences > sum(sizes[d] for d in run[:-1])


def test_no_sentence_and_no_document_is_in_two_splits(tmp_path):
    documents = made([3, 5, 2, 7, 4, 6, 3, 3, 8, 2, 5, 4])
    paths = {name: [tmp_path / f"{name}.{side}" for side in "st"] for name in ("train", "valid", "test")}
    write_held_out(lambda: documents, HoldOut(["valid", "test"], 7), paths)
    written = {name: list(read_documents(files)) for name, files in paths.items()}
    sentences = {name: [one for document in found for one in document.sentences()] for name, found in written.items()}
    assert [len(sentences[name]) for name in ("valid", "test")] == [7, 7]
    everything = [one for document in documents for one in document.sentences()]
    for name in ("valid", "test"):  # consecutive, as they stood
        start = everything.index(sentences[name][0])
        assert sentences[name] == everything[start : start + 7]
    numbers = {name: {one[0].split(".")[0] for one in found} for name, found in sentences.items()}
    assert not numbers["train"] & (numbers["valid"] | numbers["test"]) and not numbers["valid"] & numbers["test"]
    assert [document for document in documents if document in written["train"]] == written["train"]
    before = {path: path.read_bytes() for files in paths.values() for path in files}
    write_held_out(lambda: documents, HoldOut(["valid", "test"], 7), paths)
    assert before == {path: path.read_bytes() for path in before}


def test_another_seed_takes_other_documents_out_and_the_same_the_same():
    runs = [held_out_runs([3] * 50, HoldOut(["valid", "test"], 5, seed)) for seed in (1, 2, 3, 1)]
    assert runs[0] == runs[3] and len(set(map(str, runs))) == 3


@pytest.mark.parametrize("sizes", [[3, 3], [90], [5, 90]])
def test_too_small_a_training_set_is_refused(sizes):
    with pytest.raises(InputError, match="too few"):
        held_out_runs(sizes, HoldOut(["valid", "test"], 5))


def test_shortened_keeps_paragraphs():
    document = Document([[("a",), ("b",)], [("c",), ("d",)], [("e",)]])
    assert shortened(document, 3).paragraphs == [[("a",), ("b",)], [("c",)]]
    assert shortened(document, 9) == document
    sections = Document([[("a",)], [("b",)], [("c",)]], ended=[2, 3])
    assert shortened(sections, 2) == Document([[("a",)], [("b",)]], ended=[2]) and shortened(sections, 3) == sections
