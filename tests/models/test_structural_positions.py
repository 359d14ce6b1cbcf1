"""Positions of words, sentences and paragraphs in the whole model; single levels: ``test_positions``."""

import pytest
import torch

from tests.support import toy
from tests.support.decoding import logits, stir


def places(layout, level):
    """Returns the positions on a level, a view of the layout."""
    return layout.unit_position[0] if level == "paragraph" else layout.sentence_position


def build(data_bin, *extra):
    _, task, model = toy.build(data_bin, *extra)
    return task, stir(model)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
@pytest.mark.parametrize("level", ["sentence", "paragraph"])
def test_states_depend_on_the_position_in_the_document(data_bin, level, kind):
    task, model = build(data_bin, f"--{level}-positions", kind)
    sample = toy.batch_of(task)
    layout = sample["net_input"]["layout"]
    positions = places(layout, level)
    before = logits(model, sample)
    positions += positions.gt(0)
    changed = ((logits(model, sample) - before).abs() > 1e-6).any(-1).any(-1)
    assert changed.tolist() == positions.gt(0).tolist() and changed.any() and not changed.all()


def test_chunks_keep_positions_in_the_document(data_bin):
    positions = ["--sentence-positions", "learned", "--paragraph-positions", "sinusoidal"]
    task, model = build(data_bin, *positions)
    whole = toy.batch_of(task)
    in_pieces, _ = build(data_bin, *positions, "--max-document-sentences", "2", "--context-overlap", "1")
    pieces = toy.batch_of(in_pieces)
    assert pieces["id"].tolist() == whole["id"].tolist()
    real = whole["target"].ne(1)  # the model has no other context: only the positions could differ
    torch.testing.assert_close(logits(model, pieces)[real], logits(model, whole)[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("level", ["sentence", "paragraph"])
def test_positions_beyond_a_learned_table(data_bin, caplog, level):
    task, model = build(data_bin, f"--{level}-positions", "learned", f"--max-{level}-positions", "1")
    sample = toy.batch_of(task)
    once = logits(model, sample)
    assert once.isfinite().all() and torch.equal(logits(model, sample), once)
    warnings = [record.message for record in caplog.records if "share the last row" in record.message]
    table = "share the last row of the learned table"
    assert warnings == [f"{level} positions beyond 0 {table}; --max-{level}-positions sets its size"]
    layout = sample["net_input"]["layout"]
    places(layout, level).zero_()
    torch.testing.assert_close(logits(model, sample), once)


def test_learned_word_positions_equal_the_stock_transformer(data_bin):
    _, _, stock = toy.build(data_bin, "--encoder-learned-pos", task="translation", arch="transformer")
    stir(stock)
    task, model = build(data_bin, "--word-positions", "learned", "--sentence-positions", "learned")
    model.encoder.embed_positions.sentence.weight.data.zero_()
    model.load_state_dict(stock.state_dict(), strict=True)
    sample = toy.batch_of(task)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    torch.testing.assert_close(logits(model, sample)[real], stock(**net_input)[0][real], atol=1e-5, rtol=1e-5)
