"""``docnmt translate`` with target prefixes and target context, line by line."""

import shutil

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import translate_files as module
from docnmt_fairseq.translate.formats import text as text_format
from docnmt_fairseq.translate.inputs import Request, check_line_input, input_files, remaining_lines
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import write_lines
from tests.support.translating import SAME_SEARCH, translator


@pytest.fixture(scope="module")
def target_context_model(prepared, tmp_path_factory):
    options = ["--target-context-attention", "han", "--context-init", "xavier", "--max-update", "60"]
    return toy.train(prepared / "data-bin", tmp_path_factory.mktemp("han"), *options, "-s", "src", "-t", "tgt")


def command(checkpoint, prepared, folder, *options):
    fixed = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--cpu", *SAME_SEARCH]
    return [*fixed, "--input", str(folder / "in"), "--output", str(folder / "out"), *options]


def test_target_prefixes(prepared, checkpoint, tmp_path):
    prefixes = ["e d", "", "", "", "a"]
    for name, lines in (("in", ["a b c", "<p>", "d", "", "e"]), ("prefixes", prefixes)):
        write_lines(tmp_path / name, lines)
    given = command(checkpoint, prepared, tmp_path, "--target-prefix", str(tmp_path / "prefixes"))
    assert cli.main(given) == 0
    found = translator(checkpoint, prepared)
    lines = found.translate_lines([["a b c", "<p>", "d", "", "e"]], target_prefix=[prefixes])[0]
    expected = [line.text for line in lines]
    assert (tmp_path / "out").read_text().splitlines() == expected
    assert expected[0].startswith("e d") and expected[4].startswith("a")
    for shard in "12":
        assert cli.main([*given, "--shard", f"{shard}/2"]) == 0
    parts = [(tmp_path / f"out.shard-{shard}-of-2").read_text() for shard in "12"]
    assert "".join(parts).splitlines() == expected and all(parts)


def test_target_context(prepared, target_context_model, tmp_path):
    text, corrected = ["a b c", "<p>", "d", "", "e", "c c"], [["d d", "", "", "", "a", "b a"]]
    write_lines(tmp_path / "in", text)
    write_lines(tmp_path / "corrected", corrected[0])
    option = ["--target-context", str(tmp_path / "corrected")]
    assert cli.main(command(target_context_model, prepared, tmp_path, *option, "--scores")) == 0
    found = translator(target_context_model, prepared)
    expected = found.translate_lines([text], target_context=corrected)[0]
    scores = [float(line.split("\t")[2]) for line in (tmp_path / "out.scores.tsv").read_text().splitlines()[1:]]
    assert scores == pytest.approx([t.score for line in expected for t in line.translations], abs=1e-4)
    free = found.translate_lines([text])[0]
    own = found.translate_lines([text], target_context=[[line.text for line in free]])[0]
    for n in (0, 2, 4, 5):  # the first sentence of a document has no target context
        shown = [(line.text, line.translations[0].score) for line in (expected[n], own[n], free[n])]
        assert (shown[0][1] == pytest.approx(shown[2][1], abs=1e-6)) == (n in (0, 4))
        assert shown[1][0] == shown[2][0] and shown[1][1] == pytest.approx(shown[2][1], abs=1e-5)
    three = [["a b c", "d", "e"]]
    assert found.translate_lines(three, target_context=[["", "", ""]]) == found.translate_lines(three)
    with pytest.raises(ValueError):
        found.translate_lines([["a"]], target_context=[["a", "b"]])


def test_lines_must_match_the_text(tmp_path):
    text, own = tmp_path / "text", tmp_path / "own"
    text.write_text("a b\n<p>\nc\n\n<p> <p>\nd\n")
    own.write_text("A\n <p>\n\n\n<p> <p>\nD\n")
    check_line_input("--target-context", own, Request([text]))
    (file,) = input_files(Request([text], tmp_path / "out"))
    assert list(remaining_lines(own, file)) == ["A", "", "", "", "", "D"]
    for wrong, line in (
        ("A\nB\n\n\n\n\n", 2), ("A\n\n\n\n<p>\n\n", 5), ("<p>\n\n\n\n\n\n", 1), ("A\n", 2), ("A\n\n\n\n\n\n\n", 7),
    ):  # fmt: skip
        own.write_text(wrong)
        with pytest.raises(InputError, match=f"own:{line}: "):
            check_line_input("--target-context", own, Request([text]))


def test_resume_needs_the_same_files(prepared, checkpoint, tmp_path, capsys, monkeypatch):
    write_lines(tmp_path / "in", ["a b c", "", "d"])
    write_lines(tmp_path / "prefixes", ["", "", ""])
    shutil.copy(checkpoint, tmp_path / "model.pt")
    shutil.copytree(prepared, tmp_path / "data")
    prefixes = ["--target-prefix", str(tmp_path / "prefixes")]
    given = command(tmp_path / "model.pt", tmp_path / "data", tmp_path, *prefixes, "--resume")
    monkeypatch.setattr(module, "GROUP_SENTENCES", 1)
    translate_lines = DocumentTranslator.translate_lines

    def interrupted(self, documents, *more, **options):
        if documents[0] == ["d"]:
            raise KeyboardInterrupt
        return translate_lines(self, documents, *more, **options)

    with monkeypatch.context() as patched:
        patched.setattr(DocumentTranslator, "translate_lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cli.main(given)
    for name in ("model.pt", "data/manifest.json", "prefixes"):
        kept = shutil.copy2(tmp_path / name, tmp_path / "kept")
        with open(tmp_path / name, "ab") as stream:
            stream.write(b"\n" * (name != "prefixes"))
        (tmp_path / name).touch()
        assert cli.main(given) == 2
        assert "--resume" in capsys.readouterr().err
        shutil.copy2(kept, tmp_path / name)
    assert cli.main(given) == 0
    assert len((tmp_path / "out").read_text().splitlines()) == 3


def test_text_without_empty_lines_is_divided_if_sentences_are_independent(prepared, checkpoint, tmp_path, monkeypatch):
    write_lines(tmp_path / "in", ["a b", "c", "d e a", "<p>", "b", "e"] * 2)
    monkeypatch.setattr(module, "GROUP_SENTENCES", 1)
    monkeypatch.setattr(text_format, "LONG", 3)
    sizes = []
    translate_lines = DocumentTranslator.translate_lines

    def counted(self, documents, *more):
        sizes.append(sum(map(len, documents)))
        return translate_lines(self, documents, *more)

    monkeypatch.setattr(DocumentTranslator, "translate_lines", counted)
    assert cli.main(command(checkpoint, prepared, tmp_path, "--context", "none")) == 0
    alone = (tmp_path / "out").read_text()
    assert cli.main(command(checkpoint, prepared, tmp_path, "--force")) == 0
    assert [size for size in sizes if size] == [3, 3, 3, 3, 12]
    monkeypatch.setattr(text_format, "LONG", 100)
    assert cli.main(command(checkpoint, prepared, tmp_path, "--context", "none", "--force")) == 0
    assert (tmp_path / "out").read_text() == alone
