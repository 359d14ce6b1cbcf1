"""Loading of data-bins: damaged files are refused; the cached index equals a new one, and is rebuilt for other data."""

import os
import shutil

import numpy as np
import pytest
import torch
from fairseq.data import ConcatDataset, Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

from docnmt_fairseq.corpus.data_bin import DictionaryNumbering, ItemWriter
from docnmt_fairseq.data import loading
from docnmt_fairseq.data.dataset import sentence_sizes
from docnmt_fairseq.data.loading import load_side, read_index
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


TEXT = ["a b", "c", "<p>", "d", "", "e", "<p>", "f", "g", ""]
P = 4


def write(folder, source=TEXT, target=TEXT, split="train"):
    dictionary = Dictionary()
    for symbol in ["<p>", *"abcdefg"]:
        dictionary.add_symbol(symbol)
    for side, lines in (("en", source), ("de", target)):
        with ItemWriter(folder / f"{split}.en-de.{side}", len(dictionary)) as writer:
            writer.add(DictionaryNumbering(dictionary)(lines))
        dictionary.save(str(folder / f"dict.{side}.txt"))


def read(folder, unmarked="document", symbols=(P, P)):
    source, target = (MMapIndexedDataset(str(folder / f"train.en-de.{side}")) for side in ("en", "de"))
    index = read_index(source, target, symbols, "corpus", unmarked)
    return index, sentence_sizes(source, index).tolist(), sentence_sizes(target, index).tolist()


def values(index):
    return [getattr(index, name).tolist() for name in ("documents", "paragraphs", "items")]


@pytest.fixture
def builds(monkeypatch):
    """Counts how often an index is built."""
    builds, build = [], loading.DocumentIndex.build
    monkeypatch.setattr(
        loading.DocumentIndex, "build", lambda *given, **more: builds.append(1) or build(*given, **more)
    )
    return builds


FILE = "train.en-de.en.index.npy"
WANTED = [[0, 3, 6], [0, 2, 3, 4], [0, 1, 3, 5, 7, 8]]


def test_index_is_built_once_and_memory_mapped(tmp_path, builds):
    write(tmp_path)
    first, second = read(tmp_path), read(tmp_path)
    assert len(builds) == 1 and (tmp_path / FILE).is_file()
    for index, source, target in (first, second):
        assert values(index) == WANTED and source == target == [3, 2, 2, 2, 2, 2]
        base = index.items
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap) and not base.flags.writeable
        sizes = {name: found.tolist() for name, found in index.sizes.items()}
        assert sizes == {f"{tmp_path}/train.en-de.en": source, f"{tmp_path}/train.en-de.de": target}
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".npy") == [FILE]


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-3], lambda b: b"", lambda b: b[:160] + b"\2" + b[161:]],  # length of an array
)
def test_damaged_file_is_replaced(tmp_path, builds, damage):
    write(tmp_path)
    read(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(damage(whole))
    assert values(read(tmp_path)[0]) == WANTED and len(builds) == 2
    assert (tmp_path / FILE).read_bytes() == whole


def test_other_data_or_settings_rebuild(tmp_path, builds):
    write(tmp_path)
    read(tmp_path)
    times = os.stat(tmp_path / "train.en-de.de.bin")
    os.utime(tmp_path / "train.en-de.de.bin", ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    read(tmp_path)
    assert len(builds) == 2
    read(tmp_path, "line")
    assert len(builds) == 3
    write(tmp_path, [*TEXT, "a", ""], [*TEXT, "b", ""])
    assert len(read(tmp_path)[0]) == 3 and len(builds) == 4
    without_marks, *_ = read(tmp_path, symbols=(None, None))
    assert len(without_marks.items) == 9 and len(builds) == 5
    with pytest.raises(InputError, match="line 3: <p> on the target side only"):
        read(tmp_path, symbols=(None, P))


def read_together(folder, ratios):
    sides = [
        ConcatDataset(
            [MMapIndexedDataset(str(folder / f"{name}.en-de.{side}")) for name in ("train", "train1")], ratios
        )
        for side in ("en", "de")
    ]
    index = read_index(*sides, (P, P), "corpus", "document")
    return values(index), *(sentence_sizes(side, index).tolist() for side in sides)


def test_combined_files_have_a_separate_index(tmp_path, builds):
    write(tmp_path)
    write(tmp_path, ["a b c", ""], ["a", ""], split="train1")
    together, alone = read_together(tmp_path, [2, 1]), read(tmp_path)
    assert together[0] == [
        [0, 3, 6, 9, 12, 13],
        [0, 2, 3, 4, 6, 8, 9, 10, 12],
        [0, 1, 3, 5, 7, 8, 10, 11, 13, 15, 17, 18, 20],
    ]
    assert together[1:] == ([3, 2, 2, 2, 2, 2] * 2 + [4], [3, 2, 2, 2, 2, 2] * 2 + [2])
    assert read_together(tmp_path, [2, 1]) == together and values(read(tmp_path)[0]) == values(alone[0])
    assert len(builds) == 2, "both are cached"
    assert len(read_together(tmp_path, [1, 1])[1]) == 7 and len(builds) == 3
    write(tmp_path, ["a b", ""], ["a", ""], split="train1")
    assert read_together(tmp_path, [1, 1])[1][-1] == 3 and len(builds) == 4
