"""``docnmt edits``."""

from docnmt_fairseq import cli
from tests.support.documents import write_lines

TRANSLATION = ["the dog sleep", "<p>", "it is is black", "", "<keep> this"]
EDITED = ["the dog sleeps", "<p>", "it is black .", "", "delete this"]
OPERATIONS = ["<keep> <keep> sleeps <delete>", "<p>", "<keep> <delete> <keep> <keep> .", "", "delete <delete> <keep>"]


def edits(folder, action, **files):
    given = [text for option, file in files.items() for text in (f"--{option}", str(file))]
    translation = write_lines(folder / "mt", TRANSLATION)
    output = folder / "out"
    status = cli.main(["edits", action, "--translation", str(translation), "--output", str(output), *given])
    return status, output.read_text(encoding="utf-8").splitlines() if output.exists() else None


def test_make_and_apply(tmp_path):
    assert edits(tmp_path, "make", edited=write_lines(tmp_path / "pe", EDITED)) == (0, OPERATIONS)
    assert edits(tmp_path, "apply", operations=write_lines(tmp_path / "ops", OPERATIONS)) == (0, EDITED)


def test_operations_of_a_model(tmp_path):
    hypotheses = {4: "<delete> no", 0: "", 2: "<keep> " * 9}
    log = write_lines(tmp_path / "log", [f"H-{i}\t-0.5\t{text}" for i, text in hypotheses.items()])
    assert edits(tmp_path, "apply", log=log) == (0, ["the dog sleep", "<p>", "it is is black", "", "no this"])


def test_missing_line(tmp_path, capsys):
    assert edits(tmp_path, "make", edited=write_lines(tmp_path / "pe", EDITED[:3])) == (2, None)
    assert "mt:4: " in capsys.readouterr().err
