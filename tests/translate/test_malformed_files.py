"""``docnmt translate`` with malformed files and bad options: a translation or an error of one line."""

import io
import os
import sys

import pytest
import tqdm

from docnmt_fairseq import cli
from docnmt_fairseq.translate import loading, translator
from docnmt_fairseq.translate import translate_files as module
from tests.support.malformed import CASES, content_of
from tests.support.texts import Stub


class Model(Stub):
    """Stub in place of the model."""

    throughput, files = "-", []


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setattr(translator.DocumentTranslator, "from_checkpoint", lambda *args, **options: Model())
    monkeypatch.setattr(loading, "languages_of", lambda path, data: ("en", "de"))
    monkeypatch.setattr(loading, "is_sentence_level", lambda path, context: False)
    return lambda *arguments: cli.main(["translate", "--path", "m", *map(str, arguments)])


@pytest.mark.parametrize("ending", ["txt", "srt", "vtt", "html", "md", "po", "xlf", "docx", "gz"])
def test_translation_or_one_line(ending, command, tmp_path, capsys):
    for name, (own, _) in CASES.items():
        if own.rpartition(".")[2] != ending:
            continue
        source, target = tmp_path / f"in.{own}", tmp_path / "out"
        source.write_bytes(content_of(name)[1])
        status = command("--input", source, "--output", target)
        error = capsys.readouterr().err
        assert (status, target.exists()) in ((0, True), (2, False)), (name, error)
        if status:
            lines = [line for line in error.splitlines() if line.startswith("docnmt translate: error: ")]
            assert len(lines) == 1 and "in." in lines[0] and len(lines[0]) < 400 and "Traceback" not in error, error
            assert [path.name for path in tmp_path.iterdir()] == [source.name]
        source.unlink()
        target.unlink(missing_ok=True)


def test_split_applies_to_plain_text(command, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("notes.md", "plain"):
        (tmp_path / "in" / name).write_text("# One.\n`Two`\n")
    for given, notes in (([], "# ONE.\n`Two`\n"), (["--format", "running"], "# ONE.\n`TWO`\n")):
        arguments = ["--input", tmp_path / "in", "--output", tmp_path / "out", "--force", "--split", "lines"]
        assert command(*arguments, *given) == 0
        assert (tmp_path / "out" / "notes.md").read_text() == notes
        assert (tmp_path / "out" / "plain").read_text() == "# ONE.\n`TWO`\n"


@pytest.mark.parametrize(
    "given",
    [
        "--beam 0",
        "--nbest 9 --output x",
        "--target-context x",
        "--target-prefix x --input y.html",
        "--shard 1/2",
        "--workers 2 --output x",
        "--workers 2 --input in --output x --job-threads 0",
    ],
)
def test_bad_options(command, capsys, monkeypatch, tmp_path, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("notes.md", "plain"):
        (tmp_path / "in" / name).touch()
    assert command(*given.split()) == 2
    assert "error: --" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["--max-tokens 0", "--shard 3/2", "--shard 1"])
def test_values_that_the_parser_refuses(command, given):
    with pytest.raises(SystemExit):
        command(*given.split())


def test_missing_libraries_are_reported(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    (tmp_path / "a.md").write_text("Hello.\n")
    assert command("--input", tmp_path / "a.md", "--output", tmp_path / "out") == 2
    message = capsys.readouterr().err
    assert "markdown_it" in message and "pip install 'docnmt_fairseq[documents]'" in message


def test_interrupted_command_is_resumed_with_the_same_options_only(command, tmp_path, capsys, monkeypatch):
    bars = []

    class Bar(tqdm.tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "disable": False})
            bars.append(self)

    class Interrupted(Model):
        def translate(self, documents, *arguments):
            if documents[0][0] == "two":
                raise KeyboardInterrupt
            return super().translate(documents, *arguments)

    (tmp_path / "in").write_text("one\n\ntwo\n")
    monkeypatch.setattr(module, "GROUP_SENTENCES", 1)
    monkeypatch.setattr(tqdm, "tqdm", Bar)
    arguments = ["--input", tmp_path / "in", "--output", tmp_path / "out"]
    with monkeypatch.context() as patched:
        patched.setattr(translator.DocumentTranslator, "from_checkpoint", lambda *args, **options: Interrupted())
        with pytest.raises(KeyboardInterrupt):
            command(*arguments, "--beam", "4")
    assert not (tmp_path / "out").exists()
    assert command(*arguments, "--beam", "5", "--resume") == 2
    assert "options" in capsys.readouterr().err
    assert command(*arguments, "--beam", "4", "--resume", "--max-tokens", "100") == 0
    assert (tmp_path / "out").read_text() == "ONE\n\nTWO\n"
    assert bars[0].total == 2 and (bars[-1].n, bars[-1].total) == (1, 1)


def test_standard_input_of_any_format(command, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<p>Hello <b>you</b>.")))
    assert command("--format", "html") == 0
    assert capsys.readouterr().out == "<p>HELLO <b>YOU</b>."


def test_special_outputs(command, tmp_path, capsys):
    (tmp_path / "in").write_text("one\n")
    os.mkfifo(tmp_path / "pipe")
    assert command("--input", tmp_path / "in", "--output", tmp_path / "pipe", "--force") == 2
    assert "or a pipe" in capsys.readouterr().err and (tmp_path / "pipe").is_fifo()
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk/out")
    for more in ([], ["--force"]):
        assert command("--input", tmp_path / "in", "--output", tmp_path / "out", *more) == 0
        assert (tmp_path / "out").is_symlink() and (tmp_path / "disk" / "out").read_text() == "ONE\n"
