"""Data that a model was trained on, as docnmt prepare leaves it."""

import pytest

from tests.support import toy
from tests.support.translating import SELECTED


@pytest.fixture(scope="module")
def prepared(data_bin, tmp_path_factory):
    """Returns the toy data-bin as an output of docnmt prepare."""
    return toy.as_prepared(data_bin, tmp_path_factory.mktemp("prepared"))


@pytest.fixture(scope="module")
def checkpoint(prepared, tmp_path_factory):
    """Returns a checkpoint of a model that selects sentences."""
    options = [*SELECTED, "--max-update", "12", "-s", "src", "-t", "tgt"]
    return toy.train(prepared / "data-bin", tmp_path_factory.mktemp("selected"), *options)
