"""Checkpoints of earlier versions load, say the same, and can be trained on."""

import json
import shutil

import pytest

from tests.support import frozen

pytestmark = pytest.mark.sampled(7)

FROZEN = [(version, family) for version in frozen.versions() for family in frozen.families(version)]


@pytest.fixture(params=FROZEN, ids="/".join)
def folder(request):
    version, family = request.param
    return frozen.FOLDER / version / family


def assert_observed(found, expected):
    assert found["translations"].keys() == expected["translations"].keys()
    for number, (tokens, score) in expected["translations"].items():
        assert found["translations"][number][0] == tokens
        assert found["translations"][number][1] == pytest.approx(score, abs=0.01)
    assert found["loss"] == pytest.approx(expected["loss"], abs=0.005)


def test_a_frozen_checkpoint_translates_and_scores_as_it_did(folder):
    expected = json.loads((folder / "expected.json").read_text())
    assert_observed(frozen.observed(folder / "checkpoint.pt", folder.name), expected)


@pytest.mark.slow
def test_a_frozen_training_goes_on_as_it_did(folder, tmp_path):
    """The optimiser's state still belongs to the same parameters, in their order."""
    expected = json.loads((folder / "expected.json").read_text())
    shutil.copy(folder / "checkpoint.pt", tmp_path / "checkpoint_last.pt")
    updates = frozen.UPDATES + frozen.MORE
    resumed = frozen.train(folder.name, frozen.options_of(folder), tmp_path, updates)
    assert frozen.observed(resumed, folder.name)["loss"] == pytest.approx(expected["resumed_loss"], abs=0.02)
