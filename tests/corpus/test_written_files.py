"""What is written appears whole or not at all, and what stood in its place stays until then."""

import errno
import os

import pytest

from docnmt_fairseq.corpus.files import written_by_others, written_folder
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
