"""Steps are rerun if their inputs or outputs changed, and skipped otherwise."""

import os

import pytest

from docnmt_fairseq.corpus.step_cache import StepCache


class Counted:
    """Action that writes a file and counts its calls."""

    def __init__(self, path):
        self.path, self.runs = path, 0

    def __call__(self):
        self.runs += 1
        self.path.write_text("made")
        return {"runs": self.runs}


@pytest.fixture
def finished(tmp_path):
    action, cache = Counted(tmp_path / "out"), StepCache(tmp_path, tmp_path / "summary")

    def run(inputs):
        return cache.run("part/one", inputs, [action.path], action)

    run({"a": 1})
    (tmp_path / "summary").touch()
    return action, run, tmp_path


def test_step_is_rerun_if_its_inputs_changed(finished):
    action, run, folder = finished
    first = run({"a": 1})
    assert first.values == {"runs": 1} and action.runs == 1 and (folder / "summary").exists()
    assert run({"a": 2}).digest != first.digest
    assert action.runs == 2 and not (folder / "summary").exists()


@pytest.mark.parametrize("change", ["remove output", "edit output", "edit date", "cut stamp"])
def test_step_is_rerun_if_its_files_changed(finished, change):
    action, run, folder = finished
    stamp = folder / ".stamps" / "part.one.json"
    if change == "remove output":
        action.path.unlink()
    elif change == "edit output":
        action.path.write_text("edited")
    elif change == "edit date":
        os.utime(action.path, ns=(10**18, 10**18))
    else:
        stamp.write_text(stamp.read_text()[:20])
    assert run({"a": 1}).values == {"runs": 2} and action.path.read_text() == "made"


def test_files_added_to_an_output_folder_are_ignored(tmp_path):
    output, runs, cache = tmp_path / "data-bin", [], StepCache(tmp_path, tmp_path / "summary")

    def action():
        runs.append(1)
        output.mkdir(exist_ok=True)
        (output / "train.bin").write_text("made")

    cache.run("data-bin", {}, [output], action)
    (output / "train.similar.npy").write_text("added")
    cache.run("data-bin", {}, [output], action)
    assert len(runs) == 1 and (output / "train.similar.npy").exists()
    (output / "train.bin").unlink()
    cache.run("data-bin", {}, [output], action)
    assert len(runs) == 2
