"""Data that the tests of fairseq's checkpoints share."""

import pytest


@pytest.fixture(scope="session")
def binarised(tmp_path_factory):
    """Returns a folder with a data-bin of SentencePiece's pieces, and their model."""
    from tests.support.fairseq_released import binarise  # which skips tests where transformers is missing

    return binarise(tmp_path_factory.mktemp("fairseq"))
