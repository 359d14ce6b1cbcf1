"""A translation shared out among jobs of an engine."""

import json
import os
import sys
from pathlib import Path

import pytest

from docnmt_fairseq.cli import main
from docnmt_fairseq.cli import translate as command
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import sharded
from docnmt_fairseq.translate.request import Request
from docnmt_fairseq.translate.sharded import translate_in_shards
from docnmt_fairseq.translate.shards import Shard
from tests.support import toy
from tests.support.interrupted import SETTINGS, TEXT, WANTED, names, run
from tests.support.jobs import engine, fake_slurm
from tests.support.texts import Stub

# docnmt translate with capital letters for a model. Where a file kill-I is there, the I-th shard dies after a part of
# its work has been written, once; where die-I is there, it always does.
STAND_IN = """
import os, signal, sys
from pathlib import Path
from docnmt_fairseq.cli import build_parser
from docnmt_fairseq.cli._texts import request_of, settings_of
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.texts import texts_of
from tests.support.interrupted import Scoring
args = build_parser().parse_args(sys.argv[1:])
here = args.output.parent
files.TOGETHER = 4
class Mortal(Scoring):
    def translate(self, documents, *more):
        with open(here / f"seen-{args.shard}", "a") as seen:
            seen.write("".join(f"{line}\\n" for document in documents for line in document))
        if list((here / "out.jobs").parent.glob("out*.partial.json")):
            if (here / f"die-{args.shard}").exists():
                sys.exit("no more memory")
            if (here / f"kill-{args.shard}").exists():
                (here / f"kill-{args.shard}").unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().translate(documents, *more)
texts = texts_of(request_of(args))
settings = settings_of(args, {})
files.translate_files(texts, Mortal(), "document", lambda n: None, args.scores, resume=args.resume, settings=settings)
args.done.touch()
"""
PROGRAM = (sys.executable, "-c", STAND_IN)
ARGUMENTS = ["--path", "model", "--scores"]


def translate(folder, shards, name="in", how="processes", settings=SETTINGS, **options):
    request = Request([folder / name], folder / "out", **options)
    arguments = [*ARGUMENTS, "--input", str(folder / name), "--output", str(folder / "out")]
    translate_in_shards(request, shards, arguments, engine(how), settings=settings, tries=2, program=PROGRAM)


def outputs(folder):
    """What is there of the translation, beside the folder of the work."""
    return sorted(name for name in names(folder) if name.startswith("out") and name != "out.jobs")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def test_a_killed_shard_goes_on_and_the_whole_is_put_together(folder):
    (folder / "kill-2").touch()
    translate(folder, 3)
    assert (folder / "out").read_text() == WANTED
    assert outputs(folder) == ["out", "out.scores.tsv"]
    told = json.loads((folder / "out.jobs" / "jobs.json").read_text())["jobs"]
    assert [(one["state"], one["tries"]) for one in told.values()] == [("done", 1), ("done", 2), ("done", 1)]
    seen = [line for line in (folder / "seen-2").read_text().splitlines() if line.startswith("document")]
    assert len(seen) == len(set(seen)) + 1, "it began anew, or did not die"
    with pytest.raises(InputError, match="is there already; --force replaces"):
        translate(folder, 3)
    before = (folder / "out.scores.tsv").read_bytes()
    translate(folder, 2, force=True)
    assert (folder / "out").read_text() == WANTED and (folder / "out.scores.tsv").read_bytes() == before


def test_failed_shards_are_named_and_resumed(folder):
    (folder / "die-1").touch()
    with pytest.raises(InputError, match="1 of 2 jobs failed") as error:
        translate(folder, 2)
    assert "shard-1-of-2: no more memory" in str(error.value)
    assert "out" not in outputs(folder)
    with pytest.raises(InputError, match="was interrupted; --resume goes on"):
        translate(folder, 2)
    with pytest.raises(InputError, match="was begun with another --shards; give what it"):
        translate(folder, 3, resume=True)
    (folder / "die-1").unlink()
    second = (folder / "seen-2").read_bytes()
    translate(folder, 2, resume=True)
    assert (folder / "out").read_text() == WANTED and outputs(folder) == ["out", "out.scores.tsv"]
    assert (folder / "seen-2").read_bytes() == second, "a shard that was done was done again"


def test_parts_of_two_works_never_become_one_file(folder):
    (folder / "die-2").touch()
    with pytest.raises(InputError, match="1 of 2 jobs failed"):
        translate(folder, 2)
    (folder / "die-2").unlink()
    begun = (folder / "in").stat().st_mtime_ns
    (folder / "in").write_text(TEXT.replace("third", "fourth"))
    with pytest.raises(InputError, match=f"was begun with another {folder / 'in'}; give what it was begun with"):
        translate(folder, 2, resume=True)
    (folder / "in").write_text(TEXT)
    os.utime(folder / "in", ns=(begun, begun))
    with pytest.raises(InputError, match="was begun with another --beam, model; give"):
        translate(folder, 2, resume=True, settings={**SETTINGS, "--beam": "4", "model": [1, 2]})
    translate(folder, 2, resume=True)
    assert (folder / "out").read_text() == WANTED


def test_parts_that_are_there_are_not_taken_unasked(folder):
    (folder / "out.shard-1-of-2").write_text("of another text\n")
    with pytest.raises(InputError, match=r"out\.shard-1-of-2: is there already; --force replaces"):
        translate(folder, 2)
    translate(folder, 2, force=True)
    assert (folder / "out").read_text() == WANTED


