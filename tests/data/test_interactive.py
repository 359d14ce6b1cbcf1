"""Positions of typed sentences in their documents, also after forgotten ones."""

import pytest
import torch

from docnmt_fairseq.data.chunking import ChunkLimits
from docnmt_fairseq.data.interactive import OpenDocument

EMPTY, MARK, PARAGRAPH = torch.tensor([2]), torch.tensor([9, 2]), 9


def sentence(tokens):
    return torch.tensor([5] * (tokens - 1) + [2])


def positions(dataset):
    """Returns the positions of every new sentence and of its paragraph in the document."""
    pieces = [dataset[number] for number in range(len(dataset))]
    decoded = [
        (int(place), int(unit))
        for piece in pieces
        for place, unit, new in zip(piece["sentence_position"], piece["unit_position"][0], piece["decoded"])
        if new
    ]
    return decoded


def typed(*buffers, max_tokens=5):
    document = OpenDocument(1, 2, PARAGRAPH)
    return [positions(document.extend(list(lines), True, ChunkLimits(128, max_tokens))) for lines in buffers]


def test_a_forgotten_document_continues():
    first, second = typed([sentence(9)], [sentence(3), sentence(2)])
    assert (first, second) == ([(0, 0)], [(1, 0), (2, 0)])


@pytest.mark.parametrize("before", [[EMPTY], [EMPTY, MARK], [MARK, EMPTY], [EMPTY, EMPTY]], ids=len)
def test_an_empty_line_ends_a_forgotten_document(before):
    _, second = typed([sentence(9), MARK, sentence(9)], [*before, sentence(3), sentence(2), MARK, sentence(2)])
    assert second == [(0, 0), (1, 0), (2, 1)]


def test_boundaries_after_a_forgotten_sentence():
    _, second = typed([sentence(9)], [MARK, sentence(3)])
    assert second == [(1, 1)]
