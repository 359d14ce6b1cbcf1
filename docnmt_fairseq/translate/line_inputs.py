"""Files with a line for each input line: forced target prefixes, and target context for later sentences."""

from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, List, Mapping, Sequence

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import read_lines, refuse_streams
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import PLAIN, format_of
from docnmt_fairseq.translate.inputs import InputFile
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.request import Request, read_once

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator

# Arguments of DocumentTranslator.translate_lines, and options of docnmt translate.
LINE_INPUTS = ("target_prefix", "target_context")


class LineInputTranslator:
    """Translator of one text, from its first line to its last, with line inputs.

    Args:
        translator: translator of plain text.
        inputs: by name of :data:`LINE_INPUTS`, the lines for the input lines to translate.
    """

    def __init__(self, translator: "DocumentTranslator", inputs: Mapping[str, Iterator[str]]):
        self.translator, self.inputs = translator, inputs

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """See :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate_lines`."""
        own = {name: [list(islice(lines, len(text))) for text in documents] for name, lines in self.inputs.items()}
        return self.translator.translate_lines(documents, names, empty_lines, progress, **own)


def check_line_input(option: str, path: Path, request: Request) -> None:
    """Compares a line input with its text, so that no line is translated with that of another.

    Raises:
        InputError: the request has several inputs, or another format than a sentence per line; the file has more or
            fewer lines than the input, or other boundaries.
    """
    source, *others = request.inputs
    if others or read_once(source) or source.is_dir():
        raise InputError(f"{option}: needs a single file as --input, no pipe")
    refuse_streams(path)
    if format_of(source.name, request.format, request.reading).name != PLAIN:
        raise InputError(f"{option}: needs text with a sentence per line, unlike {source}")
    for number, (line, own) in enumerate(zip_longest(read_lines(source), read_lines(path)), start=1):
        if line is None or own is None:
            raise InputError.at(path, number, f"{source} has {'fewer' if line is None else 'more'} lines")
        line, own = normalise(line), normalise(own)
        if own and own != line and (is_boundary(line) or is_boundary(own)):
            what = f"is {line or 'an empty line'}" if is_boundary(line) else "is a sentence"
            raise InputError.at(path, number, f"line {number} of {source} {what}; leave this line empty")


def lines_for(path: Path, file: InputFile) -> Iterator[str]:
    """Yields the lines of a line input for the documents that remain to be translated; boundaries are empty lines."""
    written = replace(file, first=0, end=file.first + file.done)
    lines = islice(read_lines(path), sum(len(document.lines) for document in written.documents()), None)
    return ("" if is_boundary(normalise(line)) else line for line in lines)
