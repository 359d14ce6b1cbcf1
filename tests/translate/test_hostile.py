"""Whatever a file holds, the command translates it or says in one line what is wrong; never a traceback."""

import io
import os
from pathlib import Path

import pytest
import tqdm

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate import files, task, translator
from docnmt_fairseq.translate.request import Request, pairs_of
from tests.support.hostile import CASES, CUE, TEXTS, content_of
from tests.support.texts import Stub


@pytest.fixture
def command(monkeypatch):
    """The command with a stub in the model's place."""

    class Model(Stub):
        throughput, files = "-", {}

    monkeypatch.setattr(translator.DocumentTranslator, "from_checkpoint", lambda *args, **options: Model())
    monkeypatch.setattr(task, "languages_of", lambda path, data: ("en", "de"))
    monkeypatch.setattr(task, "translates_alone", lambda path, context: False)
    return lambda *arguments: cli.main(["translate", "--path", "m", *map(str, arguments)])


def test_there_are_many():
    assert len(CASES) > 250


@pytest.mark.parametrize("name", CASES)
def test_a_translation_or_one_clear_line(name, command, tmp_path, capsys):
    ending, content = content_of(name)
    source, target = tmp_path / f"in.{ending}", tmp_path / "out"
    source.write_bytes(content)
    status = command("--input", source, "--output", target)
    error = capsys.readouterr().err
    assert (status, target.exists()) in ((0, True), (2, False)), error
    if status:
        lines = [line for line in error.splitlines() if line.startswith("docnmt translate: error: ")]
        assert len(lines) == 1 and "in." in lines[0] and len(lines[0]) < 400 and "Traceback" not in error, error
        assert sorted(path.name for path in tmp_path.iterdir()) == [source.name]


@pytest.mark.parametrize("content", TEXTS)
def test_running_text(content, command, tmp_path, capsys):
    (tmp_path / "in").write_bytes(TEXTS[content])
    status = command("--input", tmp_path / "in", "--output", tmp_path / "out", "--split")
    assert status == 0 or (status == 2 and "not UTF-8" in capsys.readouterr().err)


