"""Names of files on command lines: empty ones, and outputs that are inputs."""

import errno
import io
import json
import os
import sys

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.cli import score

TEXT = "a b c\n\nd e\n"
SCORE = ["score", "--reference", "ref", "--system", "a=sys"]


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "sys"):
        (tmp_path / name).write_text(TEXT)
    (tmp_path / "link").symlink_to("ref")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (SCORE, "ref"),
        (SCORE, "./sys"),
        (SCORE, "link"),
        (["compare", "--reference", "ref", "--system", "a=sys", "--system", "b=ref"], "sys"),
        (["edits", "make", "--translation", "sys", "--edited", "ref"], "sys"),
    ],
)
def test_what_is_read_is_not_written(command, output, texts, capsys):
    assert cli.main([*command, "--output", output]) == 2
    error = capsys.readouterr().err
    assert f"--output {output.removeprefix('./')}: is " in error and "which is read" in error
    assert {(texts / name).read_text() for name in ("ref", "sys")} == {TEXT}


def test_an_earlier_report_is_replaced(texts):
    for output in (["--output", "report"], ["--output", "report"], ["--output=report"]):
        assert cli.main([*SCORE, *output]) == 0


@pytest.mark.parametrize("command", [[*SCORE, "--output", ""], ["translate", "--path", "m", "--input", ""]])
def test_an_empty_name_of_a_path_is_refused(command, capsys):
    with pytest.raises(SystemExit):
        cli.main(command)
    assert "put: an empty name; give one, '.' for this folder" in capsys.readouterr().err


def test_prepare_does_not_take_an_empty_name_for_this_folder(texts, capsys):
    text = ["-s", "x", "-t", "y", "--train", "ref", "sys"]
    assert cli.main(["prepare", *text, "--subwords", "none", "--output", ""]) == 2
    assert "--output and --reuse: an empty name" in capsys.readouterr().err
    assert not (texts / "manifest.json").exists()


@pytest.fixture
def pipe(texts):
    """A pipe that holds the text of ``ref``, as ``<(cat ref)`` does."""
    reader, writer = os.pipe()
    os.write(writer, TEXT.encode())
    os.close(writer)
    yield f"/dev/fd/{reader}"
    os.close(reader)


@pytest.mark.parametrize(
    "command",
    [
        ["score", "--reference", "PIPE", "--system", "a=sys"],
        ["prepare", "-s", "x", "-t", "y", "--subwords", "none", "--train", "PIPE", "sys", "--output", "data"],
        ["embed", "fit", "--vectors", "vectors", "--corpus", "PIPE", "--method", "sif", "--output", "model"],
        ["embed", "transform", "--model", "fitted", "--input", "PIPE", "--output", "vectors.npy"],
        ["edits", "apply", "--translation", "PIPE", "--log", "log", "--output", "edited"],
    ],
)
def test_a_pipe_in_the_place_of_what_is_read_twice_is_refused(command, texts, pipe, capsys):
    (texts / "log").write_text("H-0\t0\t<keep>\nH-2\t0\t<keep>\n")
    (texts / "vectors").write_text("".join(f"{word} 0.{number} 1\n" for number, word in enumerate("abcde")))
    assert cli.main(["embed", "fit", "--vectors", "vectors", "--corpus", "ref", "--output", "fitted"]) == 0
    capsys.readouterr()
    before = {path.name for path in texts.iterdir()}
    assert cli.main([word.replace("PIPE", pipe) for word in command]) == 2
    assert f"{pipe}: is a pipe or a device, which can be read only once; give a file" in capsys.readouterr().err
    assert {path.name for path in texts.iterdir()} - before <= {"data"}


def test_a_translation_may_be_a_pipe(pipe):
    assert cli.main(["score", "--reference", "ref", "--system", f"a={pipe}"]) == 0


def test_a_file_that_the_system_refuses_is_told_in_a_line(monkeypatch, capsys):
    def refused(*name):
        def run(args):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), *name)

        monkeypatch.setattr(score, "run", run)

    refused("folder/file")
    assert cli.main(SCORE) == 2
    assert "docnmt score: error: folder/file: Permission denied; see to it" in capsys.readouterr().err
    refused()
    with pytest.raises(PermissionError):
        cli.main(SCORE)


def test_names_that_are_no_utf_8(texts, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="utf-8"))
    name = os.fsdecode(b"caf\xe9")
    for side in ("x", "y"):
        (texts / f"{name}.{side}").write_text(TEXT)
    command = ["prepare", "-s", "x", "-t", "y", "--subwords", "none", "--train", name, "--output", f"{name}-data"]
    assert cli.main(command) == 0
    reusing = ["prepare", "-s", "x", "-t", "y", "--train", name, "--output", "again", "--reuse", f"{name}-data"]
    assert cli.main(reusing) == 0
    assert b"caf\xe9-data/data-bin\n" in printed.getvalue()
    manifest = json.loads((texts / f"{name}-data" / "manifest.json").read_text())
    assert manifest["inputs"]["train"][0]["path"].endswith(f"{name}.x")


@pytest.mark.parametrize("format", ["text", "markdown", "json"])
def test_a_report_is_written_whatever_is_called_in_it(texts, format):
    items, report = os.fsdecode(b"caf\xe9.json"), texts / "report"
    (texts / items).write_text(json.dumps([{"src segment": "a", "expected": "a", "rule": "r"}]))
    (texts / "translations").write_text("a\n")
    judging = ["contrast", "--set", "ctxpro", "--items", items, "--translations", "translations", "--format", format]
    assert cli.main([*judging, "--output", str(report)]) == 0
    text = report.read_text(encoding="utf-8")
    assert json.loads(text)["about"]["file"] == items if format == "json" else "file: caf\\udce9.json" in text
