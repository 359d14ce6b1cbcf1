import gzip
import io
import re
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import files as text_files
from docnmt_fairseq.translate.beside import check_beside, lines_beside
from docnmt_fairseq.translate.files import translate_files
from docnmt_fairseq.translate.request import STANDARD, Request
from docnmt_fairseq.translate.shards import Shard
from docnmt_fairseq.translate.texts import texts_of
from tests.support.texts import Plain


class Upper(Plain):
    """Stands in for the translator; remembers what came together."""

    def __init__(self, fails_on=None):
        self.groups, self.fails_on = [], fails_on

    def translate(self, documents, names, empty_lines, progress):
        if any(self.fails_on in lines for lines in documents):
            raise InputError("too long")
        self.groups.append(list(names))
        progress(sum(map(len, documents)))
        return [[line.upper() for line in lines] for lines in documents]


@pytest.fixture
def folder(tmp_path):
    for name, text in (("a.en", "one\n\ntwo\n"), ("b/c.en", "three"), ("b/.hidden", "x\n"), ("d.txt", "four\n")):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    with gzip.open(tmp_path / "in" / "e.en.gz", "wt") as stream:
        stream.write("five\n")
    return tmp_path


def texts(inputs, output, **options):
    return texts_of(Request(inputs, output, **options))


