"""Features of a data set beside its data-bin."""

import numpy as np
import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.feature_files import lay_features
from tests.support.recipes import raw, recipe, untrained


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "images.npy"
    np.save(path, np.arange(12.0).reshape(4, 3))
    return path


def test_features_are_linked_and_linked_again(features, tmp_path):
    target = tmp_path / "train.image.npy"
    for _ in range(2):
        lay_features(features, target, 4, cut=False)
        assert target.is_symlink() and np.array_equal(np.load(target), np.load(features))


def test_a_smoke_run_has_those_of_its_sentences(features, tmp_path):
    lay_features(features, tmp_path / "train.image.npy", 3, cut=True)
    assert np.array_equal(np.load(tmp_path / "train.image.npy"), np.load(features)[:3])


def test_a_training_and_translations_depend_on_them(tmp_path, monkeypatch):
    trained, translated = untrained(monkeypatch)
    dataset = read_dataset_config(named_recipes()["multi30k"])
    files = raw(dataset, tmp_path / "raw")

    def run_with_other(split):
        """What is translated, and the data that trainings are told, where features of a split have changed."""
        path = files / dataset.features["image"][split]
        np.save(path, -np.load(path))
        del trained[:], translated[:]
        recipe(dataset, tmp_path / "out", ("image-rnn-flat",), raw=files).run()
        return list(translated), trained[0]["data"]

    translations, data = run_with_other("test")
    assert len(translations) == 1 and run_with_other("test") == (translations, data)
    assert len({data, run_with_other("valid")[1], run_with_other("train")[1]}) == 3


@pytest.mark.parametrize(("sentences", "cut"), [(3, False), (5, False), (5, True)])
def test_features_of_other_sentences_are_refused(features, tmp_path, sentences, cut):
    with pytest.raises(InputError, match=f"images.npy: features of 4 sentences, but {sentences} were prepared"):
        lay_features(features, tmp_path / "train.image.npy", sentences, cut)
    assert not (tmp_path / "train.image.npy").exists()


def test_what_is_no_file_of_features_is_refused(tmp_path):
    (tmp_path / "images.npy").write_text("nothing")
    with pytest.raises(InputError, match=r"images\.npy: not a file of features"):
        lay_features(tmp_path / "images.npy", tmp_path / "train.image.npy", 3, cut=False)
