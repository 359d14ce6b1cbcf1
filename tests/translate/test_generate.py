"""docnmt generate prints what fairseq-generate prints in one process."""

import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace

import pytest

from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.files import FilesByTurns
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import generated_share, generating
from docnmt_fairseq.translate.begun import states
from docnmt_fairseq.translate.generated_share import configuration, read_share, write_share
from docnmt_fairseq.translate.generating import put_together
from docnmt_fairseq.translate.shards import Shard
from tests.support import toy
from tests.support.architectures import ARCHITECTURES, Architecture
from tests.support.jobs import manifest

SEARCH = ["--beam", "3", "--max-len-b", "10", "--nbest", "2", "--batch-size", "1"]  # a document a batch
STOCK = Architecture([], arch="transformer", task="translation")
QUICK = {
    "stock": STOCK,
    **{name: ARCHITECTURES[name] for name in ("conditional, block", "target han", "concatenation")},
}
MORE = ("memory gru", "tree, block", "rnn gru")


def arguments(data_bin, trained, folder, *more, task="document_translation"):
    return [*toy.translating(data_bin, trained, task), *SEARCH, *more, "--results-path", str(folder)]


def in_shares(given, number, folder):
    """What comes of the shares of a command line, put together; all in this process."""
    shares = [folder / f"share{one}" for one in range(number)]
    for one, share in enumerate(shares):
        write_share(given, Shard(one + 1, number), share)
    put_together(configuration(given), shares, folder / "whole")
    return (folder / "whole").read_text()


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)  # fmt: skip
def test_shares_together_are_what_one_process_prints(data_bin, tmp_path, monkeypatch, name):
    monkeypatch.setattr("docnmt_fairseq.corpus.files.OPEN", 2)
    model = QUICK.get(name) or ARCHITECTURES[name]
    trained = toy.train(data_bin, tmp_path, *model.options, "--max-update", "3", **model.kind)
    one = toy.generate_text(data_bin, trained, *SEARCH, task=model.task)
    assert one.count("\nH-") > 11 and one.splitlines()[-1].startswith("Generate test with beam=3: BLEU4 =")
    given = arguments(data_bin, trained, tmp_path, task=model.task)
    for number in (4, 2) if name == "conditional, block" else (2,):  # of 4 shares one has nothing
        assert in_shares(given, number, tmp_path) == one
    with FilesByTurns() as files:
        shares = [read_share(tmp_path / f"share{share}", files) for share in range(2)]
        numbers = [[batch.number for batch in share] for share in shares]
    assert numbers[0][:2] == [0, 2] and numbers[1][:1] == [1], "the shares follow each other, which proves nothing"


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    return toy.train(data_bin, tmp_path_factory.mktemp("model"), "--max-update", "3")


