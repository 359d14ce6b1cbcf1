"""Positions of words, sentences and paragraphs through the whole model; each level by itself: test_positions."""

import itertools

import pytest
import torch

from docnmt_fairseq.layers.positions import KINDS, WORD_SCOPES
from tests.support import toy
from tests.support.decoding import logits, stir

LEVELS = ("word", "sentence", "paragraph")
# Every pair of kinds of two levels once.
COMBINATIONS = [
    (KINDS[i], KINDS[j], KINDS[(i + j) % 3], WORD_SCOPES[j % 2]) for i, j in itertools.product(range(3), range(3))
]


def places(layout, level):
    """The places on a level, as a view of the layout's."""
    return layout.unit_position[0] if level == "paragraph" else layout.sentence_position


def options(*kinds):
    *kinds, scope = kinds
    levels = [word for level, kind in zip(LEVELS, kinds) for word in (f"--{level}-positions", kind)]
    return [*levels, "--word-positions-from", scope]


def build(data_bin, *extra):
    _, task, model = toy.build(data_bin, *extra)
    return task, stir(model)


@pytest.mark.slow
def test_kinds_in_any_combination_are_independent_of_the_batch_and_of_padding(data_bin):
    task, _ = build(data_bin)
    sample = toy.batch_of(task)
    dataset = task.dataset("test")
    parts = [dataset.collater([dataset[number] for number in numbers]) for numbers in ([2, 0], [1])]
    scores = {}
    for kinds in COMBINATIONS:
        _, model = build(data_bin, *options(*kinds), "--encoder-layers", "1", "--decoder-layers", "1")
        together = dict(zip(sample["id"].tolist(), logits(model, sample)))
        for part in parts:
            for number, values, target in zip(part["id"].tolist(), logits(model, part), part["target"]):
                real = target.ne(1)
                torch.testing.assert_close(values[real], together[number][: len(real)][real], atol=1e-5, rtol=1e-5)
        scores[kinds] = float(logits(model, sample)[sample["target"].ne(1)].abs().sum())
    assert len({round(score, 3) for score in scores.values()}) == len(scores)  # no option does nothing


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
@pytest.mark.parametrize("level", ["sentence", "paragraph"])
def test_the_place_in_the_document_matters(data_bin, level, kind):
    task, model = build(data_bin, f"--{level}-positions", kind)
    sample = toy.batch_of(task)
    layout = sample["net_input"]["layout"]
    positions = places(layout, level)
    before = logits(model, sample)
    positions += positions.gt(0)
    changed = ((logits(model, sample) - before).abs() > 1e-6).any(-1).any(-1)
    assert changed.tolist() == positions.gt(0).tolist() and changed.any() and not changed.all()


def test_pieces_of_a_document_keep_their_places_in_it(data_bin):
    positions = ["--sentence-positions", "learned", "--paragraph-positions", "sinusoidal"]
    task, model = build(data_bin, *positions)
    whole = toy.batch_of(task)
    in_pieces, _ = build(data_bin, *positions, "--max-document-sentences", "2", "--context-overlap", "1")
    pieces = toy.batch_of(in_pieces)
    assert pieces["id"].tolist() == whole["id"].tolist()
    real = whole["target"].ne(1)  # the model has no other context: only the positions could differ
    torch.testing.assert_close(logits(model, pieces)[real], logits(model, whole)[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("level", ["sentence", "paragraph"])
def test_places_beyond_a_learned_table_share_its_last_row_with_one_warning(data_bin, caplog, level):
    task, model = build(data_bin, f"--{level}-positions", "learned", f"--max-{level}-positions", "1")
    sample = toy.batch_of(task)
    once = logits(model, sample)
    assert once.isfinite().all() and torch.equal(logits(model, sample), once)
    warnings = [record.message for record in caplog.records if "share the last row" in record.message]
    assert warnings == [f"{level} positions beyond 0 share the last row of the learned table"]
    layout = sample["net_input"]["layout"]
    places(layout, level).zero_()
    torch.testing.assert_close(logits(model, sample), once)


def test_words_of_a_long_document_share_the_last_row_of_a_learned_table(data_bin, caplog):
    wide = ["--word-positions", "learned", "--word-positions-from", "document"]
    task, model = build(data_bin, *wide, "--max-source-positions", "8")
    layout = toy.batch_of(task)["net_input"]["layout"]
    assert layout.document_tokens.longest > 9
    table = model.encoder.embed_positions.word
    embedded = model.encoder.embed_positions(layout)
    for word, place in zip(embedded, layout.document_tokens.item_column.tolist()):
        assert torch.equal(word, table.weight[min(place, 7) + table.offset])
    assert "word positions beyond 7 share the last row" in caplog.text


def test_learned_word_positions_are_those_of_the_stock_transformer(data_bin):
    _, _, stock = toy.build(data_bin, "--encoder-learned-pos", task="translation", arch="transformer")
    stir(stock)
    task, model = build(data_bin, "--word-positions", "learned", "--sentence-positions", "learned")
    model.encoder.embed_positions.sentence.weight.data.zero_()
    model.load_state_dict(stock.state_dict(), strict=True)
    sample = toy.batch_of(task)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    torch.testing.assert_close(logits(model, sample)[real], stock(**net_input)[0][real], atol=1e-5, rtol=1e-5)
