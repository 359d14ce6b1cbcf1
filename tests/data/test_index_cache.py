"""The cached index equals a new one, and is rebuilt for other data or settings."""

import os

import numpy as np
import pytest
from fairseq.data import ConcatDataset, Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq.corpus.data_bin import DictionaryNumbering, ItemWriter
from docnmt_fairseq.data import loading
from docnmt_fairseq.data.dataset import sentence_sizes
from docnmt_fairseq.data.loading import read_index
from docnmt_fairseq.errors import InputError

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
