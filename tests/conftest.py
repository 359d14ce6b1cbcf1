"""Settings of all tests, and a toy data-bin."""

import logging
import os
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from docnmt_fairseq.batch import ragged
from tests.support.documents import DOCUMENTS, write_data_bin
from tests.support.imported import Imported

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("repeatable")
PRODUCTION_COST = ragged.MIN_GROUP_COST
ragged.MIN_GROUP_COST = 4.0  # small batches of tests are divided into several groups, as real ones are
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Files with slow tests run first, so that at the end no process is left alone with one of them."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(autouse=True)
def _logging_as_before():
    """Restores the level of logging after a test."""
    before = logging.root.manager.disable
    yield
    logging.disable(before)


@pytest.fixture(autouse=True)
def _no_best_of_an_earlier_training():
    """Resets the best loss, which fairseq keeps in its function between the trainings of a process."""
    checkpoints = sys.modules.get("fairseq.checkpoint_utils")
    if checkpoints is not None:
        vars(checkpoints.save_checkpoint).pop("best", None)


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """Provides the server that runs commands without importing fairseq again."""
    server = Imported(tmp_path_factory.mktemp("imported"), Path(__file__).parents[1])
    yield server
    server.close()


@pytest.fixture(scope="session")
def ready_python(tmp_path_factory, imported):
    """Returns a replacement of ``sys.executable`` that runs modules without importing fairseq again."""
    folder = tmp_path_factory.mktemp("python")
    imported.commands(folder)
    return str(folder / "python")


@pytest.fixture
def starts_soon(monkeypatch, ready_python):
    """Forks the processes of a test, also those of torchrun, from one that has imported fairseq."""
    monkeypatch.setattr(sys, "executable", ready_python)
    monkeypatch.setenv("PYTHON_EXEC", ready_python)


@pytest.fixture
def production_price(monkeypatch):
    """Restores the cost of groups outside of the tests."""
    monkeypatch.setattr(ragged, "MIN_GROUP_COST", PRODUCTION_COST)
    return PRODUCTION_COST


@pytest.fixture(scope="session")
def data_bin(tmp_path_factory) -> Path:
    """Returns a data-bin src-tgt of three small splits with documents and paragraphs; targets are reversed sources."""
    logging.disable(logging.INFO)
    return write_data_bin(tmp_path_factory.mktemp("toy"), DOCUMENTS)


@pytest.fixture(scope="session")
def prepared(data_bin, tmp_path_factory) -> Path:
    """Returns the same data-bin as an output of docnmt prepare."""
    from tests.support import toy  # imports fairseq

    return toy.as_prepared(data_bin, tmp_path_factory.mktemp("prepared"))
