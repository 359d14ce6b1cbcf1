"""Subword models: SentencePiece or BPE codes, trained, reused, or a released model's. Marks never pass through them."""

import io
import logging
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence

from docnmt_fairseq.corpus.bpe_codes import bpe_encoder, learn_codes
from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes, read_lines
from docnmt_fairseq.corpus.transform import BatchFunction
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import PARAGRAPH, is_mark
from docnmt_fairseq.options import flag_of

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

MERGES = "subword-nmt"
SENTENCEPIECE_KINDS = ("unigram", "bpe")
KINDS = (*SENTENCEPIECE_KINDS, MERGES, "none")  # that can be trained
# What comes with released models: a SentencePiece model of either kind, BPE codes.
SENTENCEPIECE, CODES = RELEASED = ("sentencepiece", "codes")
WITH_CODES = (MERGES, CODES)  # whose model is a list of merges
NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
OF_SENTENCEPIECE, OF_DICTIONARIES = ("character_coverage", "normalization"), ("min_count", "max_words")  # options

TRAINING_THREADS = 8  # fixed: the unigram model depends on it in the last digits, and must not depend on the machine
TRAINING_SENTENCES = 5_000_000  # a seeded random sample of larger corpora
LONGEST_SENTENCE = 16_384  # bytes; longer ones are not used in training
OWN_PIECES = 3  # <unk>, <s>, </s>
# What SentencePiece takes; of larger sizes it says that they are too large after minutes, if at all.
MOST_PIECES, LARGEST_SEED, LEAST_COVERAGE = 10_000_000, 2**32 - 1, 0.98

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubwordOptions:
    """How a subword model is trained; all but kind and size are SentencePiece's.

    Attributes:
        kind: "unigram" or "bpe" of SentencePiece, or "subword-nmt".
        vocab_size: number of pieces, <unk>, <s>, </s> and <p> among them; of subword-nmt, of merges.
        character_coverage: share of the characters of the text that are to have a piece; the rarest become <unk>.
        normalization: SentencePiece's own normalisation rule.
        seed: of the sample that is taken from large corpora.
        byte_fallback: these become the pieces of their bytes instead, 256 of the vocabulary; SentencePiece's only.
    """

    kind: str = "unigram"
    vocab_size: int = 32_000
    character_coverage: float = 0.9995
    normalization: str = "nmt_nfkc"
    seed: int = 1
    byte_fallback: bool = False

    def problems(self) -> List[str]:
        """What cannot be trained with, by the options' flags."""
        limits = (
            (1 <= self.vocab_size <= MOST_PIECES, "--vocab-size", f"from 1 to {MOST_PIECES:,}"),
            (LEAST_COVERAGE <= self.character_coverage <= 1, "--character-coverage", f"from {LEAST_COVERAGE} to 1"),
            (0 <= self.seed <= LARGEST_SEED, "--seed", f"from 0 to {LARGEST_SEED:,}"),
        )
        found = [f"{flag} must be {limit}" for fine, flag, limit in limits if not fine]
        if self.byte_fallback and self.kind not in SENTENCEPIECE_KINDS:
            found.append(f"--byte-fallback: of SentencePiece's pieces, not of --subwords {self.kind}; leave it out")
        return found

    def as_inputs(self) -> Dict[str, Any]:
        """What a model depends on, as it was written down before there was ``byte_fallback``."""
        return {name: value for name, value in asdict(self).items() if name != "byte_fallback" or value}


def without_effect(given: Mapping[str, Any]) -> List[str]:
    """Says of options of ``docnmt prepare``, by name, which of them nothing would read."""
    kind = given.get("subwords", SubwordOptions.kind)
    training, pieces = ("vocab_size", *OF_SENTENCEPIECE, "byte_fallback"), kind in SENTENCEPIECE_KINDS
    remedies = (
        ("subword_model" in given, training, "of subwords that are trained; --subword-model is trained already"),
        (kind == "none", training, "of subwords that are trained; --subwords none trains none"),
        (kind == MERGES, OF_SENTENCEPIECE, f"of SentencePiece, not of --subwords {kind}"),
        (pieces, OF_DICTIONARIES, f"of dictionaries of words and merges, not of --subwords {kind}"),
    )
    for holds, names, reason in remedies:
        useless = [flag_of(name) for name in names if name in given]
        if holds and useless:
            return [f"{', '.join(useless)}: {reason}: leave it out"]
    return []


