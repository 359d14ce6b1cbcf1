"""Checkpoints are there whole or not at all, and damaged ones are named."""

import errno
import io
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from docnmt_fairseq import checkpoint_files
from docnmt_fairseq.checkpoints import read_checkpoint
from docnmt_fairseq.errors import InputError
from tests.support import toy

SAVED = {"model": {"weight": torch.arange(5000.0)}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(checkpoint_files, "PAUSE", 0)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def full_after(writes):
    """A torch.save that writes something and then fails as on a full disk, in its first calls."""
    real, left = torch.save, [writes]

    def save(checkpoint, stream):
        if left[0]:
            left[0] -= 1
            stream.write(b"PK\3\4 something")
            raise OSError(errno.ENOSPC, "No space left on device")
        real(checkpoint, stream)

    return save


def test_a_save_that_fails_once_leaves_a_whole_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint_last.pt"
    monkeypatch.setattr(torch, "save", full_after(1))
    checkpoint_utils.torch_persistent_save(SAVED, str(path))
    assert torch.equal(torch.load(path)["model"]["weight"], SAVED["model"]["weight"])
    assert names(tmp_path) == ["checkpoint_last.pt"]


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint_last.pt"
    checkpoint_utils.torch_persistent_save(SAVED, str(path))
    before = path.read_bytes()
    monkeypatch.setattr(torch, "save", full_after(9))
    with pytest.raises(InputError, match=r"checkpoint_last.pt: cannot be written: No space left .* MB are free"):
        checkpoint_utils.torch_persistent_save({}, str(path))
    assert path.read_bytes() == before and names(tmp_path) == ["checkpoint_last.pt"]


def test_a_file_system_that_has_become_read_only_is_told(tmp_path, monkeypatch):
    """It lets nobody remove what was begun, either."""
    path = tmp_path / "checkpoint_last.pt"
    checkpoint_utils.torch_persistent_save(SAVED, str(path))

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(torch, "save", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(InputError, match=r"checkpoint_last.pt: cannot be written: Read-only file system"):
        checkpoint_utils.torch_persistent_save({}, str(path))
    assert torch.load(path).keys() == SAVED.keys()


def test_a_copy_that_is_killed_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    best, last = tmp_path / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt"
    best.write_bytes(b"new" * 1000)
    last.write_bytes(b"old")

    class Killed(BaseException):
        pass

    def some(source, target, length=0):
        target.write(source.read(5))
        raise Killed

    monkeypatch.setattr(shutil, "copyfileobj", some)
    with pytest.raises(Killed):
        PathManager.copy(str(best), str(last), overwrite=True)
    assert last.read_bytes() == b"old"
    monkeypatch.undo()
    assert PathManager.copy(str(best), str(last), overwrite=True)
    assert last.read_bytes() == best.read_bytes()


def test_a_folder_that_is_gone_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone/checkpoint_last.pt: cannot be written: .*gone is gone; make it again"):
        checkpoint_utils.torch_persistent_save(SAVED, str(tmp_path / "gone" / "checkpoint_last.pt"))


@pytest.fixture(scope="module")
def trained(data_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    toy.train(data_bin, folder, "--max-update", "3")
    return folder


def damaged(content, how):
    if how == "truncated":
        return content[: len(content) // 2]
    if how == "empty":
        return b""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:  # in a tensor: between members there is only padding
        members = [member for member in archive.infolist() if "/data/" in member.filename]
        member = max(members, key=lambda member: member.file_size)
        place = content.index(archive.read(member), member.header_offset) + member.file_size // 2
    return content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :]


@pytest.mark.parametrize("how", ["truncated", "empty", "bit"])
def test_training_goes_on_from_no_damaged_checkpoint(data_bin, trained, tmp_path, how):
    content = (trained / "checkpoint_last.pt").read_bytes()
    (tmp_path / "checkpoint_last.pt").write_bytes(damaged(content, how))
    with pytest.raises(InputError, match=r"checkpoint_last.pt: damaged.*name another one: --restore-file"):
        toy.train(data_bin, tmp_path, "--max-update", "4")
    shutil.copyfile(trained / "checkpoint_last.pt", tmp_path / "whole.pt")
    toy.train(data_bin, tmp_path, "--max-update", "4", "--restore-file", str(tmp_path / "whole.pt"))


def test_a_checkpoint_that_memory_does_not_hold_is_not_told_to_be_damaged(data_bin, trained, tmp_path, monkeypatch):
    def too_large(*_, **__):
        raise MemoryError

    shutil.copytree(trained, tmp_path / "model")
    monkeypatch.setattr(torch, "load", too_large)
    with pytest.raises(MemoryError):
        toy.train(data_bin, tmp_path / "model", "--max-update", "4")


def test_a_bit_of_a_weight_is_noticed_when_translating_too(trained, tmp_path):
    content = (trained / "checkpoint_last.pt").read_bytes()
    (tmp_path / "damaged.pt").write_bytes(damaged(content, "bit"))
    with pytest.raises(InputError, match=r"--path .*damaged.pt: damaged: its checksum of .*data/\d+ is that of"):
        read_checkpoint(tmp_path / "damaged.pt")


@pytest.mark.parametrize("content", [b"", b"text\n", b"PK\x03\x04"])
def test_what_is_no_checkpoint_is_named_when_translating_too(data_bin, tmp_path, content):
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.pt: not a checkpoint, or one that cannot be loaded safely \("):
        toy.generate(data_bin, tmp_path / "model.pt")


def test_training_makes_a_folder_anew_that_vanished(data_bin, tmp_path, monkeypatch):
    folder, real, saves = tmp_path / "model", checkpoint_utils.save_checkpoint, []

    def vanishing(cfg, trainer, *arguments):
        if saves:
            shutil.rmtree(folder)
        saves.append(trainer.get_num_updates())
        real(cfg, trainer, *arguments)

    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", vanishing)
    toy.train(data_bin, folder, "--max-update", "4", "--save-interval-updates", "2")
    assert len(saves) > 1
    monkeypatch.undo()
    toy.assert_same_state(folder / "checkpoint_last.pt", toy.train(data_bin, tmp_path / "other", "--max-update", "4"))


def test_checkpoints_in_the_place_of_a_file(data_bin, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"--save-dir \S*notes.txt: cannot be written: Not a directory"):
        toy.train(data_bin, tmp_path / "notes.txt", "--max-update", "1")
