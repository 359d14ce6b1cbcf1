"""What is trained on and what is validated on may be one split: only training hides context in it, and shuffles it."""

import re

import pytest

from tests.support import toy

DROPOUT = ["--context-dropout", "0.7"]


@pytest.fixture(scope="module")
def trained(data_bin, tmp_path_factory):
    """Returns a model that was trained with context dropout."""
    options = [*DROPOUT, "--max-update", "20"]
    return toy.train(data_bin, tmp_path_factory.mktemp("trained"), *options, arch="document_transformer_conditional")


def on_the_training_set(data_bin, checkpoint, *options):
    return toy.validate(data_bin, checkpoint, "--valid-subset", "train", *options)


def test_fairseq_validate_sees_all_context_of_the_training_set(data_bin, trained):
    loss = on_the_training_set(data_bin, trained)
    assert loss == on_the_training_set(data_bin, trained, "--context-dropout", "0")
    assert loss != on_the_training_set(data_bin, trained, "--context", "none")  # else this tests nothing


def test_so_does_the_validation_of_a_training(data_bin, tmp_path, caplog):
    caplog.set_level("INFO")
    options = [*DROPOUT, "--valid-subset", "valid,train", "--max-epoch", "2", "--seed", "3"]
    trained = toy.train(data_bin, tmp_path, *options, arch="document_transformer_conditional")
    losses = re.findall(r"epoch 002 \| valid on 'train' subset \| loss ([\d.]+)", caplog.text)
    assert [float(loss) for loss in losses] == [on_the_training_set(data_bin, trained, "--context-dropout", "0")]


@pytest.mark.parametrize("task", ["document_translation", "concatenated_translation"])
def test_a_split_is_both(data_bin, task):
    arch = {"document_translation": "document_transformer", "concatenated_translation": "transformer"}[task]
    _, task, _ = toy.build(data_bin, *(DROPOUT if task == "document_translation" else []), task=task, arch=arch)
    task.load_dataset("train")
    as_it_is, in_training = task.dataset("train"), toy.split_of(task, "train")
    assert task.dataset("train") is as_it_is and not as_it_is.shuffle
    assert in_training is not as_it_is and in_training.shuffle


def test_what_was_loaded_for_training_alone_is_found_afterwards(data_bin):
    _, task, _ = toy.build(data_bin)
    in_training = toy.split_of(task, "train")
    assert task.dataset("train") is in_training
    task.load_dataset("train")
    assert task.dataset("train") is not in_training