def test_parts_of_a_file_with_brackets_in_its_name_are_not_taken_unasked(folder):
    (folder / "out[1].shard-1-of-2").write_text("of another text\n")
    with pytest.raises(InputError, match=r"out\[1\]\.shard-1-of-2: is there already"):
        translate_in_shards(Request([folder / "in"], folder / "out[1]"), 2, [], engine("processes"), settings=SETTINGS)


def test_work_that_was_begun_begins_anew_where_asked(folder, monkeypatch):
    begun = []
    monkeypatch.setattr(sharded, "run_jobs", lambda jobs, *_, **__: begun.append(jobs))
    translate(folder, 2)
    with pytest.raises(InputError, match="was interrupted; --resume goes on, --force begins anew"):
        translate(folder, 2)
    translate(folder, 3, force=True)
    assert [len(jobs) for jobs in begun] == [2, 3]
    counted = ["--counts", str(folder / "out.jobs" / "counts.npz")]  # which spares the jobs reading everything
    assert all(list(job.arguments)[-9:-7] == counted for jobs in begun for job in jobs)


def test_what_shards_that_end_at_once_leave_in_parts_is_put_together(folder, monkeypatch):
    def ended(*_, **__):
        for number in (1, 2):
            run(folder, Stub(), output=f"machine-{number}/out", shard=Shard(number, 2))
            for file in (folder / f"machine-{number}").iterdir():
                file.rename(folder / file.name)
        return True

    monkeypatch.setattr(sharded, "run_jobs", lambda *_, **__: True)
    with pytest.raises(InputError, match="out: is missing although all shards are done; --resume tries again"):
        translate(folder, 2)
    monkeypatch.setattr(sharded, "run_jobs", ended)
    translate(folder, 2, resume=True)
    assert (folder / "out").read_text() == WANTED and outputs(folder) == ["out"]


def test_what_the_command_begins_with(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(command, "translate_in_shards", lambda *_, settings, **__: begun.append(settings))
    prepared = ("manifest.json", "models/subwords", "data-bin/dict.en.txt", "data-bin/similar.test.npz")
    depended_on = ["model", *(f"data/{name}" for name in prepared)]
    for name in (*depended_on, "data/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def begin(*more):
        given = ["--path", str(tmp_path / "model"), "--data", str(tmp_path / "data"), "--input", "x", "--output", "y"]
        assert main(["translate", *given, "--shards", "2", "--engine", "processes", *more]) == 0
        return begun[-1]

    first = begin()
    (tmp_path / "data" / "other").write_text("x")
    assert begin("--workers", "3", "--max-tokens", "7") == first, "nothing that translations depend on"
    assert begin("--beam", "2") != first
    for name in depended_on:
        before = begin()
        (tmp_path / name).write_text("x")
        assert begin() != before


@pytest.mark.parametrize("complete", [True, False])
def test_the_file_of_the_end_is_made_behind_the_jobs(tmp_path, monkeypatch, complete):
    monkeypatch.setattr(command, "translate_in_shards", lambda *_, **__: complete)
    given = ["--path", str(tmp_path / "model"), "--input", "x", "--output", "y", "--done", str(tmp_path / "done")]
    (tmp_path / "model").touch()
    assert main(["translate", *given, "--shards", "2", "--engine", "processes"]) == 0
    assert (tmp_path / "done").exists() == complete


def test_a_folder_as_an_array_of_slurm(folder, monkeypatch):
    fake_slurm(folder, monkeypatch)
    (folder / "texts" / "more").mkdir(parents=True)
    for name in ("a", "b", "more/c"):
        (folder / "texts" / name).write_text(f"{name}\n\n{TEXT}")
    translate(folder, 2, name="texts", how="slurm")
    found = {str(path.relative_to(folder / "out")): path.read_text() for path in (folder / "out").rglob("*")
             if path.is_file() and not path.name.endswith(".tsv")}  # fmt: skip
    assert found == {name: f"{name.upper()}\n\n{WANTED}" for name in ("a", "b", "more/c")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--shards", "2"], "give --engine, or --shard"),
        (["--shards", "2", "--shard", "1", "--engine", "processes"], "--shard 1: not with --engine"),
        (["--workers", "2"], "--workers: needs --engine"),
        (["--slurm-time", "1:00", "--engine", "processes"], "--slurm-time: not with --engine processes"),
        (["--tries", "0", "--engine", "processes"], "--tries 0: at least 1"),
        (["--shards", "0", "--engine", "processes"], "--shards 0: at least 1"),
        (["--shards", "2", "--engine", "processes", "--context", "shuffled"], "--context shuffled: needs all"),
        (["--counts", "x"], "--counts: goes with --shard"),
        (["--engine", "processes"], "standard input and output have no shards"),
        (["--engine", "processes", "--input", __file__, "--output", "x"], "--engine: runs --shards of 2 or more"),
    ],
)
def test_options_that_do_not_go_together(given, message, capsys):
    assert main(["translate", "--path", "x", *given]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_shards_of_a_model_equal_one_run(data_bin, prepared, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path / "model", "--max-update", "3")
    lines = "a b c\nc a\n\nb b a\n<p>\nc\n\n" * 9
    (tmp_path / "in").write_text(lines)
    fixed = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--cpu", "--input", str(tmp_path / "in")]
    assert main([*fixed, "--output", str(tmp_path / "one")]) == 0
    engines = ["--shards", "2", "--engine", "processes"]
    assert main([*fixed, "--output", str(tmp_path / "two"), *engines]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert not list((tmp_path / "two.jobs").glob("done"))
