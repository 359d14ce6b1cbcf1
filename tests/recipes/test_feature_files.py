"""Features of a data set beside its data-bin."""

import numpy as np
import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.feature_files import lay_features


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


@pytest.mark.parametrize(("sentences", "cut"), [(3, False), (5, False), (5, True)])
def test_features_of_other_sentences_are_refused(features, tmp_path, sentences, cut):
    with pytest.raises(InputError, match=f"images.npy: features of 4 sentences, but {sentences} were prepared"):
        lay_features(features, tmp_path / "train.image.npy", sentences, cut)
    assert not (tmp_path / "train.image.npy").exists()


def test_what_is_no_file_of_features_is_refused(tmp_path):
    (tmp_path / "images.npy").write_text("nothing")
    with pytest.raises(InputError, match=r"images\.npy: not a file of features"):
        lay_features(tmp_path / "images.npy", tmp_path / "train.image.npy", 3, cut=False)
