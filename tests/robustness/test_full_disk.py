"""A disk without room: one line that says so, nothing half-written under a final name; with more room it goes on."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.robustness import commands, kills
from docnmt_fairseq.cli import main
from docnmt_fairseq.data.npy_files import npy_on_disk
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.locks import holding, in_folder
from tests.support import toy
from tests.support.documents import write_data_bin

SIZE = 3 << 20


@pytest.fixture
def disk(tmp_path):
    """A folder on a disk of its own, of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk, left):
    """Leaves so many bytes."""
    with open(disk / "filler", "wb") as stream:
        stream.write(bytes(shutil.disk_usage(disk).free - left))


def said(capsys):
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err.strip().splitlines()[-1]


def unfinished(folder):
    return [path for path in folder.rglob("*") if path.name.endswith((".partial", ".tmp"))]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    commands.corpus(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("left", [4 << 10, 24 << 10, 80 << 10, 180 << 10, 260 << 10, 330 << 10])
def test_prepare(disk, text, tmp_path, capsys, left):
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(text / split))]
    command = [
        "prepare",
        "-s",
        "src",
        "-t",
        "tgt",
        *splits,
        "--tokenizer",
        "moses",
        "--truecase",
        "--vocab-size",
        "150",
    ]
    fill(disk, left)
    capsys.readouterr()
    status = main([*command, "--output", str(disk / "data")])
    assert status or left > 100 << 10
    if status:
        assert "No space left on device" in (line := said(capsys)) and str(disk) in line
        assert not (disk / "data" / "manifest.json").exists()
    (disk / "filler").unlink()
    assert not main([*command, "--output", str(disk / "data")])
    assert not main([*command, "--output", str(tmp_path / "whole")])
    digests = [kills.digest_of_files(folder) for folder in (disk / "data", tmp_path / "whole")]
    assert digests[0] == digests[1]


def test_train(disk, data_bin, monkeypatch):
    from docnmt_fairseq import checkpoint_files

    monkeypatch.setattr(checkpoint_files, "PAUSE", 0)
    toy.train(data_bin, disk / "model", "--max-update", "2")
    before = (disk / "model" / "checkpoint_last.pt").read_bytes()
    fill(disk, len(before) // 2)
    with pytest.raises(InputError, match=r"model/checkpoint.*\.pt: cannot be written: .*MB are free.*make room"):
        toy.train(data_bin, disk / "model", "--max-update", "4")
    assert (disk / "model" / "checkpoint_last.pt").read_bytes() == before and not unfinished(disk)
    (disk / "filler").unlink()
    toy.train(data_bin, disk / "model", "--max-update", "4")


def test_an_index_is_not_kept(disk, tmp_path):
    """In a process of its own, as a mapped file would end this one."""
    made = write_data_bin(tmp_path, {"train": [[["a", "b"], ["c"]]] * 5000})
    data = shutil.copytree(made, disk / "data-bin")
    fill(disk, 64 << 10)  # some of the index has room
    code = "import sys; from pathlib import Path; from docnmt_fairseq.data.kept_index import keep_indexes\n"
    code += "import logging; logging.basicConfig(level='INFO'); keep_indexes(Path(sys.argv[1]), ('src', 'tgt'))"
    ended = subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, text=True)
    assert ended.returncode == 0 and "cannot be written (No space left on device)" in ended.stderr
    assert not list(data.glob("*.index.npy")) and not list(data.glob(".*"))


def test_an_array_without_room_is_refused_before_it_is_filled(disk):
    refused = pytest.raises(InputError, match=r"values\.npy.*: cannot be written: No space left")
    with refused, npy_on_disk(disk / "values.npy", (2 * SIZE,), np.int8):
        pytest.fail("this process would end by SIGBUS")
    assert not list(disk.iterdir())


def test_a_lock_without_room_is_no_lock_that_nobody_knows(disk):
    fill(disk, 0)
    refused = pytest.raises(InputError, match=r"x: .*\.lock cannot be written: No space left on device")
    with refused, holding(in_folder(disk), "x"):
        pytest.fail("it goes on without the lock")
    (disk / "filler").unlink()
    with holding(in_folder(disk), "x"):
        pass


def test_translate_and_score(disk, data_bin, tmp_path, capsys):
    data = toy.as_prepared(data_bin, tmp_path / "prepared")
    model = toy.train(data_bin, tmp_path / "model", "--max-update", "2")
    source = tmp_path / "in.src"
    source.write_text("a b c d\n\n" * 300)
    fill(disk, 4 << 10)
    command = ["translate", "--path", str(model), "--data", str(data), "--input", str(source), "--cpu", "--beam", "1"]
    command += ["--min-len", "20", "--max-len-b", "20", "--resume"]
    output = disk / "out.tgt"
    assert main([*command, "--output", str(output)])
    assert "No space left on device" in (line := said(capsys)) and str(disk) in line
    assert not output.exists()
    (disk / "filler").unlink()
    assert not main([*command, "--output", str(output)])
    assert not main([*command, "--output", str(tmp_path / "whole.tgt")])
    assert output.read_bytes() == (tmp_path / "whole.tgt").read_bytes()
    fill(disk, 0)
    capsys.readouterr()
    score = ["score", "--reference", str(output), "--system", f"a={output}"]
    assert main([*score, "--output", str(disk / "scores.txt")])
    assert "No space left on device" in said(capsys)
    assert not (disk / "scores.txt").exists()
