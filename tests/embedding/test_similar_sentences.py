"""Similar sentences of documents, and their files beside a data-bin."""

import shutil

import numpy as np
import pytest
from fairseq.data import Dictionary
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.corpus.data_bin import DictionaryNumbering, ItemWriter, write_language_tokens
from docnmt_fairseq.data.selected_context import read_similar, similar_file, vectors_file, within_chunk
from docnmt_fairseq.embedding import Settings, neighbours
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.embedding.neighbours import write_neighbours
from tests.reference import embedding as reference
from tests.support import toy
from tests.support.documents import DOCUMENTS
from tests.support.extra_sources import source_lines


def model(most=3, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32)
    settings = Settings("average", neighbours=most)
    return SentenceEmbedding(list("abcde"), vectors, np.ones(5, dtype=np.int64), np.zeros(4, np.float32), settings)


@st.composite
def document_vectors(draw):
    """Vectors of a document's sentences, some of them equal, some zero."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kinds = rng.normal(size=(draw(st.integers(1, 9)), draw(st.integers(1, 4)))).astype(np.float32)
    kinds[0] *= draw(st.integers(0, 1))
    return kinds[rng.integers(0, len(kinds), draw(st.integers(1, 30)))]


@settings(max_examples=50)
@given(document_vectors(), st.integers(1, 6), st.integers(1, 10))
def test_most_similar_previous_sentences_nearest_first_among_equals(vectors, most, rows):
    before, neighbours.ROWS = neighbours.ROWS, rows
    try:
        found = neighbours.most_similar(vectors, most)
    finally:
        neighbours.ROWS = before
    assert found.dtype == np.int16
    assert found.tolist() == reference.most_similar(vectors.astype(np.float64), most)


def test_maximum_distance(monkeypatch):
    monkeypatch.setattr(neighbours, "MAX_DISTANCE", 2)
    monkeypatch.setattr(neighbours, "ROWS", 2)
    vectors = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 2, 2]]
    assert neighbours.most_similar(vectors, 3)[3:].tolist() == [[1, 2, 0], [2, 1, 0], [1, 2, 0]]


@pytest.fixture
def own_bin(data_bin, tmp_path):
    return shutil.copytree(data_bin, tmp_path / "bin")


def sentences_of(document):
    return [sentence for paragraph in document for sentence in paragraph]


def test_files_of_a_data_bin(own_bin):
    fitted = model()
    assert write_neighbours(own_bin, fitted) == 60 + 3 + 11
    for split, documents in DOCUMENTS.items():
        table = np.load(similar_file(own_bin / f"{split}.src-tgt.src"))
        wanted = []
        for document in documents:
            vectors = fitted.embed(fitted.vocabulary.encode(sentences_of(document))).astype(np.float64)
            rows = iter(reference.most_similar(vectors, 3))
            for number, paragraph in enumerate(document):
                wanted += [[0, 0, 0]] * (number > 0) + [next(rows) for _ in paragraph]
            wanted.append([0, 0, 0])
        assert table.tolist() == wanted
    assert SentenceEmbedding.load(vectors_file(own_bin, "src")).settings == fitted.settings


def test_language_tokens_are_ignored(own_bin):
    fitted = model()
    fitted.vectors[4] *= 10  # all sentences are alike by it
    write_neighbours(own_bin, fitted)
    (similar := similar_file(own_bin / "test.src-tgt.src")).rename(own_bin / "without.npy")
    dictionary = Dictionary.load(str(own_bin / "dict.src.txt"))
    lines = ["e " * (line not in ("", "<p>")) + line for line in source_lines("test")]
    with ItemWriter(own_bin / "test.src-tgt.src", len(dictionary)) as writer:
        writer.add(DictionaryNumbering(dictionary)(lines))
    write_language_tokens(own_bin, {"src": "e"})
    write_neighbours(own_bin, fitted)
    wanted = np.load(own_bin / "without.npy").tolist()
    assert np.load(similar).tolist() == wanted
    options = ["--context-attention", "memory", "--context-selection", "similar", "--context-sentences", "3"]
    _, task, _ = toy.build(own_bin, *options)
    split = task.read_split("test")
    assert task.similar.in_memory(split.source, split.index).tolist() == wanted


@pytest.mark.parametrize("unmarked", ["document", "line"])
def test_documents_are_those_of_the_task_in_combined_files(own_bin, unmarked):
    """The first file has marks, the second none, as a sentence-level corpus."""
    sentences = ["a b", "c", "d e", "b c"]
    numbering = DictionaryNumbering(Dictionary.load(str(own_bin / "dict.src.txt")))
    for side in ("src", "tgt"):
        with ItemWriter(own_bin / f"train1.src-tgt.{side}", 10) as writer:
            writer.add(numbering(sentences))
    write_neighbours(own_bin, model(), unmarked=unmarked)
    _, task, _ = toy.build(own_bin, "--unmarked-corpus", unmarked)
    split = task.read_split("train", combine=True)
    table = read_similar(own_bin, "train", ("src", "tgt"), split.source, 3)
    begins = np.repeat(split.index.documents[:-1], np.diff(split.index.documents))
    before = np.arange(len(begins)) - begins  # sentences of the document
    assert (table[split.index.items] > 0).sum(1).tolist() == np.minimum(before, 3).tolist()


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 4), st.data())
def test_within_a_piece_only_its_sentences_remain(document, most, data):
    back = np.array([data.draw(st.lists(st.integers(0, row), min_size=most, max_size=most)) for row in range(document)])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, document - 1), min_size=1))))
    for place, (row, found) in enumerate(zip(rows, within_chunk(back[rows], rows))):
        wanted = [row - b if b and row - b in rows else None for b in back[row]]
        assert [rows[place - b] if b else None for b in found] == wanted
