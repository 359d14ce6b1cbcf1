"""Interrupted translations go on, to the byte; shards become the same file."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.files import translate_files
from docnmt_fairseq.translate.jobs import Request, jobs_of
from docnmt_fairseq.translate.lines import TranslatedLine, Translation
from docnmt_fairseq.translate.shards import Shard, owners_of, part_path, put_together
from tests.support.texts import Stub

TEXT = "".join(f"document {n}\nsecond line\n<p>\nthird\n\n" for n in range(20))
WANTED = TEXT.upper().replace("<P>", "<p>")
SETTINGS = {"beam": "5"}


class Scoring(Stub):
    """Gives every sentence two translations."""

    def translate_lines(self, documents, *arguments):
        best = self.translate(documents, *arguments)
        return [
            [
                TranslatedLine(line, [] if is_mark(line) else [Translation(line, -0.5), Translation("?", -1)])
                for line in one
            ]
            for one in best
        ]


class Failing(Scoring):
    """Is interrupted in the middle."""

    def __init__(self, calls, error=KeyboardInterrupt):
        super().__init__()
        self.calls, self.error = calls, error

    def translate(self, *arguments):
        self.calls -= 1
        if self.calls < 0:
            raise self.error()
        return super().translate(*arguments)


def run(folder, translator, *, output="out", settings=SETTINGS, inputs=("in",), scores=False, **options):
    jobs = jobs_of(Request([folder / name for name in inputs], folder / output, **options))
    progress = []
    translate_files(
        jobs, translator, "document", progress.append, scores, resume=options.get("resume", False), settings=settings
    )
    return jobs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TOGETHER", 9)  # three documents
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_file_goes_on_after_its_last_document(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(3))
    assert names(folder) == ["in", "out.partial", "out.partial.json"]  # nothing under the name
    assert (folder / "out.partial").read_text() == WANTED[: WANTED.index("DOCUMENT 9\n")]
    stub = Stub()
    (job,) = run(folder, stub, resume=True)
    assert job.done == 9 and job.sentences == 33
    assert stub.seen[0][0] == "document 9"  # nothing is translated twice
    assert (folder / "out").read_text() == WANTED
    assert names(folder) == ["in", "out"]


def test_what_a_crash_left_behind_the_last_whole_document_is_cut_off(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    with open(folder / "out.partial", "a") as stream:
        stream.write("half a li" * 1000)  # more than what is still to come
    run(folder, Stub(), resume=True)
    assert (folder / "out").read_text() == WANTED


def test_an_interrupted_file_is_neither_forgotten_nor_gone_on_with_unasked(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    with pytest.raises(InputError, match=r"out: was interrupted after 6 documents; --resume goes on, --force begins"):
        run(folder, Stub())
    stub = Stub()
    run(folder, stub, force=True)
    assert sum(map(len, stub.seen)) == 100 and names(folder) == ["in", "out"]


def test_a_translation_goes_on_with_the_same_text_and_options_only(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    with pytest.raises(InputError, match=r"was begun with another --beam \(5\); give the same"):
        run(folder, Stub(), resume=True, settings={"beam": "4"})
    (folder / "in").write_text(TEXT.replace("document 1\n", "other\n"))
    with pytest.raises(InputError, match="was another one up to where it goes on"):
        run(folder, Stub(), resume=True)
    (folder / "in").write_text(TEXT.replace("document 7\n", "mended\n"))  # behind it the text may be mended
    run(folder, Stub(), resume=True)
    assert "MENDED" in (folder / "out").read_text()


def table(lines):
    """Scores of the lines of a translation."""
    rows = [
        f"{n}\t1\t-0.500000\t{line}\n{n}\t2\t-1.000000\t?\n" for n, line in enumerate(lines, 1) if not is_mark(line)
    ]
    return "line\trank\tscore\ttranslation\n" + "".join(rows)


def test_scores_go_on_and_are_put_together_with_their_translations(folder):
    wanted = table(WANTED.splitlines())
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2), scores=True)
    with open(folder / "out.scores.tsv.partial", "a") as stream:
        stream.write("half a row" * 1000)
    run(folder, Scoring(), scores=True, resume=True)
    assert (folder / "out.scores.tsv").read_text() == wanted and (folder / "out").read_text() == WANTED
    for number in (2, 1):
        run(folder, Scoring(), output="shared", scores=True, shard=Shard(number, 2))
    assert (folder / "shared.scores.tsv").read_text() == wanted
    assert names(folder) == ["in", "out", "out.scores.tsv", "shared", "shared.scores.tsv"]


@pytest.mark.parametrize("journal", ["", "{", "[]", '{"documents": 1}', None])
def test_a_broken_journal_begins_anew(folder, journal):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    if journal is None:
        (folder / "out.partial").write_text("")  # shorter than it says
    else:
        (folder / "out.partial.json").write_text(journal)
    stub = Stub()
    run(folder, stub, resume=True)
    assert sum(map(len, stub.seen)) == 100 and names(folder) == ["in", "out"]


def test_an_error_names_the_line_of_the_file_and_keeps_what_was_done(folder):
    class TooLong(Stub):
        def translate(self, documents, found, *arguments):
            for name, lines in zip(found, documents):
                if "document 13" in lines:
                    raise InputError.at(name, lines.index("document 13") + 4, "too long")
            return super().translate(documents, found, *arguments)

    with pytest.raises(InputError, match=rf"in:{13 * 5 + 4}: too long"):
        run(folder, TooLong())
    assert json.loads((folder / "out.partial.json").read_text())["documents"] == 12


def test_what_fails_before_its_first_document_leaves_nothing(folder):
    with pytest.raises(InputError):
        run(folder, Failing(0, lambda: InputError("no")))
    assert names(folder) == ["in"]


def test_a_document_of_a_page_is_named_by_its_text(tmp_path):
    class TooLong(Stub):
        def translate(self, documents, found, *arguments):
            raise InputError.at(found[0], 3, "too long")

    (tmp_path / "in.html").write_text("<p>One.<p>Two.")
    with pytest.raises(InputError, match=r"in\.html: 'Two\.'\.\.\.: too long"):
        run(tmp_path, TooLong(), inputs=["in.html"])


KILLED = """
import random, sys, time
from pathlib import Path
from docnmt_fairseq.translate import files
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.jobs import Request, jobs_of
files.TOGETHER = 50
class Slow:
    def translate(self, documents, names, empty_lines, progress):
        time.sleep(random.random() / 200)
        return [[line[::-1] for line in lines] for lines in documents]
