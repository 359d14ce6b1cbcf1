"""From the output of ``fairseq-generate`` to text for people, the steps of ``docnmt prepare`` undone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Mapping, Optional

from docnmt_fairseq.corpus.bpe_codes import JOINER
from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.edits import OPERATIONS, edited_line
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.prepared import manifest_options
from docnmt_fairseq.corpus.subwords import WITH_CODES, WORD_BEGINS, join_subwords
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import restore_document_order


@dataclass(frozen=True)
class Translation:
    """A translated split beside its reference: equally many lines, marks on the same lines.

    Attributes:
        tokens: what the model wrote, without subwords: tokenised and truecased as its training text was.
        text: the same as plain text.
        reference_tokens: the reference as the model would have written it.
        reference_text: the reference as it was read, normalised.
        tokenizer: of the target language.
        post_edited: whether the model wrote edit operations, which were applied.
    """

    tokens: List[str]
    text: List[str]
    reference_tokens: List[str]
    reference_text: List[str]
    tokenizer: str
    post_edited: bool = False


def read_translation(data: Path, split: str, log: Path) -> Translation:
    """Reads the translation of a split of ``docnmt prepare``'s output.

    Args:
        data: the folder that ``docnmt prepare`` wrote.
        split: "test", "test1", ...
        log: what ``fairseq-generate`` printed for that split: subwords removed; edit operations as they are.

    Raises:
        InputError: no such output or split, a log that does not cover it, subwords left in it, or edit operations
            joined as if they were subwords.
    """
    options = manifest_options(data, "--data")
    source = options["source_lang"]
    if not (data / "text" / f"{split}.{source}").is_file():
        raise InputError(f"--split {split}: not in {data / 'text'}")
    tokens = restore_document_order(log, data / "text" / f"{split}.{source}")
    joins = SidePipeline.from_options(options, 1).joiner
    if options.get("edits_of"):
        tokens = _edited(tokens, data / "subword" / f"{split}.{options['edits_of']}", log, joins)
    piece, remedy = (f"{JOINER} ", "'@@ '") if options["subwords"] in WITH_CODES else (WORD_BEGINS, "sentencepiece")
    if joins and any(piece in line for line in tokens):
        raise InputError(f"{log}: holds subwords ({piece.strip()}); generate with --remove-bpe {remedy}")
    return _beside_reference(data, split, options, tokens)


def read_text_as_translation(data: Path, split: str, side: str) -> Translation:
    """Reads a side of the data as if a model had written it, such as the machine translation of post-edits.

    Args:
        data: the folder that ``docnmt prepare`` wrote.
        split: "test", "test1", ...
        side: the language, or the name of an extra text, that was prepared as the target was.

    Raises:
        InputError: no such output.
    """
    options = manifest_options(data, "--data")
    return _beside_reference(data, split, options, list(read_lines(data / _stage(options) / f"{split}.{side}")))


def _stage(options: Mapping[str, Any]) -> str:
    """The folder with the text before subwords."""
    tokenized = any(SidePipeline.from_options(options, side).tokenizer != "none" for side in (0, 1))
    return "truecased" if options["truecase"] else "tokenized" if tokenized else "text"


def _beside_reference(data: Path, split: str, options: Mapping[str, Any], tokens: List[str]) -> Translation:
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
    """The text that operations make of the machine translation, its subwords joined."""
    joined = {first + second for first in OPERATIONS for second in OPERATIONS}
    if joins and any(pair in line for line in operations for pair in joined):
        raise InputError(f"{log}: edit operations without spaces between; generate without --remove-bpe")
    edited = [edited_line(*texts) for texts in zip(read_lines(translation), operations)]
    return map_sentences(edited, lambda sentences: [join_subwords(sentence, joins) for sentence in sentences])
