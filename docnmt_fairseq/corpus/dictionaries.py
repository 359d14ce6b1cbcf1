"""fairseq dictionaries: of a SentencePiece model, or counted from text that is already split. ``<p>`` is always in."""

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Sequence

from docnmt_fairseq.corpus.files import PathLike, read_lines, written_by_others
from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import PARAGRAPH

if TYPE_CHECKING:
    from fairseq.data import Dictionary


def dictionary_from_model(model: PathLike, path: PathLike, symbols: Sequence[str] = ()) -> int:
    """Writes the dictionary of a SentencePiece model, in the model's order, and returns its number of symbols.

    The counts, which only an adaptive softmax or a threshold would read, are all 1.

    Args:
        model: the model.
        path: where to write.
        symbols: extra ones.
    """
    from fairseq.data import Dictionary

    processor = load_subword_model(model)
    dictionary = Dictionary()
    for index in range(processor.get_piece_size()):
        piece = processor.id_to_piece(index)
        # A foreign model may have <pad> too; fairseq's own specials take the place of all of these.
        if not (processor.is_control(index) or processor.is_unknown(index) or piece in dictionary):
            dictionary.add_symbol(piece)
    return _save(dictionary, path, symbols)


def dictionary_from_text(
    texts: Sequence[PathLike],
    path: PathLike,
    symbols: Sequence[str] = (),
    *,
    min_count: int = 1,
    max_words: int = -1,
) -> int:
    """Writes the dictionary of delimited files that are already split, and returns its number of symbols.

    Args:
        texts: the training text of one side, or of both sides for a joint dictionary.
        path: where to write.
        symbols: extra ones, however rare.
        min_count: rarer words are left out.
        max_words: the most frequent so many stay (special symbols included); -1 for all.
    """
    from fairseq.data import Dictionary

    # Not by fairseq, which counts word by word, and in processes that it waits for for ever when one is killed.
    counts: Counter[str] = Counter()
    for text in texts:
        for line in read_lines(text):
            counts.update(line.split())
    dictionary = Dictionary()
    for word, count in counts.items():
        dictionary.add_symbol(word, count)
    dictionary.finalize(threshold=min_count, nwords=max_words, padding_factor=1)
    return _save(dictionary, path, symbols)


@contextmanager
def damage_told(path: PathLike) -> Iterator[None]:
    """Inside the block a dictionary's file is loaded.

    Args:
        path: of the file.

    Raises:
        InputError: it is not there, or damaged.
    """
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; every data-bin has a dictionary of either side") from None
    except Exception as error:  # fairseq raises what is at hand, of no class of its own
        raise InputError(
            f"{path}: no dictionary, or a damaged one: {error}; it is to have a symbol and a number a line"
        ) from error


def _save(dictionary: "Dictionary", path: PathLike, symbols: Sequence[str]) -> int:
    for symbol in (PARAGRAPH, *symbols):
        if symbol not in dictionary:
            dictionary.add_symbol(symbol)
    with written_by_others(path) as partial:
        dictionary.save(str(partial))
    return len(dictionary)