def train_subword_model(paths: Sequence[PathLike], model: PathLike, options: SubwordOptions) -> None:
    """Writes the model learnt from delimited files; the same input gives the same model.

    Raises:
        InputError: the vocabulary size does not suit the text; says which sizes do. Or subword-nmt is not installed.
    """
    if options.kind == MERGES:
        return learn_codes(_sentences(paths), model, options.vocab_size)
    import sentencepiece

    sentencepiece.set_random_generator_seed(options.seed)
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(paths),
            model_writer=content,
            model_type=options.kind,
            vocab_size=max(options.vocab_size, OWN_PIECES),  # of fewer it does not say that they are too few
            character_coverage=options.character_coverage,
            normalization_rule_name=options.normalization,
            byte_fallback=options.byte_fallback,
            user_defined_symbols=[PARAGRAPH],
            input_sentence_size=TRAINING_SENTENCES,
            shuffle_input_sentence=True,
            max_sentence_length=LONGEST_SENTENCE,
            num_threads=TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(error, options) from error
    atomic_write_bytes(model, content.getvalue())


def _sentences(paths: Sequence[PathLike]) -> Iterator[str]:
    for path in paths:
        for line in read_lines(path):
            if not is_mark(line):
                yield line


def _training_error(error: RuntimeError, options: SubwordOptions) -> InputError:
    """SentencePiece's error in terms of our options."""
    text = str(error)
    too_high = re.search(r"too high.*<= (\d+)", text)
    if too_high:
        return InputError(
            f"--vocab-size {options.vocab_size} is too large for the training text: at most {too_high.group(1)}"
        )
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", text)
    if too_low:
        return InputError(
            f"--vocab-size {options.vocab_size} is too small: at least {too_low.group(1)}, one for each character"
            f"{' and each byte' if options.byte_fallback else ''} (or lower --character-coverage)"
        )
    if "sentences_.empty()" in text:
        return InputError(
            f"no sentence of the training text is within {LONGEST_SENTENCE:,} bytes, as SentencePiece needs them: give "
            "a sentence a line"
        )
    return InputError(f"SentencePiece could not be trained: {text}")


def subword_model_name(joint: bool, language: str) -> str:
    """The file name of the model that splits a language in an output of ``docnmt prepare``."""
    return "subword.model" if joint else f"subword.{language}.model"


def check_subword_model(model: PathLike, kind: str) -> None:
    """Raises :class:`InputError` if a file is no subword model of a kind."""
    if kind in WITH_CODES:
        bpe_encoder(model)
    else:
        load_subword_model(model)


def load_subword_model(model: PathLike) -> "SentencePieceProcessor":
    """The SentencePiece processor of a model file.

    Raises:
        InputError: it is not one.
    """
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise InputError(f"{model}: not a SentencePiece model") from error


def subword_encoder(model: PathLike, workers: int = 1, kind: str = KINDS[0]) -> BatchFunction:
    """The function from sentences to their pieces with spaces between.

    Args:
        model: a SentencePiece model, or BPE codes.
        workers: threads.
        kind: of ``KINDS`` or ``RELEASED``.

    Raises:
        InputError: the file is not of that kind.
    """
    if kind in WITH_CODES:
        return bpe_encoder(model)
    processor = load_subword_model(model)

    def encode(sentences: Sequence[str]) -> List[str]:
        pieces = processor.encode(list(sentences), out_type=str, num_threads=workers) if sentences else []
        return [" ".join(sentence) for sentence in pieces]

    return encode
