"""A tiny trained model, and a server of it."""

import pytest

from tests.support import toy
from tests.support.serving import Running, translator_of


@pytest.fixture(scope="session")
def checkpoint(prepared, tmp_path_factory):
    """Returns a model that selects sentences."""
    options = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
    options += ["--max-update", "60", "-s", "src", "-t", "tgt"]
    return toy.train(prepared / "data-bin", tmp_path_factory.mktemp("selected"), *options)


@pytest.fixture(scope="session")
def plain(prepared, tmp_path_factory):
    """Returns one of fairseq's own models."""
    folder = tmp_path_factory.mktemp("plain")
    return toy.train(prepared / "data-bin", folder, "--max-update", "8", task="translation", arch="transformer")


@pytest.fixture(scope="session")
def translator(checkpoint, prepared):
    """Returns a translator that is compared with; the servers have others."""
    return translator_of(checkpoint, prepared)


@pytest.fixture(scope="session")
def server(checkpoint, prepared):
    """Returns a server whose limits are low."""
    limits = {"max_waiting": 300, "max_bytes": 3_000_000, "max_characters": 4000, "max_inspected": 100, "timeout": 60}
    found = Running(translator_of(checkpoint, prepared), **limits)
    yield found
    found.close()
