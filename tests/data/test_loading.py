"""Damaged data-bins are refused with the file name when they are loaded."""

import shutil

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from docnmt_fairseq.data.loading import HEADER, check_side, load_side, split_errors
from docnmt_fairseq.errors import InputError
from tests.support import toy


@pytest.fixture
def copied(data_bin, tmp_path):
    shutil.copytree(data_bin, tmp_path / "bin")
    return tmp_path / "bin"


def load(folder, combine=False):
    _, task, _ = toy.build(folder)
    task.load_dataset("train", combine=combine)
    return task.dataset("train")


DAMAGES = {
    "tokens cut": ("bin", lambda content: content[:-2]),
    "more tokens": ("bin", lambda content: content * 2),
    "unknown token": ("bin", lambda content: content[:-4] + b"\xff\x7f" + content[-2:]),
    "no end of sentence": ("bin", lambda content: content[:-2] + b"\5\0"),
    "index cut": ("idx", lambda content: content[:-1]),
    "header cut": ("idx", lambda content: content[: HEADER.size - 1]),
    "empty index": ("idx", lambda content: b""),
    "zeros": ("idx", lambda content: bytes(len(content))),
    "version": ("idx", lambda content: content[:9] + b"\2" + content[10:]),
    "size": ("idx", lambda content: content[: HEADER.size] + b"\x7f" + content[HEADER.size + 1 :]),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files(copied, name):
    ending, damage = DAMAGES[name]
    path = copied / f"train.src-tgt.src.{ending}"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"train\.src-tgt\.src\.(bin|idx)"):
        load(copied)


def test_all_files_of_a_split_are_checked(copied):
    for language in ("src", "tgt"):
        for ending in ("idx", "bin"):
            name = f"src-tgt.{language}.{ending}"
            shutil.copyfile(copied / f"train.{name}", copied / f"train1.{name}")
    assert len(load(copied, combine=True)) == 2 * len(load(copied))
    path = copied / "train1.src-tgt.tgt.bin"
    path.write_bytes(path.read_bytes()[:10])
    load(copied)
    with pytest.raises(InputError, match=r"train1\.src-tgt\.tgt\.bin"):
        load(copied, combine=True)


def write_side(prefix, lines):
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin", np.int32)
    for line in lines:
        builder.add_item(torch.tensor(line))
    builder.finalize(f"{prefix}.idx")


@pytest.fixture
def dictionary():
    dictionary = Dictionary()
    for symbol in "xyz":
        dictionary.add_symbol(symbol)
    return dictionary


@pytest.mark.parametrize("pair", ["a-b", "b-a"])
def test_one_side_is_read_from_files_of_either_direction(tmp_path, dictionary, pair):
    assert load_side(tmp_path, "train", ("a", "b"), "a", dictionary, None) is None
    write_side(tmp_path / f"train.{pair}.a", ([4, 5, 2], [6, 2]))
    lines = load_side(tmp_path, "train", ("a", "b"), "a", dictionary, None)
    assert [line.tolist() for line in lines] == [[4, 5, 2], [6, 2]]


@pytest.mark.parametrize("form", [b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00"])
def test_other_formats_are_left_to_fairseq(tmp_path, dictionary, form):
    (tmp_path / "train.a-b.a.idx").write_bytes(form + bytes(40))
    (tmp_path / "train.a-b.a.bin").touch()
    check_side(str(tmp_path), "train", "a-b", "a", dictionary, combine=True)
    with pytest.raises(InputError, match=r"train\.a-b\.a"):
        load_side(tmp_path, "train", ("a", "b"), "a", dictionary, "mmap")


def test_missing_split_lists_the_existing_ones(tmp_path):
    for name in ("valid.b-a.a.idx", "test.a-b.a.idx"):
        (tmp_path / name).touch()
    missing = pytest.raises(InputError, match=r"'train'.*test, valid$")
    with missing, split_errors(str(tmp_path), "train", ("a", "b")):
        raise FileNotFoundError
