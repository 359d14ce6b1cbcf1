"""Training text in shards: distribution of documents, samples, and data-bins of shards."""

import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.prepare import prepare, sample_documents
from docnmt_fairseq.corpus.prepared import data_bins
from tests.support import toy
from tests.support.documents import write_lines

DOCUMENTS = 11


def write_corpus(folder):
    words = ["the cat", "a dog", "it", "we", "Peter"]
    lines = []
    for number in range(DOCUMENTS):
        lines += [f"{words[(number + s) % 5]} saw {words[(number * 3 + s) % 5]} ." for s in range(1 + number % 3)]
        lines += ["<p>", f"so {words[number % 5]} sat .", ""]
    for split, text in (("train", lines), ("valid", lines[:4]), ("test", lines[4:8])):
        write_lines(folder / f"{split}.en", text)
        write_lines(folder / f"{split}.de", [line.upper().replace("<P>", "<p>") for line in text])
        write_lines(folder / f"{split}.mt", [line.upper().replace("<P>", "<p>").replace("SAW", "HAS") for line in text])


def config(folder, output, **options):
    files = {"train": str(folder / "train"), "valid": [str(folder / "valid")], "test": [str(folder / "test")]}
    given = {"subwords": "bpe", "vocab_size": 45, "character_coverage": 1.0, "tokenizer": "moses", "truecase": True}
    return PrepareConfig("en", "de", folder / output, **files, **{**given, **options})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Corpus with an output of one data-bin, and one of three whose models are trained on all documents."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    whole = prepare(config(folder, "whole"))
    return folder, whole, prepare(config(folder, "three", shards=3, sample_documents=DOCUMENTS, workers=2))


def documents_of(data_bin, side, split="train"):
    lines = MMapIndexedDataset(str(data_bin / f"{split}.en-de.{side}"))
    documents = [[]]
    for number in range(len(lines)):
        tokens = lines[number].tolist()
        if len(tokens) == 1:
            documents.append([])
        else:
            documents[-1].append(tokens)
    assert documents[-1] == []
    return documents[:-1]


def shards_equal_whole(folder, whole, sharded, shards, sides):
    for side in sides:
        parts = [documents_of(path, side) for path in data_bins(folder / sharded, shards)]
        together = [parts[number % shards][number // shards] for number in range(DOCUMENTS)]
        assert together == documents_of(folder / whole / "data-bin", side)


def test_shards_together_equal_the_corpus(corpus):
    folder, whole, three = corpus
    shards_equal_whole(folder, "whole", "three", 3, ("en", "de"))
    for file in ("valid.en-de.en.bin", "test.en-de.de.idx"):
        parts = (folder / output / "data-bin" / file for output in ("three", "whole"))
        assert len({path.read_bytes() for path in parts}) == 1
    assert three["counts"] == whole["counts"] and three["models"] == whole["models"]
    names = [{path.name.split(".")[0] for path in one.iterdir()} for one in data_bins(folder / "three", 3)]
    assert names == [{"train", "valid", "test", "dict"}, {"train", "dict"}, {"train", "dict"}]
    assert not list((folder / "three" / "subword").glob("train*"))


@pytest.mark.parametrize("subwords", ["bpe", "none"])
def test_shards_with_edit_operations(tmp_path, subwords):
    write_corpus(tmp_path)
    options = {"tokenizer": "none", "truecase": False, "extra": ("mt=like-target",), "edits_of": "mt"}
    prepare(config(tmp_path, "whole", **options, subwords=subwords))
    prepare(config(tmp_path, "two", **options, subwords=subwords, shards=2, sample_documents=DOCUMENTS))
    shards_equal_whole(tmp_path, "whole", "two", 2, ("en", "de", "mt"))


def test_fairseq_reads_one_shard_per_epoch(corpus):
    folder, _, _ = corpus
    _, task, _ = toy.build(":".join(map(str, data_bins(folder / "three", 3))), "-s", "en", "-t", "de")
    seen = []
    for epoch in range(1, 5):
        task.load_dataset("train", epoch=epoch)
        seen.append(len(task.dataset("train").index))
    assert seen == [4, 4, 3, 4]
    task.load_dataset("valid", epoch=2)
    assert len(task.dataset("valid").index) == 1


def test_previous_shards_are_removed(tmp_path):
    write_corpus(tmp_path)
    options = {"subwords": "none", "tokenizer": "none", "truecase": False}
    prepare(config(tmp_path, "out", shards=3, **options))
    (tmp_path / "out" / "data-bin-old").mkdir()
    for shards, left in ((2, ["data-bin", "data-bin-1", "data-bin-old"]), (1, ["data-bin", "data-bin-old"])):
        prepare(config(tmp_path, "out", shards=shards, **options))
        assert sorted(path.name for path in (tmp_path / "out").glob("data-bin*")) == left


@pytest.mark.parametrize("shards", [1, 3])
def test_sample_does_not_depend_on_the_number_of_shards(tmp_path, shards):
    documents = [Document([[(f"d{n} s{s}", f"D{n} S{s}") for s in range(n % 3 + 1)]]) for n in range(20)]
    files = [[tmp_path / f"{shard}.{side}" for side in "ab"] for shard in range(shards)]
    assert write_documents(documents, *files) == 20
    output = [tmp_path / f"sample.{side}" for side in "ab"]
    sample_documents(files, output, 20, 7, seed=1)
    text = output[0].read_text()
    numbers = [int(document.split()[0][1:]) for document in text.split("\n\n")[:-1]]
    assert numbers == [1, 7, 10, 11, 12, 16, 18] and output[1].read_text() == text.upper()
    sample_documents(files, output, 20, 50, seed=1)
    assert output[0].read_text().count("\n\n") == 20
