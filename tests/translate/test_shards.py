"""Shards of a translation become the same files."""

import shutil
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.counts import write_counts
from docnmt_fairseq.translate.formats.text import Text
from docnmt_fairseq.translate.request import Request
from docnmt_fairseq.translate.shards import Shard, owners_of, part_path, put_together
from docnmt_fairseq.translate.texts import texts_of
from tests.support.interrupted import TEXT, WANTED, Failing, names, run
from tests.support.texts import Stub


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TOGETHER", 9)  # three documents
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def test_shards_share_documents_out_evenly_and_in_order():
    sizes = [[3] * 10, [], [5], [1, 1, 1, 30, 1], [0, 0]]
    for shards in (1, 2, 3, 7, 100):
        found = list(owners_of(sizes, shards))
        for documents, ranges in zip(sizes, found):
            covered = [number for _, first, end in ranges for number in range(first, end)]
            assert covered == list(range(len(documents)))
        order = [owner for ranges in found for owner, _, _ in ranges]
        assert order == sorted(order) and set(order) <= set(range(1, shards + 1))
    halves = [0, 0]
    for documents, ranges in zip(sizes, owners_of(sizes, 2)):
        for owner, first, end in ranges:
            halves[owner - 1] += sum(documents[first:end])
    assert max(halves) <= 49  # of 69, of which 30 are one document


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_shards_become_the_file_that_one_run_writes(folder, order):
    (folder / "texts").mkdir()
    (folder / "texts" / "long.txt").write_text(TEXT)
    (folder / "texts" / "page.html").write_text("<p>One page.</p>")
    (folder / "texts" / "empty.txt").write_text("")
    run(folder, Stub(), inputs=["texts"], output="whole")
    for number in order:
        assert not (folder / "shared" / "long.txt").exists()
        run(folder, Stub(), inputs=["texts"], output="shared", shard=Shard(number, 3))
    whole, shared = (
        {path.name: path.read_bytes() for path in (folder / name).iterdir()} for name in ("whole", "shared")
    )
    assert shared == whole and len(whole) == 3


def test_an_interrupted_shard_goes_on_and_parts_are_put_together_when_asked_again(folder):
    run(folder, Stub(), shard=Shard(2, 2))
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(1), shard=Shard(1, 2))
    stub = Stub()
    run(folder, stub, shard=Shard(1, 2), resume=True)
    assert stub.seen[0][0] == "document 3"
    assert (folder / "out").read_text() == WANTED
    # Parts that another machine wrote and that were brought here.
    done = (folder / "out").read_bytes()
    (folder / "out").unlink()
    part_path(folder / "out", 1, 2).write_bytes(done[:100])
    part_path(folder / "out", 2, 2).write_bytes(done[100:])
    with pytest.raises(InputError, match=r"out\.shard-1-of-2: is there already"):
        run(folder, Stub(), shard=Shard(1, 2))
    assert run(folder, Stub(), shard=Shard(1, 2), resume=True) == []
    assert (folder / "out").read_bytes() == done and names(folder) == ["in", "out"]
    assert run(folder, Stub(), shard=Shard(2, 2), resume=True) == []


def test_two_shards_that_end_at_once_write_the_same_file(tmp_path, monkeypatch):
    parts = [part_path(tmp_path / "out", number, 2) for number in (1, 2)]
    for part in parts:
        part.write_text(f"{part.name}\n")
    copy = shutil.copyfileobj

    def overtaken(*arguments):
        monkeypatch.setattr(shutil, "copyfileobj", copy)
        assert put_together(tmp_path / "out", parts)  # the other shard, in the middle of this one's work
        copy(*arguments)

    monkeypatch.setattr(shutil, "copyfileobj", overtaken)
    assert put_together(tmp_path / "out", parts)
    assert (tmp_path / "out").read_text() == "out.shard-1-of-2\nout.shard-2-of-2\n" and names(tmp_path) == ["out"]


def test_counted_once_files_are_read_by_those_who_translate_them(folder, monkeypatch):
    for name in "abc":
        (folder / "texts").mkdir(exist_ok=True)
        (folder / "texts" / name).write_text(TEXT)
    sources = [folder / "texts" / name for name in "abc"]
    whole = [text.sizes for text in texts_of(Request(sources, folder / "out"))]
    write_counts(folder / "counts", sources, whole)
    read = []
    documents = Text.documents
    monkeypatch.setattr(Text, "documents", lambda *given: read.append(given[2]) or documents(*given))

    def shard(number, **options):
        request = Request([folder / "texts"], folder / "out", shard=Shard(number, 3), **options)
        return [(text.source.name, text.target, text.first, text.end, text.sentences) for text in texts_of(request)]

    for number in (1, 2, 3):
        found = shard(number, counts=folder / "counts")
        assert not read and found == shard(number) and len(read) == 3
        read.clear()
    (folder / "texts" / "b").write_text(TEXT * 2)
    with pytest.raises(InputError, match="b: was changed since its sentences were counted"):
        shard(1, counts=folder / "counts")
    (folder / "texts" / "d").touch()
    with pytest.raises(InputError, match="of 3 files, --input has 4"):
        shard(1, counts=folder / "counts")
    (folder / "counts").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"--counts .*counts: cannot be read"):
        shard(1, counts=folder / "counts")


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_shards_that_there_are_not(number, of):
    with pytest.raises(InputError, match="--shard"):
        Shard(number, of)


def test_standard_input_has_no_shards():
    with pytest.raises(InputError, match="standard input and output have no shards"):
        texts_of(Request([Path("-")], Path("out"), shard=Shard(1, 2)))
