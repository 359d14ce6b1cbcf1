"""Subword segmentation with SentencePiece or BPE codes: training, encoding, joining. Boundaries are never segmented."""

import codecs
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from tqdm import tqdm

from docnmt_fairseq.boundaries import PARAGRAPH, is_boundary
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError, needs_extra
from docnmt_fairseq.files import PathLike, write_bytes

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


MERGES = "subword-nmt"
KINDS = ("unigram", "bpe", MERGES, "none")  # kinds that can be trained
# Kinds of imported models: a SentencePiece model of either algorithm, BPE codes.
SENTENCEPIECE, CODES = RELEASED = ("sentencepiece", "codes")
WITH_CODES = (MERGES, CODES)  # kinds whose model is a list of merges
NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")

TRAINING_THREADS = 8  # constant, because the last digits of a unigram model depend on it
TRAINING_SENTENCES = 5_000_000  # seeded random sample of larger corpora
MAX_TRAINING_BYTES = 16_384  # longer sentences are not used in training
SPECIAL_PIECES = 3  # <unk>, <s>, </s>

WORD_BEGINS = "\u2581"  # SentencePiece's symbol for the space before a word
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BYTES = re.compile(r"(?<!\S)<0x[0-9A-F]{2}>(?: <0x[0-9A-F]{2}>)*(?!\S)")
NO_TEXT = re.compile(r"[\s\x00-\x1f\x7f]")


@dataclass(frozen=True)
class SubwordOptions:
    """Training options of a subword model; all but kind and size are SentencePiece's.

    Attributes:
        kind: "unigram" or "bpe" (SentencePiece), or "subword-nmt".
        vocab_size: number of pieces including <unk>, <s>, </s> and <p>; number of merges for subword-nmt.
        character_coverage: share of the characters of the text that get a piece.
        normalization: normalisation rule of SentencePiece.
        seed: seed of the sample that is drawn from large corpora.
        byte_fallback: other characters are encoded as bytes (256 pieces of the vocabulary) instead of <unk>.
    """

    kind: str = "unigram"
    vocab_size: int = 32_000
    character_coverage: float = 0.9995
    normalization: str = "nmt_nfkc"
    seed: int = 1
    byte_fallback: bool = False


def train_subword_model(paths: Sequence[PathLike], model: PathLike, options: SubwordOptions) -> None:
    """Trains a subword model on delimited files and writes it; deterministic."""
    sentences = tqdm(_sentences(paths), desc=f"models/{Path(model).name}", unit=" sentences", disable=None)
    if options.kind == MERGES:
        return learn_codes(sentences, model, options.vocab_size)
    import sentencepiece

    sentencepiece.set_random_generator_seed(options.seed)
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=content,
            model_type=options.kind,
            vocab_size=max(options.vocab_size, SPECIAL_PIECES),
            character_coverage=options.character_coverage,
            normalization_rule_name=options.normalization,
            byte_fallback=options.byte_fallback,
            user_defined_symbols=[PARAGRAPH],
            input_sentence_size=TRAINING_SENTENCES,
            shuffle_input_sentence=True,
            max_sentence_length=MAX_TRAINING_BYTES,
            num_threads=TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:  # of an unsuitable --vocab-size, with the numbers that are possible
        raise InputError(f"{model}: {str(error).rpartition('] ')[2]}") from error
    write_bytes(model, content.getvalue())


def _sentences(paths: Sequence[PathLike]) -> Iterator[str]:
    for path in paths:
        for line in read_lines(path):
            if not is_boundary(line):
                yield line


def load_subword_model(model: PathLike) -> "SentencePieceProcessor":
    """Loads a SentencePiece model; raises :class:`InputError` if the file is not one."""
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise InputError(f"{model}: not a SentencePiece model") from error


def subword_encoder(model: PathLike, workers: int = 1, kind: str = KINDS[0]) -> Callable[[List[str]], List[str]]:
    """Returns the function from sentences to subwords separated by spaces."""
    if kind in WITH_CODES:
        return bpe_encoder(model)
    processor = load_subword_model(model)

    def encode(sentences: Sequence[str]) -> List[str]:
        pieces = processor.encode(list(sentences), out_type=str, num_threads=workers) if sentences else []
        return [" ".join(sentence) for sentence in pieces]

    return encode


