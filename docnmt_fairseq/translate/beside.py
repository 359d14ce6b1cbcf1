"""Files beside the text: line by line, what translations begin with, and what they were corrected to."""

from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, List, Mapping, Sequence

from docnmt_fairseq.corpus.files import read_lines, refuse_streams
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.formats import PLAIN, format_of
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.request import Request, read_once
from docnmt_fairseq.translate.texts import FileToTranslate

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator

# Options, and arguments of translate_lines: what a line's translation begins with, and what stands for it where later
# sentences look back.
BESIDE = ("prefixes", "corrected")


class TranslatorBeside:
    """A translator that is told something of each line of one text, from its first line to its last.

    Args:
        translator: that translates.
        beside: by name of :data:`BESIDE`, of the text's lines, those that it is asked for.
    """

    def __init__(self, translator: "DocumentTranslator", beside: Mapping[str, Iterator[str]]):
        self.translator, self.beside = translator, beside

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """See :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate_lines`."""
        told = {
            name: [list(islice(of_text, len(lines))) for lines in documents] for name, of_text in self.beside.items()
        }
        return self.translator.translate_lines(documents, names, empty_lines, progress, **told)


def check_beside(option: str, path: Path, request: Request) -> None:
    """Compares a file with the text that it is beside of, so that nothing is translated with what is of other lines.

    Args:
        option: that names the file.
        path: of the file.
        request: for the translation.

    Raises:
        InputError: the text is not one file of a sentence a line; the file has more or fewer lines; only one of both
            has a mark on a line where neither is empty, or both have different ones.
    """
    source, *others = request.inputs
    if others or read_once(source) or source.is_dir():
        raise InputError(f"{option}: needs one file as --input, which can be read more than once")
    refuse_streams(path)
    if format_of(source.name, request.format, request.reading).name != PLAIN:
        raise InputError(f"{option}: needs text of a sentence a line, which {source} is not")
    for number, (line, told) in enumerate(zip_longest(read_lines(source), read_lines(path)), start=1):
        if line is None:
            raise InputError.at(path, number, f"more lines than {source} has; give one for each line")
        if told is None:
            raise InputError.at(path, number, f"no such line, but {source} has it; give one for each line")
        line, told = normalise(line), normalise(told)
        if told and is_mark(line) and told != line:
            raise InputError.at(path, number, f"line {number} of {source} is no sentence; leave this one empty")
        if told and is_mark(told) and not is_mark(line):
            raise InputError.at(
                path, number, f"{told}, but line {number} of {source} is a sentence; leave this one empty"
            )


def lines_beside(path: Path, text: FileToTranslate) -> Iterator[str]:
    """The lines of a file that are of what is still to be translated of a text, marks as empty ones."""
    before = replace(text, first=0, end=text.first + text.done)
    lines = islice(read_lines(path), sum(len(document.lines) for document in before.documents()), None)
    return ("" if is_mark(normalise(line)) else line for line in lines)