def translated(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_becomes_a_folder_and_small_files_are_translated_together(folder, monkeypatch):
    monkeypatch.setattr(text_files, "TOGETHER", 3)
    todo, translator = texts([folder / "in"], folder / "out"), Upper()
    done = []
    translate_files(todo, translator, "document", done.append)
    assert translated(folder / "out") == {
        "a.en": "ONE\n\nTWO\n", "b/c.en": "THREE\n", "d.txt": "FOUR\n", "e.en": "FIVE\n"
    }  # fmt: skip
    assert (
        translator.groups
        == [[str(folder / "in" / name) for name in names] for names in (("a.en", "b/c.en"), ("d.txt", "e.en.gz"))]
        and sum(text.sentences for text in todo) == 5
    )


def test_what_a_packed_file_holds_says_its_format(tmp_path):
    film = "1\n00:00:01,000 --> 00:00:02,000\none\n"
    (tmp_path / "in").mkdir()
    with gzip.open(tmp_path / "in" / "a.srt.GZ", "wt") as stream:
        stream.write(film)
    with pytest.importorskip("pyarrow").output_stream(tmp_path / "in" / "b.srt.zst", compression="zstd") as stream:
        stream.write(film.encode())
    translate_files(texts([tmp_path / "in"], tmp_path / "out"), Upper(), "document", lambda n: None)
    assert translated(tmp_path / "out") == dict.fromkeys(("a.srt", "b.srt"), film.replace("one", "ONE"))


def test_only_some_of_a_folder(folder):
    assert [text.target.name for text in texts([folder / "in"], folder / "out", pattern="*.txt")] == ["d.txt"]
    with pytest.raises(InputError, match=r"no file \*\.de in it"):
        texts([folder / "in"], folder / "out", pattern="*.de")
    for output in (folder / "out", None):
        with pytest.raises(InputError, match=r"^--pattern \*\.txt: is of the files of a folder"):
            texts([folder / "in" / "d.txt"], output, pattern="*.txt")


@pytest.mark.parametrize("pattern", ["**.en", "/texts/*.en"])
def test_a_pattern_that_none_can_have_is_named(folder, pattern):
    with pytest.raises(InputError, match=f"--pattern {re.escape(pattern)}: .*e\\.g\\. '\\*\\.en'"):
        texts([folder / "in"], folder / "out", pattern=pattern)


def test_a_file_is_told_from_others_by_its_place_in_the_folder_that_was_given_or_by_its_name(folder):
    def keys(*inputs):
        return [text.key for text in texts([folder / name for name in inputs], folder / "out")]

    assert keys("in") == ["a.en", "b/c.en", "d.txt", "e.en.gz"]
    assert keys("in/a.en", "in/b/c.en") == ["a.en", "c.en"] and keys("in/d.txt") == ["d.txt"]


def test_what_is_there_is_replaced_only_where_asked(folder):
    (folder / "out").mkdir()
    (folder / "out" / "a.en").write_text("mine")
    with pytest.raises(InputError, match=r"a\.en: is there already; --force"):
        texts([folder / "in"], folder / "out")
    assert len(texts([folder / "in"], folder / "out", resume=True)) == 3
    translate_files(texts([folder / "in"], folder / "out", force=True), Upper(), "document", lambda n: None)
    assert (folder / "out" / "a.en").read_text() == "ONE\n\nTWO\n"


def test_nothing_half_written_is_left(folder, monkeypatch):
    monkeypatch.setattr(text_files, "TOGETHER", 1)
    with pytest.raises(InputError, match="too long"):
        translate_files(texts([folder / "in"], folder / "out"), Upper("three"), "document", lambda n: None)
    assert translated(folder / "out") == {"a.en": "ONE\n\nTWO\n"}


def test_standard_input_and_output(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é\n<p>\nb".encode())))
    translate_files(texts([STANDARD], None), Upper(), "document", lambda n: None)
    assert capsys.readouterr().out == "É\n<P>\nB\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(InputError, match="standard input:2: not UTF-8"):
        translate_files(texts([STANDARD], None), Upper(), "document", lambda n: None)


def test_a_pipe_is_read_once(folder, pipe):
    for output in (folder / "out", None):
        (text,) = texts([pipe("one\n\ntwo\n")], output)
        assert text.sentences == 0 and [document.lines for document in text.documents()] == [["one", ""], ["two"]]
    translate_files(texts([pipe("one\n\ntwo\n")], folder / "out"), Upper(), "document", lambda n: None)
    assert (folder / "out").read_text() == "ONE\n\nTWO\n"


def test_what_reads_twice_takes_no_pipe(folder, pipe):
    source, told = folder / "in" / "d.txt", pipe("four\n")
    with pytest.raises(InputError, match=r"--input /dev/fd/\d+: can be read only once; --shards needs a file"):
        texts([told], folder / "out", shard=Shard(1, 2))
    with pytest.raises(InputError, match=r"/dev/fd/\d+: is a pipe .* can be read only once; give a file"):
        check_beside("--prefixes", told, Request([source]))
    with pytest.raises(InputError, match="--prefixes: needs one file as --input"):
        check_beside("--prefixes", source, Request([told]))


def test_marks_of_the_text_may_stand_in_what_is_beside_it(tmp_path):
    """A translation of the text, mended and given back, has them."""
    text, told = tmp_path / "text", tmp_path / "told"
    text.write_text("a b\n<p>\nc\n\n<p> <p>\nd\n")
    told.write_text("A\n <p>\n\n\n<p> <p>\nD\n")
    check_beside("--corrected", told, Request([text]))
    (begun,) = texts([text], tmp_path / "out")
    assert list(lines_beside(told, begun)) == ["A", "", "", "", "", "D"]
    for wrong, message in {
        "A\nB\n\n\n\n\n": "told:2: line 2 of .*text is no sentence",
        "A\n\n\n\n<p>\n\n": "told:5: line 5 of .*text is no sentence",
        "<p>\n\n\n\n\n\n": "told:1: <p>, but line 1 of .*text is a sentence",
    }.items():
        told.write_text(wrong)
        with pytest.raises(InputError, match=message):
            check_beside("--corrected", told, Request([text]))


@pytest.mark.parametrize(
    "inputs, output, message",
    [
        (["in"], None, "give a folder"),
        (["in/a.en", "in/d.txt"], None, "give a folder"),
        (["in/a.en", "in/d.txt"], "in/a.en", "is a file; several inputs need a folder"),
        (["in/a.en"], "in/a.en", "is an input"),
        (["in/a.en"], "in/b", "is a folder; give a file"),
        (["in/a.en"], "out.de.gz", r"out\.de\.gz: translations are not packed; leave \.gz out"),
        (["in/a.en"], "out.docx", r"out\.docx: is a name of docx, but what comes of \S*a\.en is text"),
        (["-"], "out.srt", r"out\.srt: is a name of srt, but what comes of - is text"),
        (["in/a.en"], "out.zst", r"translations are not packed; leave \.zst out"),
        (["in"], "in/out", "lies in the input folder"),
        (["in/a.en", "in/./a.en"], "out", "two inputs would become this file"),
        (["in/nowhere"], "out", "nowhere: cannot be read"),
        (["in/a.en", "-"], "out", "standard input goes alone"),
    ],
)
def test_bad_places(folder, monkeypatch, inputs, output, message):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        texts([Path(path) for path in inputs], output and Path(output))
    assert not (folder / "out").exists()


def test_a_file_that_cannot_be_read_is_said_before_anything_is_translated(folder):
    (folder / "in" / "z").write_bytes(b"ok\n\xff\n")
    with pytest.raises(InputError, match="z:2: not UTF-8"):
        texts([folder / "in"], folder / "out")
