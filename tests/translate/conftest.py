"""Data that a model was trained on, as docnmt prepare leaves it."""

import pytest

from tests.support import toy


@pytest.fixture(scope="module")
def prepared(data_bin, tmp_path_factory):
    """Returns the toy data-bin as an output of docnmt prepare."""
    return toy.as_prepared(data_bin, tmp_path_factory.mktemp("prepared"))
