"""Checkpoints of earlier versions load, and compute the same losses and translations."""

import json
import shutil

import pytest

from tests.compat.make_checkpoints import FOLDER, measured

EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_checkpoint(name, tmp_path):
    data_bin = shutil.copytree(FOLDER / "data-bin", tmp_path / "data-bin")  # an index is written next to the data
    found = measured(FOLDER / f"{name}.pt", data_bin)
    assert found["loss"] == pytest.approx(EXPECTED[name]["loss"], rel=1e-5)
    assert found["translations"] == EXPECTED[name]["translations"]