def test_what_a_name_says_of_running_text_and_what_the_options_say(command, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for name in ("notes.md", "plain"):
        (tmp_path / "in" / name).write_text("# One.\n`Two`\n")
    for number, (given, notes) in enumerate(
        (
            (["--split", "lines"], "# ONE.\n`Two`\n"),
            (["--split", "lines", "--format", "running"], "# ONE.\n`TWO`\n"),
            (["--split", "lines", "--format", "text"], "# ONE.\n`TWO`\n"),
        )
    ):
        assert command("--input", tmp_path / "in", "--output", tmp_path / f"{number}", *given) == 0
        assert (tmp_path / f"{number}" / "notes.md").read_text() == notes, given
        assert (tmp_path / f"{number}" / "plain").read_text() == "# ONE.\n`TWO`\n", given
    for output in ([], ["--output", tmp_path / "out"], ["--output", tmp_path / "out", "--shards", 2, "--shard", 1]):
        assert command("--input", tmp_path / "in" / "notes.md", "--split", *output) == 2
        assert "notes.md is markdown, which has paragraphs of its own; leave it out, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "html", "--split"], "--split: not with --format html"),
        (["--shards", "2"], "--shards 2: give --engine, or --shard, from 1 to 2"),
        (["--resume"], "--resume: needs --output"),
        (["--prefixes", "x"], "--prefixes: needs one file as --input"),
        (["--prefixes", "x", "--input", "y.html"], "--prefixes: needs text of a sentence a line, which y.html is not"),
        (["--prefixes", "x", "--context", "shuffled"], "--prefixes: not with --context shuffled"),
        (["--resume", "--output", "x", "--context", "shuffled"], "--resume: not with --context shuffled"),
        (["--corrected", "x"], "--corrected: needs one file as --input"),
        (["--shards", "2", "--shard", "1"], "--shards: give --input and --output"),
        (["--shard", "2", "--input", "x", "--output", "y"], "--shard 2: from 1 to 1"),
    ],
)
def test_options_that_do_not_go_together(command, capsys, arguments, message):
    assert command(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("library", ["sentencex", "markdown_it", "polib"])
def test_a_library_that_is_missing_is_named_with_its_extra(command, tmp_path, capsys, monkeypatch, library):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    source = tmp_path / {"sentencex": "a.srt", "markdown_it": "a.md", "polib": "a.po"}[library]
    source.write_text(CUE + "Hello.\n")
    assert command("--input", source, "--output", tmp_path / "out") == 2
    assert f"needs {library}: pip install 'docnmt_fairseq[documents]'" in capsys.readouterr().err


def test_ctrl_c_leaves_nothing_under_the_name_and_says_how_to_go_on(command, tmp_path, caplog, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    caplog.set_level("INFO")
    (tmp_path / "in").write_text("one\n\ntwo\n")
    monkeypatch.setattr(Stub, "translate", interrupted)
    arguments = ["--input", tmp_path / "in", "--output", tmp_path / "out"]
    with pytest.raises(KeyboardInterrupt):
        command(*arguments)
    assert "--resume goes on after the last document" in caplog.text and not list(tmp_path.glob("out*"))
    caplog.clear()
    with pytest.raises(KeyboardInterrupt):
        command(*arguments, "--context", "shuffled")
    assert "nothing is written before all is translated" in caplog.text and "--resume" not in caplog.text
    assert not list(tmp_path.glob("*out*"))


def test_another_option_does_not_go_on_with_what_was_begun(command, tmp_path, capsys, monkeypatch):
    bars = []

    class Bar(tqdm.tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "disable": False})
            bars.append(self)

    class Interrupted(Stub):
        throughput, files = "-", {}

        def translate(self, documents, *arguments):
            if documents[0][0] == "two":
                raise KeyboardInterrupt
            return super().translate(documents, *arguments)

    (tmp_path / "in").write_text("one\n\ntwo\n")
    monkeypatch.setattr(files, "TOGETHER", 1)
    monkeypatch.setattr(tqdm, "tqdm", Bar)
    arguments = ["--input", tmp_path / "in", "--output", tmp_path / "out"]
    with monkeypatch.context() as patched:
        patched.setattr(translator.DocumentTranslator, "from_checkpoint", lambda *args, **options: Interrupted())
        with pytest.raises(KeyboardInterrupt):
            command(*arguments, "--beam", "4")
    assert command(*arguments, "--beam", "5", "--resume") == 2
    assert "was begun with another --beam (4)" in capsys.readouterr().err
    assert command(*arguments, "--beam", "4", "--resume", "--max-tokens", "100") == 0
    assert (tmp_path / "out").read_text() == "ONE\n\nTWO\n"
    assert bars[0].total == 2 and (bars[-1].n, bars[-1].total) == (1, 1)  # what is left is shown, of what was left


def test_standard_input_of_any_format(command, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<p>Hello <b>you</b>.")))
    assert command("--format", "html") == 0
    assert capsys.readouterr().out == "<p>HELLO <b>YOU</b>."


@pytest.mark.parametrize("more", [[], ["--force"]])
def test_a_pipe_or_device_is_no_output(command, tmp_path, capsys, more):
    (tmp_path / "in").write_text("one\n")
    os.mkfifo(tmp_path / "pipe")
    assert command("--input", tmp_path / "in", "--output", tmp_path / "pipe", *more) == 2
    assert "is no file, but a pipe or a device; leave it out" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_in_the_place_of_the_output_stays(command, tmp_path):
    (tmp_path / "in").write_text("one\n")
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk/out")
    for more in ([], ["--force"]):
        assert command("--input", tmp_path / "in", "--output", tmp_path / "out", *more) == 0
        assert (tmp_path / "out").is_symlink() and (tmp_path / "disk" / "out").read_text() == "ONE\n"


def test_a_folder_that_cannot_be_looked_into_is_not_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in/open/a", "in/closed/b", "in/.closed/c"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text("one\n")
    for folder, mode in ((".", 0o755), ("in/closed", 0), ("in/.closed", 0)):
        os.chmod(folder, mode)
    user = os.geteuid()
    try:
        if user == 0:  # may read everything
            os.seteuid(65534)
        with pytest.raises(InputError, match="in/closed: cannot be read: Permission denied"):
            pairs_of(Request([Path("in")], Path("out")))
    finally:
        os.seteuid(user)
        os.chmod("in/closed", 0o755)
        os.chmod("in/.closed", 0o755)