@pytest.mark.parametrize(
    "more",
    [
        ["--scoring", "sacrebleu"], ["--scoring", "chrf"], ["--remove-bpe", "--lenpen", "0.5"], ["--quiet"],
        ["--print-alignment", "hard"], ["--score-reference", "--nbest", "1"], ["--gen-subset", "valid"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_score_is_of_all_shares(data_bin, checkpoint, tmp_path, more):
    one = toy.generate_text(data_bin, checkpoint, *SEARCH, *more)
    assert in_shares(arguments(data_bin, checkpoint, tmp_path, *more), 2, tmp_path) == one


def test_a_share_in_which_something_fails_is_not_taken_for_one_without_batches(data_bin, tmp_path, monkeypatch):
    def fail(cfg, output):
        list(generated_share.command.progress_bar.progress_bar([{"net_input": {}}]))
        raise ZeroDivisionError

    monkeypatch.setattr(generated_share.command, "_main", fail)
    with pytest.raises(ZeroDivisionError):
        write_share(arguments(data_bin, "model.pt", tmp_path), Shard(1, 2), tmp_path / "share")
    assert not (tmp_path / "share").exists()


@pytest.mark.slow
def test_the_command_writes_what_fairseqs_own_writes(data_bin, checkpoint, tmp_path, capsys):
    own = [sys.executable, "-m", "fairseq_cli.generate", *arguments(data_bin, checkpoint, tmp_path / "one")]
    subprocess.run(own, check=True, capture_output=True)
    one = (tmp_path / "one" / "generate-test.txt").read_text()
    assert main(["generate", "--shards", "2", "--workers", "1", *arguments(data_bin, checkpoint, tmp_path)]) == 0
    output = tmp_path / "generate-test.txt"
    assert capsys.readouterr().out == f"{output}\n"
    assert output.read_text() == re.sub(r"^\d{4}-.* \| (INFO|WARNING) \| .*\n", "", one, flags=re.MULTILINE)
    told = manifest(tmp_path / "generate-test.txt.jobs")
    assert [one["state"] for one in told.values()] == ["done", "done"]
    assert not (tmp_path / "generate-test.txt.jobs" / "shares").exists()


def test_shares_of_other_work_are_not_taken(data_bin, checkpoint, tmp_path, monkeypatch):
    from docnmt_fairseq.translate import generating

    begun = []
    monkeypatch.setattr(generating, "run_jobs", lambda jobs, *more, **named: begun.append(jobs))
    data = shutil.copytree(data_bin, tmp_path / "data-bin")

    def begin(beam):
        """Whether a share that was there is taken."""
        generating.generate(arguments(data, checkpoint, tmp_path, "--beam", beam), 2, Namespace())
        share = begun[-1][0].done
        there = share.exists()
        share.touch()
        return there

    assert [begin(beam) for beam in ("2", "2", "3")] == [False, True, False]
    (data / "test.src-tgt.src.index.npy").write_bytes(b"the index that a share wrote")
    assert begin("3")
    for name in ("test.src-tgt.src.idx", "test.src-tgt.tgt.bin", "dict.src.txt"):
        status = (data / name).stat()
        os.utime(data / name, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
        assert (name, begin("3"), begin("3")) == (name, False, True)
    (tmp_path / "test.image.npy").write_bytes(b"features, around the data-bin")
    assert [begin("3"), begin("3")] == [False, True]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sampling", "--nbest", "3"], "--sampling: what a process draws"),
        (["--path", "nothing.pt"], "--path nothing.pt: no such file"),
    ],
)
def test_what_cannot_be_is_said(data_bin, checkpoint, tmp_path, capsys, more, message):
    assert main(["generate", "--shards", "2", *arguments(data_bin, checkpoint, tmp_path, *more)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("half", [["--shard", "1"], ["--share", "x"]])
def test_a_share_needs_its_number_and_its_file(capsys, half):
    assert main(["generate", "--shards", "2", *half, "data-bin"]) == 2
    assert "--shard and --share go together" in capsys.readouterr().err


def test_results_need_a_place(data_bin, checkpoint, capsys):
    assert main(["generate", "--shards", "2", *toy.translating(data_bin, checkpoint, "document_translation")]) == 2
    assert "--results-path: give the folder" in capsys.readouterr().err


def test_a_damaged_share_is_named(tmp_path):
    (tmp_path / "share").write_text('{"number": 0, "text": "", "scored": []}\n{"numb')
    with pytest.raises(InputError, match=r"share:2: damaged; remove it"):
        list(read_share(tmp_path / "share", FilesByTurns()))


@pytest.mark.parametrize("date", [10**16, 4 * 10**18])
def test_shares_of_another_model_are_not_gone_on_with_whatever_its_date(tmp_path, date):
    model, shares = tmp_path / "model.pt", tmp_path / "shares"

    def begin():
        generating._begin(shares, states([model]))

    model.write_bytes(b"one")
    begin()
    (shares / "share").touch()
    begin()
    assert (shares / "share").exists()
    model.write_bytes(b"two")
    os.utime(model, ns=(date, date))
    begin()
    assert not (shares / "share").exists()
