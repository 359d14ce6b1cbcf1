from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.data.index import DocumentIndex, Marks, part_starts, tokens_at
from docnmt_fairseq.data.loading import read_index
from docnmt_fairseq.errors import InputError

EOS, P = 2, 4


class Lines:
    """A data-bin in memory: empty lines, marks and sentences of the given lengths."""

    def __init__(self, lines):
        words = [[P if word == "<p>" else 9 for word in line.split()] for line in lines]
        self.items = [torch.tensor([*numbers, EOS]) for numbers in words]
        self.sizes = np.array([len(item) for item in self.items])

    def __getitem__(self, number):
        return self.items[number]


def index_of(lines, **options):
    return DocumentIndex.build(Marks.read(Lines(lines), P), "corpus", **options)


paragraphs = st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(1, 4), min_size=1, max_size=4)), min_size=1)


@given(st.lists(paragraphs, min_size=1, max_size=5))
def test_documents_are_restored(documents):
    """documents > (levels that end before, sentence lengths) of paragraphs; 0: one, as for most"""
    lines, expected = [], []
    for document in documents:
        at = [0, 0, 0, 0]
        for number, (levels, sentences) in enumerate(document):
            if number:
                levels = max(levels, 1)
                lines.append(" ".join(["<p>"] * levels))
                at = [place + (level < levels) for level, place in enumerate(at)]
            lines += ["w " * length for length in sentences]
            expected += [at] * len(sentences)
        lines.append("")
    index = index_of(lines)
    assert len(index) == len(documents)
    deepest = max((levels for document in documents for levels, _ in document[1:]), default=1)
    assert index.depth == max(deepest, 1)
    rows = [list(column) for column in zip(*expected)][: index.depth]
    found = [index.unit_positions(d, *index.documents[d : d + 2]) for d in range(len(index))]
    assert np.concatenate(found, axis=1).tolist() == rows
    start, end = index.documents[len(index) - 1 :].tolist()  # a piece of a document is as in the whole
    whole = index.unit_positions(len(index) - 1, start, end)
    for first in range(start, end):
        assert index.unit_positions(len(index) - 1, first, end).tolist() == whole[:, first - start :].tolist()


def test_of_consecutive_boundaries_the_highest_counts():
    for marks in (["<p> <p>", "<p>"], ["<p>", "<p> <p>"]):
        index = index_of(["a", *marks, "b", "<p>", "c"])
        assert index.paragraphs.tolist() == [0, 1, 2] and index.levels.tolist() == [2, 2, 1]


@pytest.mark.parametrize("lines", [["<p>", "a", "", "b"], ["a", "", "<p>", "b"], ["a", "", "b", "<p>", "<p>", "<p>"]])
def test_boundaries_that_end_nothing_are_ignored(lines):
    index = index_of(lines)
    assert index.documents.tolist() == [0, 1, 2] and index.paragraphs.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["x", "", "z", ""], "line 2: an empty line on the target side only"),
        (["x", "y", "z", "v"], "line 4: an empty line on the source side only"),
        (["x", "<p>", "z", ""], "line 2: <p> on the target side only"),
        (["x", "<p> <p>", "z", ""], "line 2: <p> <p> on the target side only"),
        (["x", "y"], "4 source lines, 2 target lines"),
    ],
)
def test_different_boundaries_are_refused(target, message):
    source = Lines(["a", "b", "c", ""])
    with pytest.raises(InputError, match=message):
        read_index(source, Lines(target), (P, P), "corpus", "document")


@pytest.mark.parametrize(("unmarked", "documents"), [("line", [0, 2, 4, 5, 6]), ("document", [0, 2, 4, 6])])
def test_unmarked_files_of_a_combined_corpus(unmarked, documents, caplog):
    index = index_of(["a", "b", "", "c", "d", "e", "f"], unmarked=unmarked, parts=[0, 5])
    assert index.documents.tolist() == documents
    assert ("2 in such files" in caplog.text) == (unmarked == "document")


def test_tokens_are_read_from_the_memory_map(data_bin):
    from fairseq.data import data_utils

    dataset = data_utils.load_indexed_dataset(str(data_bin / "train.src-tgt.src"), None, "mmap")
    numbers = np.flatnonzero(dataset.sizes == 2)
    expected = [int(dataset[int(number)][0]) for number in numbers]
    assert len(expected) > 3 and tokens_at(dataset, numbers).tolist() == expected
    numbers = np.flatnonzero(dataset.sizes == 3)
    assert tokens_at(dataset, numbers, 1).tolist() == [int(dataset[int(number)][1]) for number in numbers]


def test_documents_end_with_their_file():
    assert index_of(["a", "b", "c", "d", ""], parts=[0, 2]).documents.tolist() == [0, 2, 4]
    combined = SimpleNamespace(real_sizes=[3, 2], cumulative_sizes=[6, 8])  # the first twice
    assert part_starts(combined) == [0, 3, 6] and part_starts(Lines(["a"])) == []
