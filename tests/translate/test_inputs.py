"""Input files, their outputs and shards."""

import gzip
import io
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import translate_files as module
from docnmt_fairseq.translate.formats import Reading, format_of
from docnmt_fairseq.translate.inputs import STANDARD, Request, Shard, check_line_input, input_files
from docnmt_fairseq.translate.translate_files import translate_files
from tests.support.texts import Stub
from tests.support.translated_files import Failing


class Named(Stub):
    """Stub that remembers the names of each call."""

    def translate(self, documents, names, *rest):
        self.groups = [*getattr(self, "groups", []), list(names)]
        return super().translate(documents, names, *rest)


@pytest.fixture
def folder(tmp_path):
    for name, text in (("a.en", "one\n\ntwo\n"), ("b/c.en", "three"), ("b/.hidden", "x\n"), ("d.txt", "four\n")):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    for name, text in (("e.en.gz", "five\n"), ("f.html.GZ", "<p>six")):
        with gzip.open(tmp_path / "in" / name, "wt") as stream:
            stream.write(text)
    return tmp_path


def files_of(inputs, output, **options):
    return input_files(Request(inputs, output, **options))


def translate(inputs, output, translator=None, **options):
    translate_files(files_of(inputs, output, **options), translator or Stub(), "document", lambda n: None)


def translated(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_folder_is_translated_to_a_folder_in_groups_of_files(folder, monkeypatch):
    monkeypatch.setattr(module, "GROUP_SENTENCES", 3)
    files, translator = files_of([folder / "in"], folder / "out"), Named()
    translate_files(files, translator, "document", lambda n: None)
    expected = {"a.en": "ONE\n\nTWO\n", "b/c.en": "THREE\n", "d.txt": "FOUR\n", "e.en": "FIVE\n", "f.html": "<p>SIX"}
    assert translated(folder / "out") == expected
    groups = (("a.en", "b/c.en"), ("d.txt", "e.en.gz", "f.html.GZ"))
    assert translator.groups == [[str(folder / "in" / name) for name in names] for names in groups]
    assert sum(file.sentences for file in files) == 6
    assert [file.key for file in files] == ["a.en", "b/c.en", "d.txt", "e.en.gz", "f.html.GZ"]


def test_pattern_selects_files(folder):
    assert [file.target.name for file in files_of([folder / "in"], folder / "out", pattern="*.txt")] == ["d.txt"]
    found = files_of([folder / "in"], folder / "out", pattern="**/*.en")
    assert [file.target.name for file in found] == ["a.en", "c.en"]
    with pytest.raises(InputError):
        files_of([folder / "in"], folder / "out", pattern="*.de")


def test_existing_translations_are_replaced_only_on_request(folder):
    (folder / "out").mkdir()
    (folder / "out" / "a.en").write_text("mine")
    with pytest.raises(InputError):
        files_of([folder / "in"], folder / "out")
    assert len(files_of([folder / "in"], folder / "out", resume=True)) == 4
    translate([folder / "in"], folder / "out", force=True)
    assert (folder / "out" / "a.en").read_text() == "ONE\n\nTWO\n"


def test_after_an_error_complete_files_stay(folder, monkeypatch):
    monkeypatch.setattr(module, "GROUP_SENTENCES", 1)
    with pytest.raises(InputError):
        translate([folder / "in"], folder / "out", Failing(2, lambda: InputError("no")))
    assert translated(folder / "out") == {"a.en": "ONE\n\nTWO\n"}


def test_standard_input_and_output(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("é\n<p>\nb".encode())))
    translate([STANDARD], None)
    assert capsys.readouterr().out == "É\n<p>\nB\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(InputError, match="standard input:2: not UTF-8"):
        translate([STANDARD], None)


def test_pipes_are_read_once(folder, pipe):
    translate([pipe("one\n\ntwo\n")], folder / "out")
    assert (folder / "out").read_text() == "ONE\n\nTWO\n"
    source = folder / "in" / "d.txt"
    with pytest.raises(InputError):
        files_of([pipe("four\n")], folder / "other", shard=Shard(1, 2))
    with pytest.raises(InputError):
        check_line_input("--target-prefix", pipe("four\n"), Request([source]))
    with pytest.raises(InputError):
        check_line_input("--target-prefix", source, Request([pipe("four\n")]))


@pytest.mark.parametrize(
    "inputs, output",
    [
        (["in"], None),
        (["in/a.en"], "."),
        (["in/a.en", "in/d.txt"], None),
        (["in/a.en"], "in/a.en"),
        (["in/a.en"], "in/b"),
        (["in/a.en"], "out.docx"),
        (["-"], "out.srt"),
        (["in"], "in/out"),
        (["in/a.en", "in/./a.en"], "out"),
        (["in/nowhere"], "out"),
    ],
)
def test_bad_outputs(folder, monkeypatch, inputs, output):
    monkeypatch.chdir(folder)
    with pytest.raises((InputError, FileNotFoundError)):
        files_of([Path(path) for path in inputs], output and Path(output))
    assert not (folder / "out").exists()


def test_shards_divide_items_evenly_and_in_order():
    for sizes in ([3] * 10, [], [5], [1, 1, 1, 30, 1], [0, 0], [1, 9]):
        for of in (1, 2, 3, 7, 100):
            ranges = [Shard(number, of).of_items(sizes) for number in range(1, of + 1)]
            assert [item for own in ranges for item in own] == list(range(len(sizes)))
    assert [list(Shard(number, 2).of_items([3] * 10 + [5])) for number in (1, 2)] == [list(range(6)), [6, 7, 8, 9, 10]]
    assert [Shard(n, 12).output(Path("a/x.de")).name for n in (3, 12)] == ["x.de.shard-03-of-12", "x.de.shard-12-of-12"]
    for text in ("1", "0/2", "3/2"):
        with pytest.raises(ValueError):
            Shard.parse(text)


def test_shards_of_a_folder_translate_different_files(folder):
    translate([folder / "in"], folder / "whole")
    for number in (3, 1, 2):
        translate([folder / "in"], folder / "out", shard=Shard(number, 3))
    assert translated(folder / "out") == translated(folder / "whole")


@pytest.mark.parametrize(
    "name",
    ["a.tex", "a.csv", "A.RST", "a.ts", "a.sdlxliff", "a.pdf.gz", "b.en.odt"],
)
def test_unknown_endings_are_refused(tmp_path, name):
    source, output = tmp_path / name, tmp_path / "out"
    source.write_text("one\n")
    with pytest.raises(InputError, match=f"^{name}: format not known .*[.]srt.*--format text"):
        files_of([source], output)
    (file,) = files_of([source], tmp_path / "out.xyz", format="text", force=True) if "gz" not in name else [None]
    assert file is None or file.format.name == "text"


@pytest.mark.parametrize(
    "name", ["a", "a.txt", "a.pt_BR", "a.zh-Hans", "a.deu", "talk.2", "a.en.shard-1-of-2", "Chapter 1. A name", "a.src"]
)
def test_text_by_its_ending(name):
    assert format_of(name, "", Reading(lambda: ("eng", "deu"))).name == "text"
