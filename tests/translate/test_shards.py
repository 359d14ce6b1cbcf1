"""Shards of a translation become the same files."""

import shutil
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.counts import write_counts
from docnmt_fairseq.translate.formats.text import Text
from docnmt_fairseq.translate.parts import Part, part_path, put_together, record_path
from docnmt_fairseq.translate.request import Request
from docnmt_fairseq.translate.shards import Shard, owners_of
from docnmt_fairseq.translate.texts import texts_of
from tests.support.interrupted import SETTINGS, TEXT, WANTED, Failing, Scoring, names, run
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
    assert list(owners_of([[1, 9]], 2)) == [[(1, 0, 1), (2, 1, 2)]]  # each where its middle is


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
    # Parts that other machines wrote and that were brought here.
    done = (folder / "out").read_bytes()
    (folder / "out").unlink()
    for number in (1, 2):
        run(folder, Stub(), output=f"machine-{number}/out", shard=Shard(number, 2))
        for file in (folder / f"machine-{number}").iterdir():
            file.rename(folder / file.name)
        (folder / f"machine-{number}").rmdir()
    with pytest.raises(InputError, match=r"out\.shard-1-of-2: is there already"):
        run(folder, Stub(), shard=Shard(1, 2))
    assert run(folder, Stub(), shard=Shard(1, 2), resume=True) == []
    assert (folder / "out").read_bytes() == done and names(folder) == ["in", "out"]
    assert run(folder, Stub(), shard=Shard(2, 2), resume=True) == []


OTHER = {"beam": "2"}


def test_parts_of_another_text_or_other_options_are_not_put_together(folder):
    run(folder, Stub(), shard=Shard(1, 2))
    stub = Stub()
    with pytest.raises(
        InputError, match=r"shard-1-of-2: was made with another --beam \(5\) than out\.shard-2-of-2 \(2"
    ):
        run(folder, stub, shard=Shard(2, 2), settings=OTHER)
    (folder / "in").write_text(TEXT * 2)
    with pytest.raises(InputError, match=r"out\.shard-1-of-2: was made from another text than out\.shard-2-of-2; make"):
        run(folder, stub, shard=Shard(2, 2))
    assert not stub.seen and not (folder / "out").exists()
    (folder / "in").write_text(TEXT)
    run(folder, stub, shard=Shard(2, 2))
    assert (folder / "out").read_text() == WANTED and names(folder) == ["in", "out"]


def test_shards_that_are_at_work_with_other_options_find_it_when_they_end(folder):
    class Overtaken(Stub):
        def translate(self, *arguments):
            if not self.seen:
                run(folder, Stub(), shard=Shard(1, 2))
            return super().translate(*arguments)

    for _ in range(2):  # what is not put together is not put together on a further try
        with pytest.raises(InputError, match=r"shard-2-of-2: was made with another --beam \(2\) than out\.shard-1"):
            run(folder, Overtaken(), shard=Shard(2, 2), settings=OTHER, resume=part_path(folder / "out", 2, 2).exists())
    assert not (folder / "out").exists()


def test_all_shards_that_are_made_anew_become_a_file_with_the_last_of_them(folder, caplog):
    run(folder, Stub(), shard=Shard(2, 3))
    run(folder, Stub(), shard=Shard(3, 3))
    for number in (1, 2, 3):
        assert not (folder / "out").exists()
        run(folder, Stub(str.title), shard=Shard(number, 3), force=True, settings=OTHER)
        assert ("out.shard-3-of-3: was made with another --beam" in caplog.text) == (number == 2)
        caplog.clear()
    assert (folder / "out").read_text() == TEXT.title().replace("<P>", "<p>") and names(folder) == ["in", "out"]


def test_the_record_of_a_part_is_never_beside_the_part_of_another_work(folder, monkeypatch):
    part, write = part_path(folder / "out", 1, 2), Part.write_record
    run(folder, Stub(), shard=Shard(1, 2))

    def killed(self):
        write(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Part, "write_record", killed)
    with pytest.raises(KeyboardInterrupt):
        run(folder, Stub(str.title), shard=Shard(1, 2), force=True, settings=OTHER)
    assert record_path(part).exists() and not part.exists()


