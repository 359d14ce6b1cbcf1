"""Files that say what translations begin with, line by line beside the text."""

from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, List, Sequence

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.formats import PLAIN, format_of
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.texts import STANDARD, Request, Text

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator


class PrefixedTranslator:
    """A translator whose translations of one text, from its first line to its last, begin as they are told.

    Args:
        translator: that translates.
        prefixes: of the text's lines, those that it is asked for.
    """

    def __init__(self, translator: "DocumentTranslator", prefixes: Iterator[str]):
        self.translator, self.prefixes = translator, prefixes

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """See :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate_lines`."""
        prefixes = [list(islice(self.prefixes, len(lines))) for lines in documents]
        return self.translator.translate_lines(documents, names, empty_lines, progress, prefixes)


def check_prefixes(path: Path, request: Request) -> None:
    """Compares prefixes with the text that they are of, so that nothing is translated with those of other lines.

    Args:
        path: of the prefixes.
        request: for the translation.

    Raises:
        InputError: the text is not one file of a sentence a line; there are more or fewer prefixes than lines; one is
            of a line that is no sentence.
    """
    source, *others = request.inputs
    if others or source == STANDARD or source.is_dir():
        raise InputError("--prefixes: needs one file as --input")
    if format_of(source.name, request.format, request.reading).name != PLAIN:
        raise InputError(f"--prefixes: needs text of a sentence a line, which {source} is not")
    for number, (line, prefix) in enumerate(zip_longest(read_lines(source), read_lines(path)), start=1):
        if line is None:
            raise InputError.at(path, number, f"more lines than {source} has; give one for each line")
        if prefix is None:
            raise InputError.at(path, number, f"no such line, but {source} has it; give one for each line")
        if prefix and is_mark(normalise(line)):
            raise InputError.at(path, number, f"line {number} of {source} is no sentence; leave this one empty")


def prefixes_of(path: Path, text: Text) -> Iterator[str]:
    """The prefixes of what is still to be translated of a text."""
    before = replace(text, first=0, end=text.first + text.done)
    return islice(read_lines(path), sum(len(document.lines) for document in before.documents()), None)
