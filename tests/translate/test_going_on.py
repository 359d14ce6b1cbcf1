"""Interrupted translations go on, to the byte."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.output import FileOutput
from docnmt_fairseq.translate.shards import Shard
from tests.support.interrupted import SETTINGS, TEXT, WANTED, Failing, Scoring, names, run, table
from tests.support.texts import Stub


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TOGETHER", 9)  # three documents
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def test_an_interrupted_file_goes_on_after_its_last_document(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(3))
    assert names(folder) == ["in", "out.partial", "out.partial.json"]  # nothing under the name
    assert (folder / "out.partial").read_text() == WANTED[: WANTED.index("DOCUMENT 9\n")]
    stub = Stub()
    (text,) = run(folder, stub, resume=True)
    assert text.done == 9 and text.sentences == 33
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


def test_what_is_piped_goes_on_when_it_is_piped_again(folder, pipe):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(3), inputs=[pipe(TEXT)])
    with pytest.raises(InputError, match="was interrupted after 9 documents; --resume goes on"):
        run(folder, Stub(), inputs=[pipe(TEXT)])
    stub = Stub()
    run(folder, stub, inputs=[pipe(TEXT)], resume=True)
    assert stub.seen[0][0] == "document 9" and (folder / "out").read_text() == WANTED


def test_a_translation_goes_on_with_the_same_text_and_options_only(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    with pytest.raises(InputError, match=r"was begun with another --beam \(5\); give the same"):
        run(folder, Stub(), resume=True, settings={"beam": "4"})
    for settings, named in (({}, r"--beam \(5\)"), ({**SETTINGS, "lenpen": "1"}, r"--lenpen \(none\)")):
        with pytest.raises(InputError, match=f"was begun with another {named}; give the same"):
            run(folder, Stub(), resume=True, settings=settings)
    for other in ("other\n", "docu\nment 1"):  # also the same letters in other lines
        (folder / "in").write_text(TEXT.replace("document 1\n", other))
        with pytest.raises(InputError, match="was another one up to where it goes on"):
            run(folder, Stub(), resume=True)
    (folder / "in").write_text(TEXT.replace("document 7\n", "mended\n"))  # behind it the text may be mended
    run(folder, Stub(), resume=True)
    assert "MENDED" in (folder / "out").read_text()


class Drawing(Failing):
    """Translates a line to where it comes from."""

    def translate(self, documents, origins, *rest):
        super().translate(documents, origins, *rest)
        return [
            [
                line if line in ("", "<p>") else f"{origin.file}:{origin.line + place}"
                for place, line in enumerate(lines)
            ]
            for lines, origin in zip(documents, origins)
        ]


def test_what_is_drawn_for_a_line_is_the_same_in_groups_shards_and_what_goes_on(folder, monkeypatch):
    (folder / "texts" / "more").mkdir(parents=True)
    for name in ("a", "more/b"):
        (folder / "texts" / name).write_text(TEXT)

    def found(output):
        return [(folder / output / name).read_text() for name in ("a", "more/b")]

    monkeypatch.setattr(files, "TOGETHER", 10_000)
    run(folder, Drawing(9), output="at once", inputs=["texts"])
    first, second = found("at once")
    assert [line for line in first.splitlines() if ":" in line][:4] == ["a:0", "a:1", "a:3", "a:5"]
    assert second == first.replace("a:", "more/b:")
    monkeypatch.setattr(files, "TOGETHER", 9)
    for calls in (2, 9):  # inside a file, and between files
        with pytest.raises(KeyboardInterrupt):
            run(folder, Drawing(calls), output=f"stops {calls}", inputs=["texts"])
        run(folder, Drawing(99), output=f"stops {calls}", inputs=["texts"], resume=True)
        assert found(f"stops {calls}") == [first, second]
    for number in (3, 2, 1):
        run(folder, Drawing(99), output="shared", inputs=["texts"], shard=Shard(number, 3))
    assert found("shared") == [first, second]


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


@pytest.mark.parametrize("shard", [Shard(), Shard(1, 2)])
def test_what_is_killed_between_the_names_of_a_file_and_its_scores_goes_on(folder, monkeypatch, shard):
    run(folder, Scoring(), scores=True, output="whole", shard=shard)
    replace = os.replace

    def killed(source, target):
        replace(source, target)
        if str(target).endswith(".scores.tsv"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run(folder, Scoring(), scores=True, shard=shard)
    assert any(name.endswith(".scores.tsv") and name.startswith("out") for name in names(folder))
    stub = Scoring()
    run(folder, stub, scores=True, resume=True, shard=shard)
    assert sum(map(len, stub.seen)) < 20, "it began anew"
    out, whole = (
        {file.name.removeprefix(name): file.read_bytes() for file in folder.glob(f"{name}*")}
        for name in ("out", "whole")
    )
    assert out == whole and len(out) > 1


def test_parts_go_on_that_were_not_put_together_behind_the_table_of_their_scores(folder, monkeypatch):
    run(folder, Scoring(), scores=True, shard=Shard(1, 2))
    replace, files_left = os.replace, [folder / "out", folder / "out.scores.tsv"]

    def killed(source, target):
        if target in files_left:
            files_left.remove(target)
            if not files_left:
                raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run(folder, Scoring(), scores=True, shard=Shard(2, 2))
    stub = Scoring()
    run(folder, stub, scores=True, shard=Shard(2, 2), resume=True)
    assert not stub.seen and names(folder) == ["in", "out", "out.scores.tsv"]
    assert (folder / "out").read_text() == WANTED
    assert (folder / "out.scores.tsv").read_text() == table(WANTED.splitlines())


def test_what_begins_anew_is_not_gone_on_with_as_what_was_there_before(folder, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))

    def killed(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(FileOutput, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        run(folder, Stub(str.title), force=True, settings={"beam": "4"})
    assert names(folder) == ["in"]


def test_what_a_journal_tells_of_is_on_the_disk(folder, monkeypatch):
    sync, sizes = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size) or sync(file))
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(2))
    assert json.loads((folder / "out.partial.json").read_text())["bytes"][0] in sizes


NO_BYTES = '{"documents": 1, "bytes": [], "source": "", "settings": {"beam": "5"}}'


@pytest.mark.parametrize("journal", ["", "{", "[]", '{"documents": 1}', NO_BYTES, None])
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
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.request import Request
from docnmt_fairseq.translate.texts import texts_of
files.TOGETHER = 50
class Slow:
    def translate_lines(self, documents, names, empty_lines, progress):
        time.sleep(random.random() / 200)
        return [[TranslatedLine(line[::-1], []) for line in lines] for lines in documents]
texts = texts_of(Request([Path(sys.argv[1])], Path(sys.argv[2]), resume=True))
print("begun", flush=True)
files.translate_files(texts, Slow(), "document", lambda n: None, resume=True)
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
