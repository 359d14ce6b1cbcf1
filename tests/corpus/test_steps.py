import json
import os

import pytest

from docnmt_fairseq.corpus.steps import Steps


class Counted:
    """Writes a file and counts how often."""

    def __init__(self, path):
        self.path = path
        self.runs = 0

    def __call__(self):
        self.runs += 1
        self.path.write_text("made")
        return {"runs": self.runs}


@pytest.fixture
def made(tmp_path):
    action = Counted(tmp_path / "out")
    steps = Steps(tmp_path, tmp_path / "summary")

    def run(inputs):
        return steps.run("part/one", inputs, [action.path], action)

    run({"a": 1})
    (tmp_path / "summary").write_text("all done")
    return action, run, tmp_path


def test_finished_step_is_skipped_with_its_values(made):
    action, run, folder = made
    assert run({"a": 1}).values == {"runs": 1}
    assert action.runs == 1 and (folder / "summary").exists()


def test_changed_inputs_redo_and_change_the_digest(made):
    action, run, folder = made
    assert run({"a": 1}).digest != run({"a": 2}).digest
    assert action.runs == 2 and not (folder / "summary").exists()


@pytest.mark.parametrize("harm", ["remove output", "edit output", "remove stamp", "cut stamp", "outputs", "runs"])
def test_half_finished_or_touched_step_is_redone(made, harm):
    action, run, folder = made
    stamp = folder / ".stamps" / "part.one.json"
    if harm == "remove output":
        action.path.unlink()
    elif harm == "edit output":
        action.path.write_text("edited")
    elif harm == "remove stamp":
        stamp.unlink()
    elif harm in stamp.read_text():
        stamp.write_text(stamp.read_text().replace(f'"{harm}"', '"else"'))
    else:
        stamp.write_text(stamp.read_text()[:20])
    run({"a": 1})
    assert action.runs == 2 and action.path.read_text() == "made"
    assert json.loads(stamp.read_text())["values"] == {"runs": 2}
    assert not (folder / "summary").exists()


def test_stamps_from_before_there_were_sums_hold(made):
    action, run, folder = made
    stamp = folder / ".stamps" / "part.one.json"
    content = json.loads(stamp.read_text())
    del content["sum"]
    stamp.write_text(json.dumps(content))
    assert run({"a": 1}).values == {"runs": 1} and action.runs == 1


@pytest.mark.parametrize("year", [1971, 2100])
def test_no_date_makes_an_edited_output_count_as_made(made, year):
    action, run, folder = made
    date = (year - 1970) * 31_556_952 * 10**9
    action.path.write_text("edit")  # as long as what was made
    os.utime(action.path, ns=(date, date))
    run({"a": 1})
    assert action.runs == 2 and action.path.read_text() == "made"
    os.utime(folder / ".stamps" / "part.one.json", ns=(date, date))  # the stamp's own date says nothing
    run({"a": 1})
    assert action.runs == 2


def test_failing_step_leaves_no_stamp(made):
    _, _, folder = made

    def fail():
        raise RuntimeError("killed")

    steps = Steps(folder, folder / "summary")
    with pytest.raises(RuntimeError):
        steps.run("part/one", {"a": 2}, [folder / "out"], fail)
    assert not (folder / ".stamps" / "part.one.json").exists() and not (folder / "summary").exists()


def test_what_others_put_into_a_folder_stays(tmp_path):
    output, runs = tmp_path / "data-bin", []

    def action():
        runs.append(1)
        output.mkdir(exist_ok=True)
        (output / "train.bin").write_text("made")

    steps = Steps(tmp_path, tmp_path / "summary")
    steps.run("data-bin", {}, [output], action)
    (output / "train.similar.npy").write_text("added")
    steps.run("data-bin", {}, [output], action)
    assert len(runs) == 1 and (output / "train.similar.npy").exists()
    (output / "train.bin").unlink()
    steps.run("data-bin", {}, [output], action)
    steps.run("data-bin", {}, [output, tmp_path / "more"], action)
    assert len(runs) == 3


def test_files_that_the_step_does_not_write_any_more_go(tmp_path):
    steps = Steps(tmp_path, tmp_path / "summary")

    def run(*names):
        paths = [tmp_path / name for name in names]
        return steps.run("text", {"names": names}, paths, lambda: [path.write_text("made") for path in paths] and None)

    run("a", "b", "c")
    (tmp_path / "c").write_text("mine")
    (tmp_path / "d").write_text("mine, too")
    run("a", "e")
    assert {path.name for path in tmp_path.iterdir()} == {".stamps", "a", "c", "d", "e"}
    (tmp_path / "folder").mkdir()
    run("folder/a")
    steps.run("text", {}, [tmp_path / "folder"], lambda: None)
    assert (tmp_path / "folder" / "a").exists()  # within what is written: whoever writes it says what is in it
