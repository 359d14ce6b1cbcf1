"""Trained toy models."""

import pytest

from tests.support import hub, toy


@pytest.fixture(scope="session")
def trained(prepared, tmp_path_factory):
    """Returns a function that trains each model once."""
    made = {}

    def train(*options, **kind):
        key = (*options, *map(str, kind.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp("model")
            made[key] = toy.train(prepared / "data-bin", folder, "--max-update", "8", *options, **kind)
        return made[key]

    return train


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Returns a small prepared corpus with one SentencePiece model."""
    return hub.made(tmp_path_factory.mktemp("text"), subwords="unigram", vocab_size=60)


@pytest.fixture(scope="session")
def binarised(tmp_path_factory):
    """Returns a folder with a data-bin of subwords and their SentencePiece model."""
    from tests.support.fairseq_released import binarise  # which skips tests where transformers is missing

    return binarise(tmp_path_factory.mktemp("fairseq"))
