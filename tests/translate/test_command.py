"""``docnmt translate`` with files beside the text, and what it goes on with."""

import shutil

import pytest
import torch

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate import files
from docnmt_fairseq.translate.formats import text as text_format
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import write_lines

SEARCH = ["--beam", "3", "--max-len-b", "10"]


@pytest.fixture(scope="module")
def checkpoint(prepared, tmp_path_factory):
    options = ["--context-attention", "conditional", "--context-init", "xavier", "--max-update", "12"]
    folder = tmp_path_factory.mktemp("model")
    return toy.train(prepared / "data-bin", folder, *options, "-s", "src", "-t", "tgt")


def test_a_file_says_what_translations_begin_with(prepared, checkpoint, tmp_path, capsys, monkeypatch):
    for name, lines in (("in", ["a b c", "<p>", "d", "", "e"]), ("begun", ["e d", "", "", "", "a"])):
        write_lines(tmp_path / name, lines)
    command = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--cpu", *SEARCH]
    command += ["--input", str(tmp_path / "in"), "--prefixes", str(tmp_path / "begun"), "--output"]
    assert cli.main([*command, str(tmp_path / "out")]) == 0
    search = SearchOptions(beam=3, max_len_b=10)
    found = DocumentTranslator.from_checkpoint(checkpoint, data=prepared, cpu=True, search=search)
    prefixes = [["e d", "", "", "", "a"]]
    wanted = [line.text for line in found.translate_lines([["a b c", "<p>", "d", "", "e"]], prefixes=prefixes)[0]]
    assert (tmp_path / "out").read_text().splitlines() == wanted
    assert wanted[0].startswith("e d") and wanted[4].startswith("a")
    for shard in "12":
        assert cli.main([*command, str(tmp_path / "shared"), "--shards", "2", "--shard", shard]) == 0
    assert (tmp_path / "shared").read_text().splitlines() == wanted
    for lines, message in (
        (["e d", "", "", ""], "begun:5: no such line"),
        (["e d", "", "", "", "a", ""], "begun:6: more lines than"),
        (["e d", "a", "", "", ""], "begun:2: line 2 of"),
    ):
        write_lines(tmp_path / "begun", lines)
        assert cli.main([*command, str(tmp_path / "other")]) == 2
        assert message in capsys.readouterr().err


CORRECTED = [["d d", "", "", "", "a", "b a"]]


@pytest.fixture(scope="module")
def looking_back(prepared, tmp_path_factory):
    """Returns a model that sees the translations before, among them such ones as are not its own."""
    options = ["--target-context-attention", "han", "--context-init", "xavier", "--max-update", "60"]
    return toy.train(prepared / "data-bin", tmp_path_factory.mktemp("han"), *options, "-s", "src", "-t", "tgt")


def test_a_file_says_what_translations_were_corrected_to(prepared, looking_back, checkpoint, tmp_path, capsys):
    text = ["a b c", "<p>", "d", "", "e", "c c"]
    write_lines(tmp_path / "in", text)
    write_lines(tmp_path / "corrected", CORRECTED[0])
    command = ["translate", "--data", str(prepared), "--cpu", *SEARCH, "--input", str(tmp_path / "in")]
    command += ["--corrected", str(tmp_path / "corrected"), "--output", str(tmp_path / "out"), "--path"]
    assert cli.main([*command, str(checkpoint)]) == 2
    assert "--corrected: the model does not look back at translations" in capsys.readouterr().err
    assert cli.main([*command, str(looking_back), "--context", "none"]) == 2
    assert "--corrected: without context nothing is seen of it" in capsys.readouterr().err
    assert cli.main([*command, str(looking_back), "--scores"]) == 0
    search = SearchOptions(beam=3, max_len_b=10)
    found = DocumentTranslator.from_checkpoint(looking_back, data=prepared, cpu=True, search=search)
    wanted = found.translate_lines([text], corrected=CORRECTED)[0]
    scores = [line.split("\t")[2] for line in (tmp_path / "out.scores.tsv").read_text().splitlines()[1:]]
    assert [float(one) for one in scores] == pytest.approx([t.score for w in wanted for t in w.translations], abs=1e-4)
    free = found.translate_lines([text])[0]
    own = found.translate_lines([text], corrected=[[line.text for line in free]])[0]
    for n in (0, 2, 4, 5):  # of the first sentence of a document nothing changes, of the second all
        shown = [(line.text, line.translations[0].score) for line in (wanted[n], own[n], free[n])]
        assert (shown[0][1] == pytest.approx(shown[2][1], abs=1e-6)) == (n in (0, 4))
        assert shown[1][0] == shown[2][0] and shown[1][1] == pytest.approx(shown[2][1], abs=1e-5)
    three = [["a b c", "d", "e"]]
    assert found.translate_lines(three, corrected=[["", "", ""]]) == found.translate_lines(three)  # nothing was
    assert found.translate_lines([["a"]], corrected=[["a " * 1023]])
    for wrong, message in (
        ("a " * 1024, "a line of 1,025 tokens, but the model writes 1,024: "),
        ("a <pad>", "'a <pad>': <pad> is no word of a translation"),
    ):
        with pytest.raises(InputError, match=f"--corrected: {message}"):
            found.translate_lines([["a"]], corrected=[[wrong]])


