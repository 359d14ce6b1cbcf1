"""Atomic writing, fingerprints and locks."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from docnmt_fairseq import files
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import (
    atomic_folder,
    atomic_path,
    atomic_paths,
    file_lock,
    fingerprint,
    folder_lock,
    write_bytes,
)


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_files_appear_together_when_the_block_ends(tmp_path):
    targets = [tmp_path / "new" / name for name in ("one", "two")]
    with atomic_paths(*targets) as partials:
        for partial in partials:
            partial.write_text("x")
        assert names(tmp_path) == ["new", "one.partial", "two.partial"]
    assert names(tmp_path) == ["new", "one", "two"]


@pytest.mark.parametrize("error", [InputError("bad"), KeyError("bad"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("writing", [atomic_path, atomic_folder])
def test_after_an_error_nothing_changes(tmp_path, writing, error):
    write_bytes(tmp_path / "folder" / "old", b"x")
    target = tmp_path / "folder" / "old" if writing is atomic_path else tmp_path / "folder"
    with pytest.raises(type(error)), writing(target) as partial:
        (partial if writing is atomic_path else partial / "new").write_text("y")
        raise error
    assert names(tmp_path) == ["folder", "old"] and (tmp_path / "folder" / "old").read_text() == "x"


@pytest.mark.parametrize("writing", [atomic_path, atomic_folder])
def test_write_errors_name_the_file(tmp_path, writing):
    with pytest.raises(InputError, match="into/here"), writing(tmp_path / "here"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "into/here")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError), writing(tmp_path / "file" / "here"):
        raise AssertionError("not reached")
    assert names(tmp_path) == ["file"]


def test_pipes_are_written_directly(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_bytes(pipe, b"x")
    reader.join()
    assert read == ["x"] and pipe.is_fifo()


def test_fingerprint_depends_on_settings_and_files(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"one")
    first = fingerprint({"a": 1, "b": 2}, [path])
    assert fingerprint({"b": 2, "a": 1}, [path]) == first != fingerprint({"a": 1, "b": 3}, [path])
    write_bytes(path, b"other")
    assert fingerprint({"a": 1, "b": 2}, [path]) != first


@pytest.mark.parametrize("locked", [file_lock, folder_lock])
def test_locks_are_exclusive_and_end_with_their_process(tmp_path, monkeypatch, locked):
    monkeypatch.setattr(files, "LOCK_TIMEOUT", 0.1)
    path = tmp_path / "output"
    program = f"from docnmt_fairseq.files import {locked.__name__} as lock; import time\n"
    program += f"with lock({str(path)!r}): print(flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    holder.stdout.readline()
    with pytest.raises(InputError, match="another process"), locked(path):
        pass
    holder.kill()
    holder.communicate()
    with locked(path):
        assert any(name.endswith(".lock") for name in names(tmp_path))
    assert not any(name.endswith(".lock") for name in names(tmp_path))
