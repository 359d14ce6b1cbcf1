"""A training that goes on with other options of its model says so; parameters alone would not tell."""

import logging

import pytest

from tests.support import toy

RNN = {"arch": "rnnsearch_tiny", "tiny": ["--encoder-hidden-size", "8"]}


@pytest.fixture
def told(data_bin, tmp_path, caplog):
    """Trains two updates, goes on with other arguments; returns the warnings of that."""

    def run(first, then, **named):
        toy.train(data_bin, tmp_path, "--max-update", "2", *first, **named)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "docnmt_fairseq"):
            toy.train(data_bin, tmp_path, "--max-update", "3", *then, **named)
        return [record.message for record in caplog.records if record.name == "docnmt_fairseq.changed_options"]

    return run


def test_another_cell(told, tmp_path):
    (line,) = told(["--encoder-cell", "gru"], ["--dropout", "0.3"], **RNN)
    assert line.startswith(f"{tmp_path}/checkpoint_last.pt: goes on with other options than it was trained with: ")
    assert "--encoder-cell was gru, is gru-reset-before" in line and "--dropout was 0.1, is 0.3" in line


def test_the_same_command(told):
    assert not told([], [], **RNN)


def test_the_same_command_of_a_transformer(told):
    options = ["--context-attention", "conditional"]
    assert not told(options, options)


def test_a_finetuning_is_another_training(data_bin, tmp_path, caplog):
    first = toy.train(data_bin, tmp_path / "first", "--max-update", "1")
    start = ["--finetune-from-model", str(first), "--dropout", "0.3", "--max-update", "1"]
    toy.train(data_bin, tmp_path / "second", *start)
    assert "goes on with other options" not in caplog.text
