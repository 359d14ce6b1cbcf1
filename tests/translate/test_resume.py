"""Interrupted translations are resumed to the same bytes."""

import json
import os

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import translate_files as module
from docnmt_fairseq.translate.inputs import Shard
from docnmt_fairseq.translate.writers import FileWriter
from tests.support.texts import Stub
from tests.support.translated_files import EXPECTED, TEXT, Failing, Scoring, names, run, table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GROUP_SENTENCES", 9)  # three documents
    (tmp_path / "in").write_text(TEXT)
    return tmp_path


def interrupt(folder, calls, **options):
    with pytest.raises(KeyboardInterrupt):
        run(folder, Failing(calls), **options)


def test_resumes_after_the_last_document_written(folder):
    interrupt(folder, 3)
    assert names(folder) == ["in", "out.partial", "out.partial.json"]
    assert (folder / "out.partial").read_text() == EXPECTED[: EXPECTED.index("DOCUMENT 9\n")]
    with open(folder / "out.partial", "a") as stream:
        stream.write("half a li" * 1000)  # what a crash may leave after the last document
    stub = Stub()
    (file,) = run(folder, stub, resume=True)
    assert file.done == 9 and file.sentences == 33
    assert stub.seen[0][0] == "document 9"  # nothing is translated twice
    assert (folder / "out").read_text() == EXPECTED and names(folder) == ["in", "out"]


def test_interrupted_files_need_resume_or_force(folder):
    interrupt(folder, 2)
    with pytest.raises(InputError):
        run(folder, Stub())
    stub = Stub()
    run(folder, stub, force=True)
    assert sum(map(len, stub.seen)) == 100 and names(folder) == ["in", "out"]


def test_pipes_are_resumed(folder, pipe):
    interrupt(folder, 3, inputs=[pipe(TEXT)])
    stub = Stub()
    run(folder, stub, inputs=[pipe(TEXT)], resume=True)
    assert stub.seen[0][0] == "document 9" and (folder / "out").read_text() == EXPECTED


def test_resume_refuses_other_settings_and_other_text(folder):
    interrupt(folder, 2)
    with pytest.raises(InputError):
        run(folder, Stub(), resume=True, fingerprint="other")
    for other in ("other\n", "docu\nment 1"):  # also the same letters in other lines
        (folder / "in").write_text(TEXT.replace("document 1\n", other))
        with pytest.raises(InputError):
            run(folder, Stub(), resume=True)
    (folder / "in").write_text(TEXT.replace("document 7\n", "mended\n"))  # the text that follows may change
    run(folder, Stub(), resume=True)
    assert "MENDED" in (folder / "out").read_text()


class Locating(Failing):
    """Stub that translates a line to its origin."""

    def translate(self, documents, origins, *rest):
        super().translate(documents, origins, *rest)
        return [
            [line if line in ("", "<p>") else f"{origin.file}:{origin.line + n}" for n, line in enumerate(lines)]
            for lines, origin in zip(documents, origins)
        ]


def test_origins_of_lines_do_not_depend_on_groups_shards_and_interruptions(folder, monkeypatch):
    """Sampling depends on origins."""
    (folder / "texts" / "more").mkdir(parents=True)
    for name in ("a", "more/b"):
        (folder / "texts" / name).write_text(TEXT)

    def found(output):
        return [(folder / output / name).read_text() for name in ("a", "more/b")]

    monkeypatch.setattr(module, "GROUP_SENTENCES", 10_000)
    run(folder, Locating(9), output="at once", inputs=["texts"])
    first, second = found("at once")
    assert [line for line in first.splitlines() if ":" in line][:4] == ["a:0", "a:1", "a:3", "a:5"]
    assert second == first.replace("a:", "more/b:")
    monkeypatch.setattr(module, "GROUP_SENTENCES", 9)
    for calls in (2, 9):  # inside a file, and between files
        with pytest.raises(KeyboardInterrupt):
            run(folder, Locating(calls), output=f"stops {calls}", inputs=["texts"])
        run(folder, Locating(99), output=f"stops {calls}", inputs=["texts"], resume=True)
        assert found(f"stops {calls}") == [first, second]
    for number in (2, 1):
        run(folder, Locating(99), output="a", inputs=["texts/a"], shard=Shard(number, 2))
    assert "".join((folder / f"a.shard-{number}-of-2").read_text() for number in (1, 2)) == first


def test_scores_are_resumed_with_their_translations(folder):
    interrupt(folder, 2, scores=True)
    with open(folder / "out.scores.tsv.partial", "a") as stream:
        stream.write("half a row" * 1000)
    run(folder, Scoring(), scores=True, resume=True)
    assert (folder / "out.scores.tsv").read_text() == table(EXPECTED.splitlines())
    assert (folder / "out").read_text() == EXPECTED
    run(folder, Stub(), force=True)
    assert names(folder) == ["in", "out"], "scores of a replaced translation"


def test_failure_before_the_first_save_leaves_nothing(folder, monkeypatch):
    with pytest.raises(InputError):
        run(folder, Failing(0, lambda: InputError("no")))
    assert names(folder) == ["in"]
    interrupt(folder, 2)

    def killed(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(FileWriter, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        run(folder, Stub(), force=True)
    assert names(folder) == ["in"], "what was written before --force"


def test_journal_covers_only_what_is_on_disk(folder, monkeypatch):
    sync, sizes = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size) or sync(file))
    interrupt(folder, 2)
    assert json.loads((folder / "out.partial.json").read_text())["bytes"][0] in sizes


@pytest.mark.parametrize("journal", ["{", '{"documents": 1}', None])
def test_damaged_journal_restarts(folder, journal):
    interrupt(folder, 2)
    if journal is None:
        (folder / "out.partial").write_text("")  # shorter than the journal says
    else:
        (folder / "out.partial.json").write_text(journal)
    stub = Stub()
    run(folder, stub, resume=True)
    assert sum(map(len, stub.seen)) == 100 and names(folder) == ["in", "out"]


def test_errors_name_the_line_of_the_file_and_keep_finished_documents(folder):
    class TooLong(Stub):
        def translate(self, documents, found, *arguments):
            for name, lines in zip(found, documents):
                if "document 13" in lines:
                    raise InputError.at(name, lines.index("document 13") + 4, "too long")
            return super().translate(documents, found, *arguments)

    with pytest.raises(InputError, match=rf"in:{13 * 5 + 4}: too long"):
        run(folder, TooLong())
    assert json.loads((folder / "out.partial.json").read_text())["documents"] == 12
    (folder / "in.html").write_text("<p>One.<p>document 13<p>Two.<p>Three.")
    with pytest.raises(InputError):
        run(folder, TooLong(), inputs=["in.html"], output="page")
