"""Damaged data-bins are refused by name when they are loaded; whole ones of every form are not."""

import shutil
import struct
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

from docnmt_fairseq.data.integrity import HEADER, check_side, load_side, split_named
from docnmt_fairseq.errors import InputError
from tests.support import toy


@pytest.fixture
def copied(data_bin, tmp_path):
    shutil.copytree(data_bin, tmp_path / "bin")
    return tmp_path / "bin"


def changed(path, place, value):
    content = bytearray(path.read_bytes())
    content[place : place + len(value)] = value
    path.write_bytes(bytes(content))


def load(folder, combine=False):
    _, task, _ = toy.build(folder)
    task.load_dataset("train", combine=combine)
    return task.dataset("train")


def cut(path, left):
    path.write_bytes(path.read_bytes()[:left])


DAMAGES = {
    "tokens cut": ("bin", lambda path: cut(path, -2), r"src.bin: .* bytes, of which its index names"),
    "no tokens": ("bin", lambda path: path.unlink(), r"src.bin: 0 bytes, of which its index names"),
    "more tokens": ("bin", lambda path: path.write_bytes(path.read_bytes() * 2), r"src.bin: .* its index names"),
    "index cut": ("idx", lambda path: cut(path, -1), r"src.idx: .* bytes cannot be the index of"),
    "longer index": ("idx", lambda path: path.write_bytes(path.read_bytes() + b"x"), r"bytes cannot be the index of"),
    "head cut": ("idx", lambda path: cut(path, HEADER.size - 1), r"src.idx: no index of a data-bin"),
    "empty index": ("idx", lambda path: cut(path, 0), r"src.idx: no index of a data-bin"),
    "zeros": ("idx", lambda path: path.write_bytes(bytes(path.stat().st_size)), r"src.idx: no index of a data-bin"),
    "another version": ("idx", lambda path: changed(path, 9, b"\2"), r"cannot be the index"),
    "unknown type": ("idx", lambda path: changed(path, 17, b"\xff"), r"cannot be the index"),
    "items": ("idx", lambda path: changed(path, 18, b"\xff\xff\xff\xff\xff\xff\xff\x7f"), r"cannot be the index"),
    "a size": ("idx", lambda path: changed(path, HEADER.size, b"\x7f"), r"sizes and places .* contradict each other"),
    "an empty item": ("idx", lambda path: changed(path, HEADER.size, bytes(4)), r"contradict each other"),
    "a negative size": ("idx", lambda path: changed(path, HEADER.size + 3, b"\xff"), r"contradict each other"),
    "a place": ("idx", lambda path: changed(path, path.stat().st_size - 8, b"\x99"), r"contradict each other"),
    "a token": ("bin", lambda path: changed(path, 2, b"\xff\x7f"), r"src.bin: line 1: token 32767, but the dictionary"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_at_once(copied, name):
    ending, damage, message = DAMAGES[name]
    damage(copied / f"train.src-tgt.src.{ending}")
    with pytest.raises(InputError, match=message) as error:
        load(copied)
    assert "make the data-bin again" in str(error.value)


def test_an_end_of_sentence_that_is_none(copied):
    path = copied / "train.src-tgt.tgt"
    with open(f"{path}.idx", "rb") as stream:
        stream.seek(HEADER.size)
        (size,) = struct.unpack("<i", stream.read(4))
    tokens = np.fromfile(f"{path}.bin", np.uint16)
    tokens[size - 1] = 5
    tokens.tofile(f"{path}.bin")
    with pytest.raises(InputError, match=r"tgt.bin: line 1: does not end with the end of sentence"):
        load(copied)


def test_further_files_of_a_split_are_looked_at(copied):
    for language in ("src", "tgt"):
        for ending in ("idx", "bin"):
            name = f"src-tgt.{language}.{ending}"
            shutil.copyfile(copied / f"train.{name}", copied / f"train1.{name}")
    assert len(load(copied, combine=True)) == 2 * len(load(copied))
    cut(copied / "train1.src-tgt.tgt.bin", 10)
    load(copied)
    with pytest.raises(InputError, match=r"train1.src-tgt.tgt.bin"):
        load(copied, combine=True)


def write_side(prefix, lines):
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin", np.int32)
    for line in lines:
        builder.add_item(torch.tensor(line))
    builder.finalize(f"{prefix}.idx")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("token", "symbols", "right"), [(9, 10, True), (9, 9, False), (-1, 10, False)])
def test_numbers_are_those_of_symbols(tmp_path, token, symbols, right):
    write_side(tmp_path / "train.a-b.a", ([4, 2], [token, 2]))
    refused = pytest.raises(InputError, match=f"line 2: token {token}, but the dictionary has {symbols} symbols")
    with nullcontext() if right else refused:
        check_side(str(tmp_path), "train", "a-b", "a", symbols, 2, combine=False)


def test_an_item_without_tokens(tmp_path, side):
    """Its size and place agree."""
    write_side(tmp_path / "train.a-b.a", ([4, 2], [], [5, 2]))
    with pytest.raises(InputError, match="sizes and places of its 3 items contradict"):
        side()


def test_a_split_without_lines(copied):
    for side in ("src", "tgt"):
        with MMapIndexedDataset.Index.writer(str(copied / f"train.src-tgt.{side}.idx"), np.uint16) as index:
            index.write([])
        (copied / f"train.src-tgt.{side}.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"train.src-tgt.src.idx: holds no line"):
        load(copied)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", [b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00"])
