"""Loading of trained models with their task."""

import pickle
import shutil
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.errors import InputError
from tests.support import toy


def test_a_model_is_loaded_with_the_given_data(data_bin, tmp_path):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    moved = shutil.copytree(data_bin, tmp_path / "moved")
    task = load_ensemble(trained, data=moved, overrides={"context": "none"}).task
    assert (task.cfg.data, str(task.cfg.context)) == (str(moved), "none")
    (moved / "dict.src.txt").unlink()
    with pytest.raises(InputError):
        load_ensemble(trained, data=moved)


@pytest.mark.parametrize(
    ("task", "side", "name"),
    [("document_translation", "src", "source"), ("concatenated_translation", "tgt", "target")],
)
def test_another_dictionary_of_the_same_size_is_refused(data_bin, tmp_path, task, side, name):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1", task=task, arch="transformer")
    assert load_ensemble(trained, data=shutil.copytree(data_bin, tmp_path / "moved")).models
    other = toy.with_other_words(data_bin, tmp_path / "other", side)
    message = rf"other/dict\.{side}\.txt: the model was trained with another {name} dictionary"
    with pytest.raises(InputError, match=message):
        load_ensemble(trained, data=other)


def test_swapped_languages_are_refused(data_bin, tmp_path):
    joint = shutil.copytree(data_bin, tmp_path / "joint")
    shutil.copy(joint / "dict.tgt.txt", joint / "dict.src.txt")
    trained = toy.train(joint, tmp_path / "model", "--max-update", "1", arch="transformer")
    with pytest.raises(InputError):
        toy.generate(joint, trained, "--source-lang", "tgt", "--target-lang", "src")


def test_checkpoints_without_digests_accept_any_dictionary(data_bin, tmp_path):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1", task="translation", arch="transformer")
    assert load_ensemble(trained, data=toy.with_other_words(data_bin, tmp_path / "other")).models


def test_parameters_of_another_shape_are_named(data_bin, tmp_path):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    state = torch.load(trained, weights_only=True)
    name = "encoder.embed_tokens.weight"
    state["model"][name] = state["model"][name][:-1].clone()
    torch.save(state, trained)
    with pytest.raises(InputError, match=f"--path .*--data {data_bin}: .*{name}"):
        load_ensemble(trained, data=data_bin)


def test_unknown_architectures_are_named(data_bin, tmp_path):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    state = torch.load(trained, weights_only=True)
    state["cfg"]["model"]["_name"] = "document_mine"
    torch.save(state, trained)
    with pytest.raises(InputError, match="document_mine"):
        load_ensemble(trained, data=data_bin)


@pytest.mark.parametrize("name", ["none.pt", "text.pt", "object.pt", "folder"])
def test_other_files_are_refused(data_bin, tmp_path, name):
    (tmp_path / "text.pt").write_bytes(b"words 1")
    (tmp_path / "object.pt").write_bytes(pickle.dumps(Path("x")))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=f"--path .*{name}"):
        load_ensemble(tmp_path / name, data=data_bin)


def test_members_with_different_views_need_the_option(data_bin, tmp_path):
    whole = toy.train(data_bin, tmp_path / "whole", "--max-update", "1")
    pieces = toy.train(data_bin, tmp_path / "pieces", "--max-update", "1", "--max-document-sentences", "3")
    for members in ((pieces, whole), (whole, pieces)):
        with pytest.raises(InputError):
            load_ensemble(*members, data=data_bin)
        task = load_ensemble(*members, data=data_bin, overrides={"max_document_sentences": 0}).task
        assert task.view("max_document_sentences") == 0
    assert load_ensemble(pieces, data=data_bin).task.view("max_document_sentences") == 3


def test_a_data_bin_stands_for_the_output_of_prepare(data_bin, tmp_path):
    prepared = toy.as_prepared(data_bin, tmp_path / "prepared")
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    for given in (prepared, prepared / "data-bin"):
        assert load_ensemble(trained, data=given).data == prepared
    assert load_ensemble(trained, data=data_bin).data == data_bin
