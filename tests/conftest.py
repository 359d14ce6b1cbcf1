"""Settings of all tests, and a toy data-bin."""

import logging
import os
import sys
from collections import Counter
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


# Test folders in which slow tests are marked by hand, and no others.
EXPLICIT: set = {
    "batch",
    "ca_layers",
    "cli",
    "compat",
    "context",
    "corpus",
    "criterions",
    "data",
    "docs",
    "embedding",
    "evaluation",
    "fairseq_patches",
    "hub",
    "layers",
    "models",
    "multisource",
    "native",
    "optim",
    "recipes",
    "recurrent",
    "report",
    "reproduce",
    "robustness",
    "search",
    "serve",
    "tasks",
    "tests",
    "translate",
}
TRAINING = ("hub", "models", "report", "serve", "tasks", "translate")  # folders whose tests do


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test that is ``sampled(n)``, one case of n is quick; the others are slow.

    Of others n is 4, or 12 in files that have slow tests, and in folders whose tests train models.
    """
    seen = Counter()
    long = {item.path for item in items if item.get_closest_marker("slow")}
    for item in items:
        if item.path.parent.name in EXPLICIT or item.path.relative_to(Path(__file__).parent).parts[0] in EXPLICIT:
            continue
        mark = item.get_closest_marker("sampled")
        dear = item.path in long or item.path.parent.name in TRAINING
        each = mark.args[0] if mark is not None else 12 if dear else 4
        if hasattr(item, "callspec"):
            test = item.nodeid.split("[")[0]
            if seen[test] % each:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1
    # Files with slow tests run first, so that processes end at about the same time.
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
