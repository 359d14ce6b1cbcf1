"""A training that goes on with other options says so; parameters alone would not tell. Another optimizer is refused."""

import logging
from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from docnmt_fairseq.changed_options import changed_options
from docnmt_fairseq.errors import InputError
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


def test_values_are_compared_however_they_are_held():
    """Older checkpoints have a namespace; what only one of both knows, and what names and draws are, is no change."""
    now = OmegaConf.create({"betas": [0.9, 0.98], "dropout": 0.1, "of": {"a": 1}, "_name": "b", "seed": 2, "came": 1})
    before = Namespace(betas=(0.9, 0.98), dropout=0.3, of={"a": 1}, _name="a", seed=1, went=1)
    assert changed_options(before, now) == ["--dropout was 0.3, is 0.1"]
    assert not changed_options(None, now) and not changed_options(7, now)
    assert not changed_options({"dropout": 0.3}, Namespace(dropout=0.1))  # of a model without declared options


def test_another_cell(told, tmp_path):
    (line,) = told(["--encoder-cell", "gru"], ["--dropout", "0.3"], **RNN)
    assert line.startswith(f"{tmp_path}/checkpoint_last.pt: goes on with other options than it was trained with: ")
    assert "--encoder-cell was gru, is gru-reset-before" in line and "--dropout was 0.1, is 0.3" in line


def test_the_same_command(told):
    assert not told([], [], **RNN)


def test_the_same_command_of_a_transformer(told):
    options = ["--context-attention", "conditional"]
    assert not told(options, options)


def test_another_window(told):
    task = {"task": "concatenated_translation", "arch": "transformer"}
    window = ["--concatenate-source", "4", "--concatenate-target", "3", "--break-symbol", "<p>"]
    (line,) = told(window, ["--break-symbol", "<p>"], **task)
    assert "--concatenate-source was 4, is 2; --concatenate-target was 3, is 1; if" in line


def test_another_symbol_is_told_before_parameters_do_not_fit(data_bin, tmp_path, caplog):
    task = {"task": "concatenated_translation", "arch": "transformer"}
    toy.train(data_bin, tmp_path, "--break-symbol", "<p>", "--max-update", "1", **task)
    with pytest.raises(InputError, match=r"checkpoint_last\.pt: its parameters do not fit this model"):
        toy.train(data_bin, tmp_path, "--max-update", "2", **task)
    assert "--break-symbol was <p>, is <brk>" in caplog.text


def test_the_same_window(told):
    options = ["--concatenate-source", "3"]
    assert not told(options, options, task="concatenated_translation", arch="transformer")


@pytest.mark.parametrize("precision", ["--memory-efficient-bf16", "--cpu"])  # the latter: float32
@pytest.mark.parametrize("names", [("adam", "fused_adamw"), ("fused_adamw", "adam")], ids=" to ".join)
def test_another_optimizer_is_refused(data_bin, tmp_path, names, precision):
    first, second = (["--optimizer", name, precision] for name in names)
    toy.train(data_bin, tmp_path, *first, "--max-update", "1")
    message = rf"--optimizer {names[1]}: .*checkpoint_last.pt was trained with {names[0]}; .* --reset-optimizer"
    with pytest.raises(InputError, match=message):
        toy.train(data_bin, tmp_path, *second, "--max-update", "2")
    toy.train(data_bin, tmp_path, *second, "--max-update", "2", "--reset-optimizer")


def test_a_finetuning_is_another_training(data_bin, tmp_path, caplog):
    first = toy.train(data_bin, tmp_path / "first", "--max-update", "1")
    start = ["--finetune-from-model", str(first), "--dropout", "0.3", "--max-update", "1"]
    toy.train(data_bin, tmp_path / "second", *start)
    assert "goes on with other options" not in caplog.text


def test_another_dictionary_of_the_same_size(data_bin, tmp_path, caplog):
    """A training does not go on with it; one that begins from another model is told."""
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    other = toy.with_other_words(data_bin, tmp_path / "other")
    told = "was trained with another target dictionary, other symbols or in another order"
    with pytest.raises(InputError, match=rf"checkpoint_last\.pt: {told}; go on with the data-bin that it began with"):
        toy.train(other, tmp_path / "model", "--max-update", "2")
    assert told not in caplog.text
    toy.train(other, tmp_path / "new", "--max-update", "1", "--finetune-from-model", str(trained))
    assert f"{trained}: {told}: tokens begin with embeddings of others" in caplog.text


@pytest.mark.parametrize(
    ("before", "option", "told"),
    [
        ([], ["--decoder-embed-dim", "16"], "its parameters do not fit .*size mismatch for decoder"),
        (["--context-attention", "conditional", "--lora-rank", "2"], [], "has low-rank updates"),
    ],
)
def test_a_start_that_does_not_fit_is_named_with_what_does_not(data_bin, tmp_path, before, option, told):
    start = toy.train(data_bin, tmp_path / "start", "--max-update", "1", *before)
    with pytest.raises(InputError, match=told):
        toy.train(data_bin, tmp_path / "model", "--max-update", "1", "--finetune-from-model", str(start), *option)


def test_another_model_in_the_folder_of_one_is_refused(data_bin, tmp_path):
    toy.train(data_bin, tmp_path, "--context", "none", "--max-update", "1")
    with pytest.raises(InputError, match=r"checkpoint_last\.pt: its optimizer's state is of other .*another --save"):
        toy.train(data_bin, tmp_path, "--context-attention", "conditional", "--max-update", "2")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--bf16"], "Optimizer does not match; .* FairseqAdam vs FP16Optimizer"),
        (["--criterion", "label_smoothed_cross_entropy"], "Criterion does not match; "),
    ],
)
def test_another_type_or_criterion_is_refused(data_bin, tmp_path, option, told):
    toy.train(data_bin, tmp_path, "--max-update", "1")
    with pytest.raises(InputError, match=rf"checkpoint_last\.pt: {told}.*go on as it was trained"):
        toy.train(data_bin, tmp_path, "--max-update", "2", *option)
