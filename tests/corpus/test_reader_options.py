"""A new reader is one class; its options are flags of ``docnmt prepare`` and keys of recipes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Sequence

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.cli.prepare import config_from
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers import READERS, Reader, ReaderOptions
from docnmt_fairseq.corpus.readers.base import register
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option
from docnmt_fairseq.recipes.dataset import read_dataset_config
from tests.support.reading import text, write

RECIPE = """
title: Toy
source_lang: en
target_lang: de
page: nowhere
splits:
  train: {format: toy, corpora: [[a]]}
  valid: {format: toy, corpora: [[a]]}
  test: {format: toy, corpora: [[a]]}
prepare: {toy_lines: %s}
training: {}
"""


@dataclass(frozen=True)
class ToyOptions(ReaderOptions):
    toy_lines: int = option(2, "sentences of a document", minimum=1)
    toy_separator: str = option("|", "between source and target", metavar="SIGN")


class ToyReader(Reader):
    """A sentence pair per line; documents have a fixed number of sentences."""

    help = "toy lines"
    files = "one toy"
    Options = ToyOptions

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        return self.exactly(1, arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        builder = DocumentBuilder((str(paths[0]),) * self.sides)
        for number, line in enumerate(read_lines(paths[0]), start=1):
            builder.add(tuple(line.split(self.options.toy_separator)), (number,) * self.sides)
            if number % self.options.toy_lines == 0:
                yield builder.end_document()


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(READERS, "_classes", dict(READERS._classes))
    return register("toy")(ToyReader)


def parsed(*arguments):
    required = ["-s", "en", "-t", "de", "--output", "out", "--train", "x", "--format", "toy", "--workers", "1"]
    return config_from(cli.build_parser().parse_args(["prepare", *required, *arguments]))


def test_options_of_a_reader_are_flags(toy, tmp_path):
    config = parsed("--toy-lines", "1", "--toy-separator", "/")
    assert config.reader_options == {"toy_lines": 1, "toy_separator": "/"} and not parsed().reader_options
    reader = READERS["toy"](config.reading)
    assert text(reader.read([write(tmp_path, "x", "a/A\nb/B\n")])) == [[[("a", "A")]], [[("b", "B")]]]
    assert config.as_options()["toy_lines"] == 1


def test_options_of_a_reader_are_keys_of_recipes(toy, tmp_path):
    path = write(tmp_path, "toy.yaml", RECIPE % 3)
    assert read_dataset_config(path).prepare == {"toy_lines": 3}
    with pytest.raises(InputError):
        read_dataset_config(write(tmp_path, "toy.yaml", RECIPE % 0))
