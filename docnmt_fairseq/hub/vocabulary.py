"""Vocabularies: from the embedding rows of other projects to fairseq dictionaries, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.files import atomic_files
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from docnmt_fairseq.hub.source import Request

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # first symbols of every fairseq dictionary
NEW = -1  # row of a symbol that the model does not have
FILLER, MASK = "madeupword", "<mask>"  # symbols that translation never uses
UNREACHABLE = -100.0  # bias of new symbols: probability 0 in float32, without an infinite loss
UNUSED_BIAS = UNREACHABLE * 0.8  # training changes the bias of unused symbols a little
BIAS = "decoder.output_projection.bias"
SENTENCEPIECE_MODEL = "sentencepiece.bpe.model"
MODEL_SPECIAL = ("<unk>", "<s>", "</s>")  # first pieces of the SentencePiece models


@dataclass(frozen=True)
class Vocabulary:
    """Symbols in the order of a fairseq dictionary.

    Attributes:
        symbols: symbols, fairseq's special ones first.
        rows: embedding row of each symbol in the imported model; :data:`NEW` without one.
    """

    symbols: Tuple[str, ...]
    rows: Tuple[int, ...]

    @classmethod
    def of_rows(cls, by_row: Sequence[Optional[str]], special: Mapping[str, int], name: Path) -> "Vocabulary":
        """Returns the vocabulary of a model with a symbol for paragraph boundaries.

        ``<p>`` stands between paragraphs in a data-bin, never in a sentence. It replaces a symbol that translation does
        not use, so that probabilities do not change; without such a symbol it is new.

        Args:
            by_row: symbol of every embedding row; None: unused row.
            special: rows of fairseq's special symbols that the model has.
            name: file in error messages.

        Raises:
            InputError: a duplicate symbol, or one that a dictionary cannot hold.
        """
        symbols = [f"{FILLER}{row:04d}" if symbol is None else symbol for row, symbol in enumerate(by_row)]
        rows = [special.get(symbol, NEW) for symbol in SPECIAL]
        rest = [row for row in range(len(symbols)) if row not in set(rows)]
        ordered = [*SPECIAL, *(symbols[row] for row in rest)]
        rows += rest
        if PARAGRAPH not in ordered:
            spare = [place for place, symbol in enumerate(ordered) if symbol.startswith(FILLER) or symbol == MASK]
            if spare:
                ordered[spare[-1]] = PARAGRAPH
            else:
                ordered.append(PARAGRAPH)
                rows.append(NEW)
        seen = set()
        for symbol in ordered:
            if symbol in seen or not symbol or "\n" in symbol or "\r" in symbol:
                raise InputError(f"{name}: the symbol {symbol!r} is duplicate, or cannot be in a dictionary")
            seen.add(symbol)
        return cls(tuple(ordered), tuple(rows))

    @property
    def imported_rows(self) -> int:
        """Returns the number of embedding rows of the imported model."""
        return max(self.rows) + 1

    def reorder(self, values: Tensor, new: float = 0.0) -> Tensor:
        """Returns values [V, ...] in the order of the dictionary, from those of the model's rows.

        Args:
            values: values by row.
            new: value of new symbols.
        """
        rows = torch.tensor(self.rows)
        if torch.equal(rows, torch.arange(len(values))):
            return values
        found = values[rows.clamp(min=0)]
        found[rows == NEW] = new
        return found

    def output_bias(self, values: Optional[Tensor]) -> Optional[Tensor]:
        """Returns the bias [V] of the logits, from [rows] or [1, rows]; None if it is zero."""
        values = torch.zeros(self.imported_rows) if values is None else values.flatten()
        return self.reorder(values, UNREACHABLE) if NEW in self.rows or values.any() else None

    def write(self, path: Path) -> None:
        """Writes the dictionary."""
        with atomic_files(path) as (stream,):
            stream.writelines(f"{symbol} 1\n" for symbol in self.symbols[len(SPECIAL) :])


def symbols_by_row(ids: Mapping[str, int], rows: int, name: Path) -> List[Optional[str]]:
    """Returns the symbol of every embedding row, None for unused rows.

    Args:
        ids: rows by symbol.
        rows: number of embedding rows.
        name: file in error messages.

    Raises:
        InputError: two symbols have one row, or a row does not exist.
    """
    found: List[Optional[str]] = [None] * rows
    for symbol, number in ids.items():
        if not isinstance(number, int) or not 0 <= number < rows or found[number] is not None:
            raise InputError(f"{name}: the vocabulary does not match the {rows:,} embeddings: {symbol!r} is {number}")
        found[number] = symbol
    return found


def multilingual_vocabulary(request: "Request", rows: int) -> Tuple[Vocabulary, List[str], List[Path]]:
    """Returns vocabulary, language tokens and files of M2M-100, NLLB-200 or mBART-50.

    Rows: fairseq's special symbols, pieces of one SentencePiece model, language tokens. Pieces are numbered by
    ``vocab.json`` if it exists, otherwise by the SentencePiece model.

    Args:
        request: request with the folder.
        rows: number of embedding rows.

    Raises:
        InputError: a file is missing, or does not match the embeddings.
    """
    from docnmt_fairseq.hub.source import read_json

    model = request.file(SENTENCEPIECE_MODEL)
    numbered, files = request.path / "vocab.json", [model]
    if numbered.is_file():
        ids: Dict[str, int] = dict(read_json(numbered))
        files.append(numbered)
    else:
        ids = {symbol: number for number, symbol in enumerate([*SPECIAL, *pieces_of(model)])}
    if tuple(sorted(ids, key=lambda symbol: ids[symbol])[: len(SPECIAL)]) != SPECIAL:
        raise InputError(f"{files[-1]}: does not start with {' '.join(SPECIAL)}; it belongs to another model")
    tokens: List[str] = []
    for name in ("tokenizer.json", "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json"):
        path = request.path / name
        if path.is_file() and not tokens:
            try:
                added = dict(_added_tokens(name, read_json(path), len(ids)))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}: an added token has no text or number; download it again") from error
            tokens = [token for token in sorted(added, key=added.__getitem__) if token not in (*SPECIAL, MASK)]
            if tokens:
                ids.update(added)
                files.append(path)
    if not tokens:
        raise InputError(f"{request.path}: no language tokens; add tokenizer.json or special_tokens_map.json")
    special = {symbol: number for number, symbol in enumerate(SPECIAL)}
    return Vocabulary.of_rows(symbols_by_row(ids, rows, files[-1]), special, files[-1]), tokens, files


def pieces_of(model: Path) -> List[str]:
    """Returns the pieces of a SentencePiece model without its special symbols."""
    from docnmt_fairseq.corpus.subwords import load_subword_model

    processor = load_subword_model(model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    if tuple(pieces[: len(MODEL_SPECIAL)]) != MODEL_SPECIAL:
        raise InputError(f"{model}: does not start with {' '.join(MODEL_SPECIAL)}; it belongs to another model")
    return pieces[len(MODEL_SPECIAL) :]


def _added_tokens(name: str, content: Mapping[str, Any], pieces: int) -> Iterator[Tuple[str, int]]:
    """Yields the tokens after the pieces, with their rows."""
    if name == "added_tokens.json":
        found = list(content.items())
    elif name == "tokenizer.json":
        found = [(token["content"], token["id"]) for token in content.get("added_tokens", [])]
    elif content.get("added_tokens_decoder"):
        found = [(token["content"], int(number)) for number, token in content["added_tokens_decoder"].items()]
    else:
        listed = content.get("additional_special_tokens") or content.get("extra_special_tokens") or []
        contents = [token["content"] if isinstance(token, Mapping) else token for token in listed]
        found = [(token, pieces + n) for n, token in enumerate(t for t in contents if t not in (*SPECIAL, MASK))]
    for token, number in found:
        if number >= pieces:
            yield str(token), number
