"""Makes a data-bin for fairseq from batches of items, and checks that nothing was lost on the way."""

from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from docnmt_fairseq.corpus.files import read_lines, written_folder
from docnmt_fairseq.corpus.items import Items, ItemWriter, Numbering
from docnmt_fairseq.corpus.language_tokens import write_language_tokens
from docnmt_fairseq.corpus.shares import Held
from docnmt_fairseq.corpus.transform import BATCH
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from fairseq.data import Dictionary

DATA_BIN = "data-bin"


class SplitItems(NamedTuple):
    """The items of a split: what its text holds, and a function that gives a batch of lines of every side at a time."""

    held: Held
    batches: Callable[[], Iterator[Sequence[Items]]]


def binarise(
    target: Path,
    dictionaries: Mapping[str, "Dictionary"],
    splits: Mapping[str, SplitItems],
    language_tokens: Mapping[str, Optional[str]],
) -> Dict[str, List[int]]:
    """Makes a data-bin, which appears only when complete, and returns how many tokens each side of a split has.

    Args:
        target: the folder.
        dictionaries: of all sides by name, source and target first.
        splits: by name.
        language_tokens: what sentences of a side begin with, as the data-bin is to say.

    Raises:
        InputError: the text is not what it was when it was written, or the folder cannot be written.
    """
    with written_folder(target) as folder:
        for side, dictionary in dictionaries.items():
            dictionary.save(str(folder / f"dict.{side}.txt"))
        tokens = {split: _write_split(folder, split, text, dictionaries) for split, text in splits.items()}
        write_language_tokens(folder, language_tokens)
    return tokens


def _write_split(folder: Path, split: str, text: SplitItems, dictionaries: Mapping[str, "Dictionary"]) -> List[int]:
    """Writes the files of a split, and returns how many tokens each side has."""
    pair = "-".join(list(dictionaries)[:2])
    with ExitStack() as stack:
        writers = [
            stack.enter_context(ItemWriter(folder / f"{split}.{pair}.{side}", len(dictionary)))
            for side, dictionary in dictionaries.items()
        ]
        for batch in text.batches():
            for writer, items in zip(writers, batch):
                writer.add(items)
    for writer in writers:
        found = Held(writer.lines, writer.empty)
        if found != text.held:
            now, before = (f"{held.lines} lines in {held.documents} documents" for held in (found, text.held))
            raise InputError(f"{writer.prefix.name}: the text has {now}, but had {before}; run again")
    return [writer.tokens for writer in writers]


def items_of_files(paths: Sequence[Path], dictionaries: Sequence["Dictionary"]) -> Iterator[Sequence[Items]]:
    """Yields batches of the items of files of tokens, one a side."""
    streams = [read_lines(path) for path in paths]
    numberings = [Numbering(dictionary) for dictionary in dictionaries]
    while any(batch := [list(islice(stream, BATCH)) for stream in streams]):
        yield [numbering(lines) for numbering, lines in zip(numberings, batch)]