jobs = jobs_of(Request([Path(sys.argv[1])], Path(sys.argv[2]), resume=True))
print("begun", flush=True)
files.translate_files(jobs, Slow(), "document", lambda n: None, resume=True)
"""


def killed_at_times(source, target, seed, wait):
    """Runs the translation again and again, killed at a random moment each time, until it is complete."""
    moments = random.Random(seed)
    kills = 0
    while not target.exists():
        with subprocess.Popen([sys.executable, "-c", KILLED, source, target], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(moments.random() * wait)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
        if kills > 60:
            raise AssertionError("it never ends")
        wait *= 1.1
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_the_same_bytes_come_out(tmp_path, seed):
    source, target = tmp_path / "in", tmp_path / "out"
    moments = random.Random(seed)
    source.write_text(
        "".join("".join(f"line {n} {m}\n" for m in range(moments.randrange(9))) + "\n" for n in range(4000))
    )
    kills = killed_at_times(source, target, seed, 0.3)
    assert kills > 1
    assert target.read_text() == "".join(f"{line[::-1]}\n" for line in source.read_text().splitlines())
    assert names(tmp_path) == ["in", "out"]


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


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_shards_that_there_are_not(number, of):
    with pytest.raises(InputError, match="--shard"):
        Shard(number, of)


def test_standard_input_has_no_shards():
    with pytest.raises(InputError, match="standard input and output have no shards"):
        jobs_of(Request([Path("-")], Path("out"), shard=Shard(1, 2)))


LARGE = """
import resource, sys
from pathlib import Path
from docnmt_fairseq.translate import files
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.jobs import Request, jobs_of
class Upper:
    def translate(self, documents, names, empty_lines, progress):
        return [[line.upper() for line in lines] for lines in documents]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder = Path(sys.argv[1])
small, large = (jobs_of(Request([folder / name], folder / f"{name}.out")) for name in ("small", "large"))
files.translate_files(small, Upper(), "document", lambda n: None)
before = peak()
files.translate_files(large, Upper(), "document", lambda n: None)
print(before, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in KiB on Linux")
def test_memory_does_not_grow_with_a_file_of_a_million_lines(tmp_path):
    for name, documents in (("small", 2_000), ("large", 100_000)):
        with open(tmp_path / name, "w") as stream:
            for number in range(documents):
                stream.write(
                    "".join(f"This is line {line} of document {number}, one of many.\n" for line in range(9)) + "\n"
                )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LARGE, tmp_path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < 8 * 1024, f"{after - before} KiB more for a file of 50 times the size"
    with open(tmp_path / "large") as original, open(tmp_path / "large.out") as found:
        assert all(a.upper() == b for a, b in zip(original, found))
    assert (tmp_path / "large.out").stat().st_size == (tmp_path / "large").stat().st_size
