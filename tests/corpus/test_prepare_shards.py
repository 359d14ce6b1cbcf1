"""Training text in shards: documents dealt out, data-bins made each by itself, and what fairseq makes of them."""

import contextlib
import os
import resource

import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.prepare import finish, fit, prepare
from docnmt_fairseq.corpus.shards import DataBins
from docnmt_fairseq.corpus.shares import Held, deal, sample
from docnmt_fairseq.errors import InputError
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
    """A corpus with an output of one data-bin, and one of three that were learnt from all documents."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    whole = prepare(config(folder, "whole"))
    return folder, whole, prepare(config(folder, "three", shards=3, sample_documents=DOCUMENTS))


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


def bins_of(output, shards):
    return [output / f"data-bin-{number}" if number else output / "data-bin" for number in range(shards)]


@pytest.mark.parametrize("side", ["en", "de"])
def test_the_shards_together_are_the_corpus(corpus, side):
    folder, whole, three = corpus
    dealt = [documents_of(path, side) for path in bins_of(folder / "three", 3)]
    assert [len(documents) for documents in dealt] == [4, 4, 3]
    together = [dealt[number % 3][number // 3] for number in range(DOCUMENTS)]
    assert together == documents_of(folder / "whole" / "data-bin", side)
    for name in ("valid", "test"):
        for ending in ("bin", "idx"):
            file = f"data-bin/{name}.en-de.{side}.{ending}"
            assert (folder / "three" / file).read_bytes() == (folder / "whole" / file).read_bytes()
    assert three["counts"] == whole["counts"] and three["models"] == whole["models"]


def test_one_shard_of_everything_is_the_whole(corpus):
    folder, _, _ = corpus
    prepare(config(folder, "one", sample_documents=10**9))
    for path in (folder / "whole" / "data-bin").glob("*.[bit][idx][nx]*"):
        assert (folder / "one" / "data-bin" / path.name).read_bytes() == path.read_bytes()


def test_further_shards_have_training_text_and_dictionaries_only(corpus):
    folder, _, _ = corpus
    first, second, _ = (
        {path.name.split(".")[0] for path in folder_.iterdir()} for folder_ in bins_of(folder / "three", 3)
    )
    assert (first, second) == ({"train", "valid", "test", "dict"}, {"train", "dict"})
    assert not list((folder / "three" / "subword").glob("train*"))


def test_fairseq_takes_them_in_turn(corpus):
    folder, _, _ = corpus
    data = ":".join(map(str, bins_of(folder / "three", 3)))
    _, task, _ = toy.build(data, "-s", "en", "-t", "de")
    seen = []
    for epoch in range(1, 5):
        task.load_dataset("train", epoch=epoch)
        seen.append(len(task.dataset("train").index))
    assert seen == [4, 4, 3, 4]
    task.load_dataset("valid", epoch=2)
    assert len(task.dataset("valid").index) == 1


def test_edits_and_words(tmp_path):
    write_corpus(tmp_path)
    plain = {"tokenizer": "none", "truecase": False, "extra": ("mt=like-target",), "edits_of": "mt"}
    for subwords in ("bpe", "none"):
        options = {**plain, "subwords": subwords}
        prepare(config(tmp_path, f"whole-{subwords}", **options))
        prepare(config(tmp_path, f"two-{subwords}", **options, shards=2, sample_documents=DOCUMENTS))
        for side in ("en", "de", "mt"):
            dealt = [documents_of(path, side) for path in bins_of(tmp_path / f"two-{subwords}", 2)]
            together = [dealt[number % 2][number // 2] for number in range(DOCUMENTS)]
            assert together == documents_of(tmp_path / f"whole-{subwords}" / "data-bin", side)


def test_only_what_is_lacking_is_made(corpus, tmp_path, monkeypatch):
    write_corpus(tmp_path)
    wanted = config(tmp_path, "out", shards=3)
    bins, inputs = fit(wanted)
    for number in (0, 2):
        bins.make(number)
    with pytest.raises(InputError, match="data-bin-1 is not there, or was changed; run again"):
        finish(bins, inputs)
    assert not (tmp_path / "out" / "manifest.json").exists()
    made = []
    monkeypatch.setattr(DataBins, "_binarise", lambda self, number: made.append(number) or {"tokens": {}})
    for number in range(3):
        bins.make(number)
    assert made == [1]


def test_with_a_reused_output_nothing_is_learnt(corpus, tmp_path):
    folder, _, three = corpus
    write_corpus(tmp_path)
    manifest = prepare(
        PrepareConfig("en", "de", tmp_path / "out", train=str(tmp_path / "train"), reuse=folder / "three", shards=2)
    )
    assert manifest["models"] == three["models"]
    assert not list((tmp_path / "out" / "text").glob("sample.*"))


@pytest.mark.slow
def arguments(folder, *more):
    files = [f"--{split}={folder / split}" for split in ("train", "valid", "test")]
    kind = ["--subwords", "bpe", "--vocab-size", "45", "--character-coverage", "1", "--output", str(folder / "out")]
    return ["prepare", "-s", "en", "-t", "de", *files, *kind, "--shards", "2", "--workers", "1", *more]


def test_jobs_of_processes(tmp_path, capsys):
    write_corpus(tmp_path)
    assert cli.main(arguments(tmp_path)) == 0
    first = {path: path.stat().st_mtime_ns for path in tmp_path.glob("out/data-bin*/train.*")}
    assert len(first) == 10
    (tmp_path / "out" / "data-bin-1" / "train.en-de.en.bin").write_bytes(b"")
    assert cli.main(arguments(tmp_path)) == 0
    second = {path: path.stat().st_mtime_ns for path in tmp_path.glob("out/data-bin*/train.*")}
    assert {path.parent.name for path in first if first[path] != second[path]} == {"data-bin-1"}


def documents(number):
    return [Document([[(f"d{n} s{s}", f"D{n} S{s}") for s in range(n % 3 + 1)]]) for n in range(number)]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_sample_is_of_whole_documents_whatever_the_parts(tmp_path, parts):
    files = [[tmp_path / f"{part}.{side}" for side in "ab"] for part in range(parts)]
    held = deal(documents(20), files)
    assert sum(one.documents for one in held) == 20
    assert sum(one.lines for one in held) == sum(len(one) + 1 for one in documents(20))
    output = [tmp_path / f"sample.{side}" for side in "ab"]
    found = sample(files, output, 20, 7, seed=1)
    text = output[0].read_text()
    assert found == Held(text.count("\n"), 7)
    numbers = [int(document.split()[0][1:]) for document in text.split("\n\n")[:-1]]
    assert numbers == [1, 7, 10, 11, 12, 16, 18] and output[1].read_text() == text.upper()
    assert sample(files, output, 20, 50, seed=1) == Held(sum(one.lines for one in held), 20)
    sample(files, output, 20, 7, seed=2)
    assert output[0].read_text() not in (text, "")


@contextlib.contextmanager
def open_files(more):
    """Lets this process open so many files more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir("/proc/self/fd")))
    most = next(most for most in range(2**16) if len(set(range(most)) - used) == more)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("buffered", [1, 300, 2**24])
