"""Vocabularies of Hugging Face's multilingual models that come from fairseq: M2M-100, NLLB-200, mBART-50.

Numbers are fairseq's: <s>, <pad>, </s>, <unk>, then the pieces of one SentencePiece model, then the language tokens.
Where the pieces have no ``vocab.json``, they are numbered by the SentencePiece model, whose first three are special.
"""

from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.released import Request, read_json
from docnmt_fairseq.pretrained.vocabulary import MASK, SPECIAL, Vocabulary, by_row

SENTENCEPIECE_MODEL = "sentencepiece.bpe.model"
OWN_SPECIAL = 3  # of the SentencePiece models: <unk>, <s>, </s>


def multilingual_vocabulary(request: Request, rows: int) -> Tuple[Vocabulary, List[str], List[Path]]:
    """The vocabulary of both sides, the language tokens, and the files that say so.

    Args:
        request: with the folder.
        rows: of the embeddings.

    Raises:
        InputError: a file is missing, or does not match the embeddings.
    """
    model = request.file(SENTENCEPIECE_MODEL)
    numbered = request.path / "vocab.json"
    files = [model]
    if numbered.is_file():
        ids: Dict[str, int] = dict(read_json(numbered))
        files.append(numbered)
        for symbol, number in ids.items():
            if not isinstance(number, int):
                raise InputError(f"{numbered}: {symbol!r} is number {number}, not a whole one; fetch it again")
    else:
        ids = _pieces(model)
    if tuple(symbol for symbol, number in sorted(ids.items(), key=lambda item: item[1])[:4]) != SPECIAL:
        raise InputError(f"{files[-1]}: does not begin with {' '.join(SPECIAL)}; the vocabulary is of another model")
    tokens: List[str] = []
    for path in _tokenizer_files(request.path):
        try:
            added = dict(_added(path, len(ids)))
            if not all(isinstance(token, str) for token in added):
                raise TypeError("a text is none")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: a token that it adds lacks its text or its number; fetch it again") from error
        tokens = [token for token in sorted(added, key=added.__getitem__) if token not in (*SPECIAL, MASK)]
        if tokens:
            ids.update(added)
            files.append(path)
            break
    if not tokens:
        raise InputError(f"{request.path}: names no language tokens; give its tokenizer_config.json, tokenizer.json, "
                         "added_tokens.json or special_tokens_map.json as well")  # fmt: skip
    special = {symbol: number for number, symbol in enumerate(SPECIAL)}
    vocabulary = Vocabulary.of_rows(by_row(ids, rows, files[-1]), special, files[-1])
    return vocabulary, tokens, files


def _pieces(model: Path) -> Dict[str, int]:
    """The numbers of the pieces, fairseq's special ones before them."""
    processor = load_subword_model(model)
    own = [processor.id_to_piece(number) for number in range(OWN_SPECIAL)]
    if own != ["<unk>", "<s>", "</s>"]:
        raise InputError(f"{model}: begins with {' '.join(own)}, not with <unk> <s> </s>; it is of another model")
    pieces = [processor.id_to_piece(number) for number in range(OWN_SPECIAL, processor.get_piece_size())]
    return {symbol: number for number, symbol in enumerate([*SPECIAL, *pieces])}


def _tokenizer_files(folder: Path) -> Iterator[Path]:
    """Where language tokens are found: first files with numbers, then those that only have their order."""
    names = ("tokenizer.json", "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json")
    return (folder / name for name in names if (folder / name).is_file())


def _added(path: Path, pieces: int) -> Iterator[Tuple[str, int]]:
    """The tokens that a file adds to the pieces, with their numbers.

    Args:
        path: of the file.
        pieces: symbols without them.
    """
    content = read_json(path)
    if path.name == "added_tokens.json":
        found = ((token, number) for token, number in content.items())
    elif path.name == "tokenizer.json":
        found = ((token["content"], token["id"]) for token in content.get("added_tokens", []))
    elif content.get("added_tokens_decoder"):
        found = ((token["content"], int(number)) for number, token in content["added_tokens_decoder"].items())
    else:
        names: List[Any] = content.get("additional_special_tokens") or content.get("extra_special_tokens") or []
        contents = [token["content"] if isinstance(token, Mapping) else token for token in names]
        languages = [token for token in contents if token not in (*SPECIAL, MASK)]
        found = ((token, pieces + number) for number, token in enumerate(languages))
    return ((token, number) for token, number in found if number >= pieces)


def language_of(token: str) -> str:
    """What a language is called whose token is ``__de__``, ``de_DE``, or ``deu_Latn``: as the token without rules."""
    return token.removeprefix("__").removesuffix("__")