def test_a_translation_goes_on_with_the_same_files_only(prepared, checkpoint, tmp_path, capsys, monkeypatch):
    write_lines(tmp_path / "in", ["a b c", "", "d"])
    write_lines(tmp_path / "begun", ["", "", ""])
    shutil.copy(checkpoint, tmp_path / "model.pt")
    shutil.copytree(prepared, tmp_path / "data")
    command = ["translate", "--path", str(tmp_path / "model.pt"), "--data", str(tmp_path / "data"), "--cpu"]
    command += ["--input", str(tmp_path / "in"), "--prefixes", str(tmp_path / "begun")]
    command += ["--output", str(tmp_path / "out"), "--resume"]
    monkeypatch.setattr(files, "TOGETHER", 1)
    translate_lines = DocumentTranslator.translate_lines

    def interrupted(self, documents, *more, **told):
        if documents[0] == ["d"]:
            raise KeyboardInterrupt
        return translate_lines(self, documents, *more, **told)

    with monkeypatch.context() as patched:
        patched.setattr(DocumentTranslator, "translate_lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cli.main(command)
    retrained = {**torch.load(checkpoint, weights_only=False), "note": "another one"}
    torch.save(retrained, tmp_path / "retrained.pt")
    manifest = (tmp_path / "data" / "manifest.json").read_text()
    for option, place, name, content in (
        ("path", "model.pt", "model.pt", (tmp_path / "retrained.pt").read_bytes()),
        ("data", "data", "data/manifest.json", f"{manifest}\n".encode()),
        ("prefixes", "begun", "begun", b"\n\na\n"),
    ):
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        assert cli.main(command) == 2
        assert f"was begun with another --{option} ({tmp_path / place} [" in capsys.readouterr().err
        (tmp_path / name).write_bytes(before)
    assert cli.main(command) == 0
    assert len((tmp_path / "out").read_text().splitlines()) == 3


def test_text_without_empty_lines_goes_in_parts_where_sentences_are_alone(prepared, checkpoint, tmp_path, monkeypatch):
    write_lines(tmp_path / "in", ["a b", "c", "d e a", "<p>", "b", "e"] * 2)
    command = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--cpu", *SEARCH]
    command += ["--input", str(tmp_path / "in"), "--output"]
    assert cli.main([*command, str(tmp_path / "whole"), "--context", "none"]) == 0
    monkeypatch.setattr(files, "TOGETHER", 1)
    monkeypatch.setattr(text_format, "LONG", 3)
    sizes = []
    translate_lines = DocumentTranslator.translate_lines

    def counted(self, documents, *more):
        sizes.append(sum(map(len, documents)))
        return translate_lines(self, documents, *more)

    monkeypatch.setattr(DocumentTranslator, "translate_lines", counted)
    assert cli.main([*command, str(tmp_path / "parts"), "--context", "none"]) == 0
    assert cli.main([*command, str(tmp_path / "context")]) == 0
    assert [size for size in sizes if size] == [3, 3, 3, 3, 12]
    assert (tmp_path / "parts").read_text() == (tmp_path / "whole").read_text()