def joiner_of(kind: str) -> Optional[str]:
    """Returns fairseq's ``--post-process`` value for a kind of subwords; None for "none"."""
    if kind in WITH_CODES:
        return f"{JOINER} "
    return None if kind == "none" else "sentencepiece"


def join_subwords(tokens: str, symbol: Optional[str]) -> str:
    """Joins the subwords of a sentence.

    Args:
        tokens: subwords separated by spaces.
        symbol: value of fairseq's ``--post-process``; None: tokens are not joined.

    Raises:
        NotImplementedError: fairseq does not support the symbol.
    """
    from fairseq.data.data_utils import post_process

    if symbol == "sentencepiece" and "<0x" in tokens:
        tokens = BYTES.sub(lambda run: "".join(decode_bytes(run[0].split(" "))), tokens)
    text: str = post_process(tokens, symbol)
    return text


def decode_bytes(tokens: Sequence[str]) -> List[str]:
    """Replaces byte pieces by characters: the last byte of a character by the character, the others by nothing.

    Other tokens are unchanged. Invalid UTF-8 becomes U+FFFD, as in SentencePiece; white space and control characters
    begin a word.
    """
    shown, decoder = list(tokens), codecs.getincrementaldecoder("utf-8")(errors="replace")
    for number, token in enumerate(tokens):
        byte = BYTE.fullmatch(token)
        if byte is None:
            continue
        ends = number + 1 == len(tokens) or BYTE.fullmatch(tokens[number + 1]) is None
        shown[number] = NO_TEXT.sub(WORD_BEGINS, decoder.decode(bytes.fromhex(byte[1]), final=ends))
    return shown


# --- BPE codes ---

JOINER = "@@"  # end of every subword of a word but the last
END_OF_WORD = "</w>"
CACHED_WORDS = 100_000

Pair = Tuple[str, str]


def learn_codes(sentences: Iterable[str], codes: PathLike, merges: int) -> None:
    """Learns merges with subword-nmt and writes them; deterministic."""
    with needs_extra("bpe", "--subwords subword-nmt"):
        from subword_nmt.learn_bpe import learn_bpe
    content = io.StringIO()
    learn_bpe(sentences, content, merges)
    write_bytes(codes, content.getvalue().encode())


def bpe_encoder(codes: PathLike) -> Callable[[List[str]], List[str]]:
    """Returns the function from sentences of words to subwords separated by spaces.

    Args:
        codes: one merge per line, most frequent first: two symbols and an optional count; the first line may be
            ``#version: 0.2``.
    """
    ranks = _read(codes)

    @lru_cache(CACHED_WORDS)
    def subwords(word: str) -> str:
        return f"{JOINER} ".join(_split(word, ranks))

    return lambda sentences: [" ".join(map(subwords, sentence.split())) for sentence in sentences]


def _read(codes: PathLike) -> Dict[Pair, int]:
    """Returns the rank of every merge."""
    ranks: Dict[Pair, int] = {}
    for line in read_lines(codes, strip=" \r\n"):  # symbols may be other white space
        if line.startswith("#version:"):
            if "0.2" not in line:  # version 0.1 ends words otherwise
                raise InputError(f"{codes}: {line}: only version 0.2 is supported")
        else:
            first, _, others = line.partition(" ")
            ranks.setdefault((first, others.split(" ")[0]), len(ranks))
    if not any(END_OF_WORD in right for _, right in ranks):
        raise InputError(f"{codes}: no merge ends a word ({END_OF_WORD}); give the BPE codes of the model")
    return ranks


def _split(word: str, ranks: Dict[Pair, int]) -> Sequence[str]:
    """Splits a word into subwords: applies the merge of the lowest rank everywhere until none is left."""
    symbols: List[str] = [*word[:-1], word[-1] + END_OF_WORD]
    while len(symbols) > 1:
        best = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        merged: List[str] = []
        for symbol in symbols:
            if merged and (merged[-1], symbol) == best:
                merged[-1] += symbol
            else:
                merged.append(symbol)
        symbols = merged
    symbols[-1] = symbols[-1].removesuffix(END_OF_WORD)
    return symbols