def test_parts_that_leave_documents_out_are_not_put_together(folder):
    (folder / "more").write_text(TEXT[: len(TEXT) // 2])
    run(folder, Stub(), shard=Shard(1, 2), output="out/in")
    message = "begins at document 6, but the part before ends at 10: other files were shared out"
    with pytest.raises(InputError, match=rf"in\.shard-2-of-2: {message}"):
        run(folder, Stub(), inputs=["more", "in"], shard=Shard(2, 2), output="out")
    assert not (folder / "out" / "in").exists()


DAMAGED = '{"source": 1, "documents": 2, "first": 0, "end": 1, "settings": {}}'


@pytest.mark.parametrize("record", [None, "", "{}", DAMAGED])
def test_a_part_of_which_nothing_is_known_is_not_taken(folder, record):
    run(folder, Stub(), shard=Shard(1, 2))
    if record is None:
        record_path(part_path(folder / "out", 1, 2)).unlink()
    else:
        record_path(part_path(folder / "out", 1, 2)).write_text(record)
    with pytest.raises(InputError, match=r"out\.shard-1-of-2: beside it, out\.shard-1-of-2\.json should say what"):
        run(folder, Stub(), shard=Shard(2, 2))
    run(folder, Stub(), shard=Shard(1, 2), force=True)
    run(folder, Stub(), shard=Shard(2, 2))
    assert (folder / "out").read_text() == WANTED


def test_two_shards_that_end_at_once_write_the_same_file(tmp_path, monkeypatch):
    parts = [part_path(tmp_path / "out", number, 2) for number in (1, 2)]
    for number, part in enumerate(parts):
        part.write_text(f"{part.name}\n")
        Part(part, "", 2, number, number + 1, SETTINGS).write_record()
    copy, written = shutil.copyfileobj, []

    def copied(source, target, *rest):
        written.append(target.name)
        copy(source, target, *rest)

    def overtaken(*arguments):
        monkeypatch.setattr(shutil, "copyfileobj", copied)
        assert put_together(tmp_path / "out", parts)  # the other shard, in the middle of this one's work
        copied(*arguments)

    monkeypatch.setattr(shutil, "copyfileobj", overtaken)
    assert put_together(tmp_path / "out", parts)
    assert (tmp_path / "out").read_text() == "out.shard-1-of-2\nout.shard-2-of-2\n" and names(tmp_path) == ["out"]
    assert len(set(written)) == 2, "both write the same unfinished file, which one of them cuts off"


def test_a_shard_whose_parts_another_takes_while_it_looks_at_them_finds_the_file(tmp_path, monkeypatch):
    parts = [part_path(tmp_path / "out", number, 2) for number in (1, 2)]
    for number, part in enumerate(parts):
        part.write_text(f"{part.name}\n")
        Part(part, "", 2, number, number + 1, SETTINGS).write_record()
    read = Part.read

    def overtaken(path):
        monkeypatch.setattr(Part, "read", read)
        assert put_together(tmp_path / "out", parts)
        return read(path)

    monkeypatch.setattr(Part, "read", overtaken)
    assert put_together(tmp_path / "out", parts) and names(tmp_path) == ["out"]


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


def test_parts_behind_which_documents_are_missing_are_not_put_together(tmp_path):
    parts = [part_path(tmp_path / "out", number, 2) for number in (1, 2)]
    for number, part in enumerate(parts):
        part.write_text("line")
        Part(part, "", 3, number, number + 1, SETTINGS).write_record()
    with pytest.raises(InputError, match=r"shard-2-of-2: ends at document 2 of 3, but no part is behind it"):
        put_together(tmp_path / "out", parts)
    assert not (tmp_path / "out").exists() and all(part.exists() for part in parts)


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_shards_that_there_are_not(number, of):
    with pytest.raises(InputError, match="--shard"):
        Shard(number, of)


def test_standard_input_has_no_shards():
    with pytest.raises(InputError, match="standard input and output have no shards"):
        texts_of(Request([Path("-")], Path("out"), shard=Shard(1, 2)))


@pytest.mark.parametrize("shards", [[Shard()], [Shard(2, 2), Shard(1, 2)]])
def test_scores_of_a_translation_that_is_replaced_do_not_stay_beside_the_next_one(folder, shards):
    run(folder, Scoring(), scores=True, output="other")
    for shard in shards:
        run(folder, Scoring(), scores=True, shard=shard)
    assert names(folder) == ["in", "other", "other.scores.tsv", "out", "out.scores.tsv"]
    for shard in shards:
        run(folder, Stub(), shard=shard, force=True)
    assert names(folder) == ["in", "other", "other.scores.tsv", "out"]
