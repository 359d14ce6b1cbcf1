import numpy as np
import pytest
import torch

from docnmt_fairseq.embedding.word_vectors import read_checkpoint_vectors, read_text_vectors
from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.documents import write_lines


@pytest.mark.parametrize("header", [[], ["4 2"]], ids=["GloVe", "word2vec"])
def test_text_files_with_and_without_a_header(tmp_path, caplog, header):
    write_lines(tmp_path / "vec", [*header, "a 1 2", "b -0.5 1e-3 ", "new york 3 4", "a 7 7"])
    found = read_text_vectors(tmp_path / "vec")
    assert found.words == ["a", "b", "new york"] and found.vectors.dtype == np.float32
    np.testing.assert_allclose(found.vectors, [[1, 2], [-0.5, 1e-3], [3, 4]])
    assert "1 repeated words" in caplog.text


@pytest.mark.parametrize(
    "lines, message",
    [
        (["a 1 2", "b 1"], r"vec:2: expected a word and 2 numbers"),
        (["2 2", "a 1 2", "b 1 x"], r"vec:3: expected numbers in the last 2 fields"),
        (["a 1 nan"], r"vec:1: a number is not finite"),
        (["a"], r"vec:1: expected a word and 1 numbers"),
        (["1 5"], r"no word vectors"),
        ([], r"no word vectors"),
    ],
)
def test_invalid_lines(tmp_path, lines, message):
    write_lines(tmp_path / "vec", lines)
    with pytest.raises(InputError, match=message):
        read_text_vectors(tmp_path / "vec")


def test_embeddings_of_a_checkpoint(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "1")
    found = read_checkpoint_vectors(checkpoint, data_bin)
    _, task, _ = toy.build(data_bin)
    assert set("abcde") <= set(found.words) and not {"<unk>", "</s>", "<pad>", "<p>"} & set(found.words)
    embeddings = toy.state(checkpoint)["encoder.embed_tokens.weight"]
    for word, vector in zip(found.words, found.vectors):
        np.testing.assert_array_equal(vector, embeddings[task.source_dictionary.index(word)].float().numpy())


class Executable:
    def __reduce__(self):
        return (print, ("executed",))


def test_unsafe_checkpoints_are_errors(data_bin, tmp_path, capsys):
    torch.save({"model": Executable()}, tmp_path / "bad.pt")
    (tmp_path / "text.pt").write_text("text")
    for name in ("bad.pt", "text.pt"):
        with pytest.raises(InputError, match="not a checkpoint"):
            read_checkpoint_vectors(tmp_path / name, data_bin)
    assert "executed" not in capsys.readouterr().out
    with pytest.raises(InputError, match="no such file"):
        read_checkpoint_vectors(tmp_path / "none.pt", data_bin)


@pytest.mark.slow
def test_other_or_damaged_dictionary_is_an_error(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "1")
    for name in ("src", "tgt"):
        write_lines(tmp_path / f"dict.{name}.txt", ["a 1", "b 1"])
    (tmp_path / "train.src-tgt.src.idx").touch()  # by which fairseq knows the languages
    with pytest.raises(InputError, match=r"6 symbols, the checkpoint \d+"):
        read_checkpoint_vectors(checkpoint, tmp_path)
    (tmp_path / "dict.src.txt").write_bytes(b"\xff 1\n")
    with pytest.raises(InputError, match=r"dict\.src\.txt: "):
        read_checkpoint_vectors(checkpoint, tmp_path)


@pytest.mark.slow
def test_missing_or_infinite_embeddings_are_errors(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "1")
    state = torch.load(checkpoint, weights_only=False)
    state["model"]["encoder.embed_tokens.weight"][5] = float("nan")
    torch.save(state, checkpoint)
    with pytest.raises(InputError, match="an embedding is not finite"):
        read_checkpoint_vectors(checkpoint, data_bin)
    del state["model"]["encoder.embed_tokens.weight"]
    torch.save(state, checkpoint)
    with pytest.raises(InputError, match="no source embeddings"):
        read_checkpoint_vectors(checkpoint, data_bin)
