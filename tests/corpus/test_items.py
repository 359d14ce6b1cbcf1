"""Lines as numbers, and the files of them, against fairseq's own."""

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, make_builder
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.items import Items, ItemWriter, Numbering, addresses_of


def dictionary(*symbols):
    found = Dictionary()
    for symbol in ("<p>", *symbols):
        found.add_symbol(symbol)
    return found


WORDS = dictionary("a", "bc", "▁d")
WORD = st.sampled_from(["a", "bc", "▁d", "<p>", "unknown", "</s>", "<pad>", "<unk>", "#", "\ufffd"])
SPACE = st.sampled_from([" ", "  ", "\t", "\u2003", "\x1c"])


@given(st.lists(st.lists(st.tuples(WORD, SPACE)).map(lambda pairs: "".join(map("".join, pairs))), max_size=6))
def test_numbers_are_those_of_the_dictionary(lines):
    found = Numbering(WORDS)(lines)
    wanted = [WORDS.encode_line(line, add_if_not_exist=False).tolist() for line in lines]
    assert found.sizes.tolist() == list(map(len, wanted))
    assert found.tokens.tolist() == [number for line in wanted for number in line]


@pytest.mark.parametrize("symbols", [10, 65_499, 65_500, 70_000])
def test_files_are_those_of_fairseq(tmp_path, symbols):
    lines = [[symbols - 1, 5, 2], [2], [4, 2], [7] * 9 + [2]]
    builder = make_builder(str(tmp_path / "theirs.bin"), "mmap", vocab_size=symbols)
    with ItemWriter(tmp_path / "ours", symbols) as writer:
        for block in (lines[:2], lines[2:]):
            writer.add(Items(np.concatenate(block), np.array(list(map(len, block)))))
    import torch

    for line in lines:
        builder.add_item(torch.tensor(line, dtype=torch.int32))
    builder.finalize(str(tmp_path / "theirs.idx"))
    for ending in (".bin", ".idx"):
        assert (tmp_path / f"ours{ending}").read_bytes() == (tmp_path / f"theirs{ending}").read_bytes()
    assert (writer.lines, writer.empty, writer.tokens) == (4, 1, 16)


def test_addresses_beyond_31_bits():
    blocks = [np.full(3, 2**30, dtype=np.int32), np.array([2**31 - 1, 1], dtype=np.int32), np.array([7], np.int32)]
    found = np.concatenate(list(addresses_of(blocks, 4))).tolist()
    sizes = np.concatenate(blocks).tolist()
    assert found == [4 * sum(sizes[:n]) for n in range(len(sizes))] and found[-1] > 2**34


def test_an_index_of_a_large_file_is_read_by_fairseq(tmp_path):
    """Of a file with a hole: three items of a GiB of numbers each, and one behind them."""
    size = 2**29
    with ItemWriter(tmp_path / "large", 10) as writer:
        writer._sizes = [np.array([size, size, size, 3], dtype=np.int32)]
        writer.lines = 4
        writer._file.seek(3 * size * 2)
        writer._file.write(np.array([5, 6, 2], dtype=np.uint16).tobytes())
    index = MMapIndexedDataset.Index(str(tmp_path / "large.idx"))
    assert [index[n][0] for n in range(4)] == [0, size * 2, size * 4, size * 6] and size * 6 > 2**31
    assert np.memmap(tmp_path / "large.bin", np.uint16)[index[3][0] // 2 :].tolist() == [5, 6, 2]


def test_no_index_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), ItemWriter(tmp_path / "x", 10) as writer:
        writer.add(Items(np.array([2]), np.array([1])))
        raise RuntimeError
    assert not (tmp_path / "x.idx").exists()
