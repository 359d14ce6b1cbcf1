"""Arguments that are generated from the fields of dataclasses."""

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.cli import user_dir
from docnmt_fairseq.cli._options import add_fields
from docnmt_fairseq.options import Choices, option


@dataclass
class Options:
    language: str = option(None, "a language", argparse_alias="-l", metavar="LANG")
    kind: str = option("a", "a kind", names=Choices(("a", "b")))
    size: int = option(3, "a size")
    share: Optional[float] = option(None, "a share")
    files: List[str] = option(list, "some files", metavar="FILE")
    folder: Optional[Path] = option(None, "a folder", metavar="DIR")
    joint: bool = option(True, "one for each", flag="--separate")
    quick: bool = option(False, "whether it is quick")
    internal: int = 0


def parse(*words, names=None, unset=False):
    parser = argparse.ArgumentParser()
    add_fields(parser, Options, names, unset=unset)
    return vars(parser.parse_args(words))


def test_defaults_are_those_of_the_fields():
    expected = {"language": None, "kind": "a", "size": 3, "share": None, "files": [], "folder": None, "joint": True}
    assert parse() == {**expected, "quick": False}
    assert set(parse(unset=True).values()) == {None}
    assert parse(names=["size", "quick"]) == {"size": 3, "quick": False}


def test_values_have_the_types_of_the_fields():
    given = ["-l", "en", "--kind", "b", "--size", "4", "--share", "0.5", "--files", "x", "y", "--folder", "z"]
    assert parse(*given, "--separate", "--quick") == {
        "language": "en", "kind": "b", "size": 4, "share": 0.5, "files": ["x", "y"], "folder": Path("z"),
        "joint": False, "quick": True,
    }  # fmt: skip


@pytest.mark.parametrize("words", [["--kind", "c"], ["--size", "x"], ["--internal", "1"]])
def test_wrong_values_are_refused(words):
    with pytest.raises(SystemExit):
        parse(*words)


@pytest.mark.parametrize(
    ("option", "shown"), [("", {"own", "warning"}), ("-q", {"warning"}), ("-v", {"own", "library", "warning"})]
)
def test_amount_of_the_log(option, shown, monkeypatch, caplog):
    def run(args):
        logging.getLogger("docnmt_fairseq.own").info("own")
        logging.getLogger("fairseq.tasks.text_to_speech").info("library")
        logging.getLogger("fairseq.tasks.text_to_speech").warning("warning")

    monkeypatch.setattr(user_dir, "run", run)
    caplog.set_level("INFO")
    assert cli.main(["user-dir", *option.split()]) == 0
    assert {*caplog.messages} == shown