def test_other_forms_are_left_to_fairseq(tmp_path, form):
    (tmp_path / "train.a-b.a.idx").write_bytes(form + bytes(40))
    check_side(str(tmp_path), "train", "a-b", "a", 10, 2, combine=True)
    check_side(str(tmp_path), "valid", "a-b", "a", 10, 2, combine=True)


@pytest.fixture
def side(tmp_path):
    """Loads the side "a" of the languages a and b."""
    dictionary = Dictionary()
    for symbol in "xyz":
        dictionary.add_symbol(symbol)
    return lambda kind=None: load_side(tmp_path, "train", ("a", "b"), "a", dictionary, kind)


@pytest.mark.parametrize("pair", ["a-b", "b-a"])
def test_one_side_is_of_the_files_of_either_direction(tmp_path, side, pair):
    assert side() is None
    write_side(tmp_path / f"train.{pair}.a", ([4, 5, 2], [6, 2]))
    assert [line.tolist() for line in side()] == [[4, 5, 2], [6, 2]]
    write_side(tmp_path / f"train.{pair}.a", ([4, 5, 2], [7, 2]))
    with pytest.raises(InputError, match=f"train.{pair}.a.bin: line 2: token 7, but the dictionary has 7 symbols"):
        side()


@pytest.mark.parametrize(
    ("form", "kind", "message"),
    [
        (b"TNTIDX\x00\x00", None, "unpack requires a buffer of 8 bytes"),
        (b"TNTIDX\x00\x00" + struct.pack("<Q", 2), None, "AssertionError"),
        (b"TNTIDX\x00\x00" + struct.pack("<QQQ", 1, 99, 4), None, "99"),
        (b"TNTIDX\x00\x00" + struct.pack("<QQQQQ", 1, 4, 4, 1 << 62, 0), None, "array is too big"),
        (b"TNTIDX\x00\x00" + bytes(40), "mmap", "Index file doesn't match .*--dataset-impl"),
    ],
    ids=["no version", "another version", "unknown type", "too many items", "another form than asked for"],
)
def test_other_forms_that_fairseq_cannot_read(tmp_path, side, form, kind, message):
    (tmp_path / "train.a-b.a.idx").write_bytes(form)
    (tmp_path / "train.a-b.a.bin").touch()
    with pytest.raises(InputError, match=rf"train\.a-b\.a\.{{bin,idx}}: .*{message}.*: it is damaged"):
        side(kind)


@pytest.mark.parametrize(("names", "told"), [([], "none"), (["valid.b-a.a.idx", "test.a-b.a.idx"], "test, valid")])
def test_a_split_that_is_not_there(tmp_path, names, told):
    for name in names:
        (tmp_path / name).touch()
    refused = pytest.raises(InputError, match=f"has no split 'train'; there are: {told}$")
    with refused, split_named(str(tmp_path), "train", ("a", "b")):
        raise FileNotFoundError


@pytest.mark.parametrize(("back", "message"), [(1, "does not end"), (2, "token 32767, but the dictionary")])
def test_lines_of_later_blocks_are_named_rightly(copied, monkeypatch, back, message):
    monkeypatch.setattr("docnmt_fairseq.data.integrity.BLOCK", 3)
    load(copied)
    (items,) = struct.unpack_from("<Q", (copied / "train.src-tgt.src.idx").read_bytes(), HEADER.size - 8)
    sizes = np.frombuffer((copied / "train.src-tgt.src.idx").read_bytes(), np.int32, items, HEADER.size)
    line = int(np.flatnonzero(sizes > 2)[-1])
    tokens = np.fromfile(copied / "train.src-tgt.src.bin", np.uint16)
    tokens[int(sizes[: line + 1].sum()) - back] = 5 if back == 1 else 32767
    tokens.tofile(copied / "train.src-tgt.src.bin")
    with pytest.raises(InputError, match=f"src.bin: line {line + 1}: {message}"):
        load(copied)
