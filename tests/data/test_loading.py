"""Damaged data-bins are refused with the file name when they are loaded."""

import shutil

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from docnmt_fairseq.data.loading import load_side
from docnmt_fairseq.errors import InputError
from tests.support import toy

HEADER = 34  # bytes of an index before the sizes


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
    "unknown token": ("bin", lambda content: content[:-4] + b"\xff\x7f" + content[-2:]),
    "no end of sentence": ("bin", lambda content: content[:-2] + b"\5\0"),
    "index cut": ("idx", lambda content: content[:-1]),
    "size": ("idx", lambda content: content[:HEADER] + b"\x7f" + content[HEADER + 1 :]),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # fairseq closes what it has not opened
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files(copied, name):
    ending, damage = DAMAGES[name]
    path = copied / f"train.src-tgt.src.{ending}"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError):
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
    with pytest.raises(InputError):
        load(copied, combine=True)


@pytest.mark.parametrize("pair", ["a-b", "b-a"])
def test_one_side_is_read_from_files_of_either_direction(tmp_path, pair):
    dictionary = Dictionary()
    for symbol in "xyz":
        dictionary.add_symbol(symbol)
    assert load_side(tmp_path, "train", ("a", "b"), "a", dictionary, None) is None
    builder = MMapIndexedDatasetBuilder(str(tmp_path / f"train.{pair}.a.bin"), np.int32)
    for line in ([4, 5, 2], [6, 2]):
        builder.add_item(torch.tensor(line))
    builder.finalize(str(tmp_path / f"train.{pair}.a.idx"))
    lines = load_side(tmp_path, "train", ("a", "b"), "a", dictionary, None)
    assert [line.tolist() for line in lines] == [[4, 5, 2], [6, 2]]
