"""fairseq dictionaries, made from a SentencePiece model or counted from segmented text; they always contain ``<p>``."""

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Sequence

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, atomic_path

if TYPE_CHECKING:
    from fairseq.data import Dictionary


def dictionary_from_model(model: PathLike, path: PathLike, symbols: Sequence[str] = ()) -> None:
    """Writes the dictionary of a SentencePiece model in the order of its pieces; all counts are 1.

    Args:
        model: SentencePiece model.
        path: file to write.
        symbols: additional symbols.
    """
    from fairseq.data import Dictionary

    processor = load_subword_model(model)
    dictionary = Dictionary()
    for index in range(processor.get_piece_size()):
        piece = processor.id_to_piece(index)
        # fairseq's special symbols replace those of the model, which may include <pad>.
        if not (processor.is_control(index) or processor.is_unknown(index) or piece in dictionary):
            dictionary.add_symbol(piece)
    _save(dictionary, path, symbols)


def dictionary_from_text(
    texts: Sequence[PathLike],
    path: PathLike,
    symbols: Sequence[str] = (),
    *,
    min_count: int = 1,
    max_words: int = -1,
) -> None:
    """Writes the dictionary of segmented delimited files.

    Args:
        texts: training text of one side, or of both sides for a joint dictionary.
        path: file to write.
        symbols: additional symbols, however rare.
        min_count: rarer words are left out.
        max_words: size of the dictionary including special symbols; -1: unlimited.
    """
    from fairseq.data import Dictionary

    counts: Counter[str] = Counter()
    for text in texts:
        for line in read_lines(text):
            counts.update(line.split())
    dictionary = Dictionary()
    for word, count in counts.items():
        dictionary.add_symbol(word, count)
    dictionary.finalize(threshold=min_count, nwords=max_words, padding_factor=1)
    _save(dictionary, path, symbols)


@contextmanager
def dictionary_errors(path: PathLike) -> Iterator[None]:
    """Context in which a dictionary is loaded: errors of fairseq become an :class:`InputError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; a data-bin has a dictionary for each side") from None
    except Exception as error:  # fairseq raises built-in exceptions of many kinds
        raise InputError(f"{path}: not a dictionary (a symbol and a count per line): {error}") from error


def _save(dictionary: "Dictionary", path: PathLike, symbols: Sequence[str]) -> None:
    for symbol in (PARAGRAPH, *symbols):
        if symbol not in dictionary:
            dictionary.add_symbol(symbol)
    with atomic_path(path) as temporary:
        dictionary.save(str(temporary))
