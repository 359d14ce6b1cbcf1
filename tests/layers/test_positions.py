"""Structural positions."""

from dataclasses import replace

import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding

from docnmt_fairseq.layers.positions import KINDS, PositionTable, StructuralPositions, sinusoid
from tests.support.documents import make_layout

LAYOUT = make_layout([3, 1, 2, 2], [3, 1])  # unit_position = sentence_position // 2


def levels(word="none", **kinds):
    torch.manual_seed(0)
    added = {level: PositionTable(kind) for level, kind in kinds.items()}
    positions = StructuralPositions(8, PositionTable(word), added=added)
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    return positions


def test_sinusoids_equal_fairseq():
    theirs = SinusoidalPositionalEmbedding(9, padding_idx=1, init_size=50)
    tokens = torch.full((1, 12), 5)
    ours = StructuralPositions(9, PositionTable("sinusoidal", offset=2))(make_layout([12], [1]))
    torch.testing.assert_close(ours, theirs(tokens)[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["word", "sentence", "paragraph"])
def test_each_level_is_independent(level, kind):
    embedded = levels(**{level: kind})(LAYOUT)
    if kind == "none":
        assert embedded.ndim == 0 and embedded == 0
        return
    expected = {
        "word": [0, 1, 2, 0, 0, 1, 0, 1],
        "sentence": [0, 0, 0, 1, 2, 2, 0, 0],
        "paragraph": [0, 0, 0, 0, 1, 1, 0, 0],
    }[level]
    for i, a in enumerate(expected):
        for j, b in enumerate(expected):
            assert torch.equal(embedded[i], embedded[j]) == (a == b)


DIVIDED = replace(
    LAYOUT, unit_position=torch.tensor([[0, 1, 2, 0], [0, 0, 1, 0], [0, 0, 1, 0]]), last_unit=(2, 1, 1)
)  # paragraphs, sections, chapters of its sentences


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_levels_above_the_paragraph_add_up_token_by_token(kind):
    names = ("paragraph", "section", "chapter", "part")
    together = levels(**{name: kind for name in names})
    tables = [getattr(together, name) for name in names]
    expected = []
    for sentence, length in enumerate((3, 1, 2, 2)):
        at = [*DIVIDED.unit_position[:, sentence].tolist(), 0]  # the corpus has no parts: all are in the first
        vector = sum(table(torch.tensor([place]))[0] for table, place in zip(tables, at))
        expected += [vector] * length
    found = together(DIVIDED)
    torch.testing.assert_close(found, torch.stack(expected))
    assert not torch.equal(found[0], found[3]) and not torch.equal(found[3], found[4])
    if kind == "learned":
        found.sum().backward()
        assert together.section.weight.grad[:3, 0].tolist() == [6, 2, 0]  # tokens of the first, of the second


def test_token_positions_within_the_document():
    positions = StructuralPositions(8, PositionTable("sinusoidal"), word_scope="document")
    expected = sinusoid(torch.tensor([0, 1, 2, 3, 4, 5, 0, 1]), 8)
    assert torch.equal(positions(LAYOUT), expected)


def test_positions_beyond_a_table_share_its_last_row_with_one_warning(caplog):
    positions = StructuralPositions(8, PositionTable("learned", size=2))
    embedded = positions(LAYOUT)
    assert torch.equal(embedded[1], embedded[2]) and not torch.equal(embedded[0], embedded[1])
    positions(LAYOUT)
    assert sum("share the last row" in record.message for record in caplog.records) == 1
