"""Parallel translation: shards in processes, their parts joined."""

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.cli import translate as command
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import parallel
from docnmt_fairseq.translate.inputs import Request, Shard
from docnmt_fairseq.translate.parallel import JobOptions, run_commands, translate_in_parallel
from tests.support import toy
from tests.support.translated_files import EXPECTED, TEXT, Scoring, names, run, table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with an input; workers run in this process, and those in ``failing`` raise an error."""
    (tmp_path / "in").write_text(TEXT)
    monkeypatch.setattr(parallel, "run_commands", lambda commands, *_: run_here(tmp_path, commands))
    return tmp_path


failing = set()


def run_here(folder, commands):
    for name, arguments in commands.items():
        if name not in failing:
            assert "--resume" in arguments
            run(folder, Scoring(), scores=True, resume=True, shard=Shard.parse(arguments[-1]))
    if failing:
        raise InputError("workers failed")


def translate(folder, workers, fingerprint="x", **options):
    request = Request([folder / "in"], folder / "out", **options)
    translate_in_parallel(request, ["translate"], JobOptions(workers=workers), fingerprint)


def test_parts_are_joined(folder):
    translate(folder, 3)
    assert names(folder) == ["in", "out", "out.scores.tsv"]
    assert (folder / "out").read_text() == EXPECTED
    assert (folder / "out.scores.tsv").read_text() == table(EXPECTED.splitlines())
    with pytest.raises(InputError):
        translate(folder, 3)


def test_failed_workers_are_resumed_with_the_same_settings_only(folder, monkeypatch):
    failing.add("shard-2-of-2")
    with pytest.raises(InputError):
        translate(folder, 2)
    failing.clear()
    assert "out" not in names(folder) and "out.shard-1-of-2" in names(folder)
    for options in ({}, {"resume": True, "fingerprint": "other"}):
        with pytest.raises(InputError):
            translate(folder, 2, **options)
    with pytest.raises(InputError):
        translate(folder, 3, resume=True)
    translate(folder, 2, resume=True)
    assert names(folder) == ["in", "out", "out.scores.tsv"] and (folder / "out").read_text() == EXPECTED


def test_existing_parts_are_removed_only_on_request(folder):
    (folder / "out.shard-1-of-2").write_text("of another text\n")
    with pytest.raises(InputError):
        translate(folder, 2)
    translate(folder, 2, force=True)
    assert (folder / "out").read_text() == EXPECTED


def test_run_commands_reports_failures(tmp_path):
    commands = {"good": ["--version"], "bad": ["translate"], "other": ["--version"]}
    with pytest.raises(InputError) as error:
        run_commands(commands, JobOptions(workers=3), tmp_path / "logs")
    assert "bad: docnmt translate: error" in str(error.value) and "--path" in str(error.value)
    assert "docnmt_fairseq" in (tmp_path / "logs" / "other.log").read_text()
    with pytest.raises(InputError):
        run_commands(commands, JobOptions(workers=9, job_gpus=9), tmp_path / "logs")


@pytest.mark.slow
def test_ray_runs_and_retries_commands(tmp_path):
    pytest.importorskip("ray")
    options = JobOptions(engine="ray", workers=2, max_retries=1)
    with pytest.raises(InputError):
        run_commands({"good": ["--version"], "bad": ["translate"]}, options, tmp_path)
    assert (tmp_path / "bad.log").read_text().count("error: ") == 2


@pytest.mark.parametrize("leading", [[], ["--user-dir", "translate"], ["--user-dir=translate"]])
def test_workers_get_the_other_options(leading):
    own = ["--path", "translate", "--input", "x", "--output", "y"]
    given = [*leading, "translate", *own, "--engine", "ray", "--workers", "3", "--force"]
    args = cli.build_parser().parse_args(given)
    args.arguments = given
    assert command._worker_arguments(args)[-7:] == ["translate", *own]


@pytest.mark.slow
def test_workers_equal_one_process(data_bin, prepared, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path / "model", "--max-update", "3")
    (tmp_path / "in").write_text("a b c\nc a\n\nb b a\n<p>\nc\n\n" * 9)
    fixed = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--cpu", "--input", str(tmp_path / "in")]
    assert cli.main([*fixed, "--output", str(tmp_path / "one")]) == 0
    assert cli.main([*fixed, "--output", str(tmp_path / "two"), "--workers", "2"]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert names(tmp_path) == ["in", "model", "one", "two"]
