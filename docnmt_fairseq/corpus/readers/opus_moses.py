"""OPUS Moses text with ``.ids`` (OpenSubtitles): one sentence pair per line; the ids name the film, i.e. document."""

import logging
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document, Sentence, split_at_names
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


@register("opus-moses")
class OpusMosesReader(Reader):
    """OPUS Moses text with sentence ids."""

    help = "OPUS Moses text with .ids (OpenSubtitles), with the films in the first two columns"
    files = "PREFIX (files PREFIX.SOURCE, PREFIX.TARGET and PREFIX.ids), or the text of each side and then the .ids"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the text of each side, then the ids."""
        if len(arguments) == 1:
            return [Path(f"{arguments[0]}.{suffix}") for suffix in [*self.reading.languages, "ids"]]
        if len(arguments) != self.sides + 1:
            raise InputError(f"format {self.name} takes {self.files}, got {' '.join(arguments)}")
        return [Path(argument) for argument in arguments]

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per pair of films; pairs joined from several sentences are counted in the log."""
        *texts, ids = paths
        return split_at_names(_rows(paths), tuple(str(path) for path in texts), str(ids))


def _rows(paths: Sequence[Path]) -> Iterator[Tuple[int, str, Sentence]]:
    number = joined = 0
    for number, (*texts, row) in parallel_lines(paths):
        columns = row.split("\t")
        if len(columns) < 2:
            raise InputError.at(paths[-1], number, "expected film<tab>film<tab>sentence ids<tab>sentence ids")
        joined += any(" " in identifiers for identifiers in columns[2:4])
        yield number, f"{columns[0]} {columns[1]}", tuple(texts)
    logger.info(f"{paths[-1]}: {number} pairs, {joined} of them joined from several sentences (n-to-m)")
