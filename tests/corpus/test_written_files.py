"""What is written appears whole or not at all, and what stood in its place stays until then."""

import errno
import os
import threading

import pytest

from docnmt_fairseq.corpus.files import atomic_files, atomic_write_bytes, written_by_others, written_folder
from docnmt_fairseq.errors import InputError


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_folder_takes_the_place_of_the_former_when_it_is_complete(tmp_path):
    target = tmp_path / "new" / "folder"
    for name in ("former", "later"):
        with written_folder(target) as folder:
            (folder / name).write_text("x")
            assert names(target) == ([] if name == "former" else ["former"])
        assert names(tmp_path) == sorted(["new", "folder", name])


@pytest.mark.parametrize("error", [InputError("bad"), KeyError("bad"), KeyboardInterrupt()], ids=repr)
def test_of_a_folder_that_fails_nothing_stays(tmp_path, error):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "former").write_text("x")
    with pytest.raises(type(error)), written_folder(tmp_path / "folder") as folder:
        (folder / "later").write_text("x")
        raise error
    assert names(tmp_path) == ["folder", "former"]


@pytest.mark.parametrize("writing", [written_folder, written_by_others])
def test_what_cannot_be_written_is_named(tmp_path, writing):
    with pytest.raises(InputError, match="into/here: cannot be written: No space left"), writing(tmp_path / "here"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "into/here")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"file.*: cannot be written: "), writing(tmp_path / "file" / "here"):
        raise AssertionError("is not reached")
    assert names(tmp_path) == ["file"]


def test_what_an_interrupted_run_left_is_not_taken_over(tmp_path):
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "left").write_text("x")
    with written_folder(tmp_path / "folder") as folder:
        (folder / "new").write_text("x")
    assert names(tmp_path) == ["folder", "new"]


def test_links_stay_and_what_they_lead_to_is_written(tmp_path):
    (tmp_path / "disk").mkdir()
    for name in ("file", "folder"):
        (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    for content in ("former", "later"):
        with atomic_files(tmp_path / "file") as (stream,), written_folder(tmp_path / "folder") as folder:
            stream.write(content)
            (folder / content).write_text("x")
    assert (tmp_path / "file").is_symlink() and (tmp_path / "disk" / "file").read_text() == "later"
    assert (tmp_path / "folder").is_symlink() and names(tmp_path / "disk") == ["file", "folder", "later"]


@pytest.mark.parametrize("error", [None, InputError("bad")], ids=repr)
def test_a_pipe_or_device_takes_what_is_written_and_stays(tmp_path, error):
    pipe, taken = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: taken.append(pipe.read_text()))
    reader.start()
    try:
        with atomic_files(pipe) as (stream,):
            stream.write("x")
            if error:
                raise error
    except InputError:
        pass
    reader.join()
    assert taken == ["x"] and pipe.is_fifo() and names(tmp_path) == ["pipe"]


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    with pytest.raises(InputError, match="here: cannot be written: is a folder; give a file"):
        atomic_write_bytes(made(tmp_path / "here"), b"x")


def made(folder):
    folder.mkdir()
    return folder
