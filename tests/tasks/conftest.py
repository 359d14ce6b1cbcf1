"""Fixtures of several tests of the tasks."""

import pytest
from fairseq.checkpoint_utils import load_model_ensemble_and_task


@pytest.fixture(scope="module")
def built(checkpoint):
    """Returns (task, model) of the module's checkpoint, its test set loaded."""
    (model,), _, task = load_model_ensemble_and_task([str(checkpoint)])
    task.load_dataset("test")
    return task, model.eval()
