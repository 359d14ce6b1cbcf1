"""The parts of the data, and the files that they are read from."""

from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError

AND = "+"  # between the files of corpora that make one split


class Split(NamedTuple):
    """One part of the data: its fairseq name (``train``, ``valid``, ``test``, ``test1``, ...), format and corpora."""

    name: str
    format: str
    corpora: Tuple[Tuple[Path, ...], ...]

    @property
    def paths(self) -> Tuple[Path, ...]:
        """All files."""
        return tuple(path for corpus in self.corpora for path in corpus)


def corpora_of(arguments: Sequence[str]) -> List[List[str]]:
    """The arguments of each of the corpora that stand with "+" between them.

    Raises:
        InputError: a "+" with nothing before or after it.
    """
    corpora: List[List[str]] = [[]]
    for argument in arguments:
        if argument == AND:
            corpora.append([])
        else:
            corpora[-1].append(argument)
    if not all(corpora):
        raise InputError(f"{' '.join(arguments)}: {AND} stands between corpora, with files before and after it")
    return corpora


def numbered(name: str, index: int) -> str:
    """The name of a split as fairseq has it: ``test``, ``test1``, ..."""
    return f"{name}{index}" if index else name


def at_least_one(documents: Iterable[Document], split: Split) -> Iterator[Document]:
    """Yields the documents of a split.

    Raises:
        InputError: there is none.
    """
    none = True
    for document in documents:
        none = False
        yield document
    if none:
        raise InputError(f"{split.paths[0]}: no sentence in it (--{split.name.rstrip('0123456789')})")