def test_more_shards_than_open_files(tmp_path, monkeypatch, buffered):
    monkeypatch.setattr("docnmt_fairseq.corpus.files.BUFFERED", buffered)
    monkeypatch.setattr("docnmt_fairseq.corpus.files.OPEN", 5)
    files = [[tmp_path / f"{part}.{side}" for side in "ab"] for part in range(40)]
    output = [tmp_path / f"sample.{side}" for side in "ab"]
    with open_files(9):
        with pytest.raises(OSError, match="Too many open files"), contextlib.ExitStack() as stack:
            for _ in range(12):
                stack.enter_context(open(tmp_path / "x", "w"))
        held = deal(documents(130), files)
        sample(files, output, 130, 100, seed=1)
    for part, (names, one) in enumerate(zip(files, held)):
        wanted = [f"d{number} s{s}" for number in range(part, 130, 40) for s in [*range(number % 3 + 1), None]]
        assert names[0].read_text().splitlines() == ["" if line.endswith("None") else line for line in wanted]
        assert names[1].read_text() == names[0].read_text().upper()
        assert one == Held(len(wanted), len(range(part, 130, 40)))
    deal(documents(130), [[tmp_path / "whole.a", tmp_path / "whole.b"]])
    sample([[tmp_path / "whole.a", tmp_path / "whole.b"]], [tmp_path / "s.a", tmp_path / "s.b"], 130, 100, seed=1)
    assert [path.read_text() for path in output] == [(tmp_path / name).read_text() for name in ("s.a", "s.b")]


def test_data_bins_of_more_shards_do_not_stay(tmp_path, caplog):
    write_corpus(tmp_path)
    prepare(config(tmp_path, "out", shards=3, subwords="none", tokenizer="none", truecase=False))
    (tmp_path / "out" / "data-bin-old").mkdir()
    (tmp_path / "out" / ".stamps" / "data-bin-2.json").unlink()  # as a killed run leaves it
    for shards, left in ((2, ["data-bin", "data-bin-1", "data-bin-old"]), (1, ["data-bin", "data-bin-old"])):
        prepare(config(tmp_path, "out", shards=shards, subwords="none", tokenizer="none", truecase=False))
        assert sorted(path.name for path in (tmp_path / "out").glob("data-bin*")) == left
        assert len(list((tmp_path / "out" / ".stamps").glob("data-bin*"))) == shards
        texts = [f"train-{number}.en" for number in range(shards)] if shards > 1 else ["train.en"]
        assert sorted(path.name for path in (tmp_path / "out" / "text").glob("train*.en")) == texts
    assert "data-bin-1: of a former --shards, is removed" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shards": 12}, r"--shards 12: there are only 11 documents"),
        ({"shards": 0}, "--shards must be at least 1"),
        ({"sample_documents": 0}, "--sample-documents must be at least 1"),
        ({"train": None, "shards": 2, "subword_model": ["m"], "truecase": False}, "--shards: of --train"),
        ({"reuse": "x", "sample_documents": 3}, "--sample-documents: --reuse learns nothing"),
    ],
)
def test_bad_options(corpus, tmp_path, options, message):
    folder, _, _ = corpus
    given = {**vars(config(folder, tmp_path / "out")), **options}
    if options.get("reuse"):
        given["reuse"] = folder / "three"
    with pytest.raises(InputError, match=message):
        prepare(PrepareConfig(**given))
    assert not list(tmp_path.rglob("*.en"))
