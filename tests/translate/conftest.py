"""A tiny trained model, and texts in pipes."""

import os
from pathlib import Path

import pytest

from tests.support import toy
from tests.support.translating import SELECTED


@pytest.fixture
def pipe():
    """Returns a function that gives a file which holds a text until it is read."""
    ends = []

    def of(text):
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        ends.append(reader)
        return Path(f"/dev/fd/{reader}")

    yield of
    for end in ends:
        os.close(end)


@pytest.fixture(scope="session")
def checkpoint(prepared, tmp_path_factory):
    """Returns a checkpoint of a model that selects sentences."""
    options = [*SELECTED, "--max-update", "12", "-s", "src", "-t", "tgt"]
    return toy.train(prepared / "data-bin", tmp_path_factory.mktemp("selected"), *options)
