"""Plain text from the output of ``fairseq-generate``, reversing the steps of ``docnmt prepare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Mapping, Optional

from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.edits import OPERATIONS, edited_line
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.prepared import manifest_options
from docnmt_fairseq.corpus.subwords import JOINER, WITH_CODES, WORD_BEGINS, join_subwords
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.texts import restore_document_order


@dataclass(frozen=True)
class Translation:
    """Translation of a split and its reference, with boundaries on the same lines."""

    tokens: List[str]  # without subwords, tokenised and truecased as in training
    text: List[str]
    reference_tokens: List[str]
    reference_text: List[str]
    tokenizer: str  # of the target language
    post_edited: bool = False  # the output was edit operations, which have been applied


def read_translation(data: Path, split: str, log: Path) -> Translation:
    """Reads the translation of a split.

    Args:
        data: output of ``docnmt prepare``.
        split: "test", "test1", ...
        log: output of ``fairseq-generate`` for the split with ``--remove-bpe``; without it for edit operations.

    Raises:
        InputError: missing files, an incomplete log, or subwords that are not joined (or edit operations that are).
    """
    options = manifest_options(data, "--data")
    source = options["source_lang"]
    if not (data / "text" / f"{split}.{source}").is_file():
        raise InputError(f"--split {split}: no such split in {data / 'text'}")
    tokens = restore_document_order(log, data / "text" / f"{split}.{source}")
    joins = SidePipeline.from_options(options, 1).joiner
    if options.get("edits_of"):
        tokens = _edited(tokens, data / "subword" / f"{split}.{options['edits_of']}", log, joins)
    piece, remedy = (f"{JOINER} ", "'@@ '") if options["subwords"] in WITH_CODES else (WORD_BEGINS, "sentencepiece")
    if joins and any(piece in line for line in tokens):
        raise InputError(f"{log}: contains subwords ({piece.strip()}); generate with --remove-bpe {remedy}")
    return _with_reference(data, split, options, tokens)


def read_text_as_translation(data: Path, split: str, side: str) -> Translation:
    """Reads a side of the data as a translation, such as the machine translation of post-edits.

    Args:
        data: output of ``docnmt prepare``.
        split: "test", "test1", ...
        side: language, or name of an extra text that was prepared like the target.
    """
    options = manifest_options(data, "--data")
    return _with_reference(data, split, options, list(read_lines(data / _stage(options) / f"{split}.{side}")))


def _stage(options: Mapping[str, Any]) -> str:
    """Folder with the text before subwords."""
    tokenized = any(SidePipeline.from_options(options, side).tokenizer != "none" for side in (0, 1))
    return "truecased" if options["truecase"] else "tokenized" if tokenized else "text"


def _with_reference(data: Path, split: str, options: Mapping[str, Any], tokens: List[str]) -> Translation:
    target, pipeline = options["target_lang"], SidePipeline.from_options(options, 1)
    restore = pipeline.decoder()
    return Translation(
        tokens=tokens,
        text=map_sentences(tokens, lambda sentences: list(map(restore, sentences))),
        reference_tokens=list(read_lines(data / _stage(options) / f"{split}.{target}")),
        reference_text=list(read_lines(data / "text" / f"{split}.{target}")),
        tokenizer=pipeline.tokenizer,
        post_edited=bool(options.get("edits_of")),
    )


def _edited(operations: List[str], translation: Path, log: Path, joins: Optional[str]) -> List[str]:
    """Applies edit operations to the machine translation, and joins its subwords."""
    joined = {first + second for first in OPERATIONS for second in OPERATIONS}
    if joins and any(pair in line for line in operations for pair in joined):
        raise InputError(f"{log}: edit operations are joined; generate without --remove-bpe")
    edited = [edited_line(*texts) for texts in zip(read_lines(translation), operations)]
    return map_sentences(edited, lambda sentences: [join_subwords(sentence, joins) for sentence in sentences])
