"""From the output of ``fairseq-generate`` to text for people, the steps of ``docnmt prepare`` undone."""

from dataclasses import dataclass
from pathlib import Path
from typing import List

from docnmt_fairseq.corpus.config import manifest_options
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text_steps import plain_text, tokenizers_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import PIECE, restore_document_order
from docnmt_fairseq.marks import is_mark


@dataclass(frozen=True)
class Translation:
    """A translated split beside its reference: equally many lines, marks on the same lines.

    Attributes:
        tokens: what the model wrote, without subwords: tokenised and truecased as its training text was.
        text: the same as plain text.
        reference_tokens: the reference as the model would have written it.
        reference_text: the reference as it was read, normalised.
        tokenizer: of the target language.
    """

    tokens: List[str]
    text: List[str]
    reference_tokens: List[str]
    reference_text: List[str]
    tokenizer: str


def read_translation(data: Path, split: str, log: Path) -> Translation:
    """Returns the translation of a split of ``docnmt prepare``'s output.

    Args:
        data: the folder that ``docnmt prepare`` wrote.
        split: "test", "test1", ...
        log: what ``fairseq-generate`` printed for that split, subwords removed.

    Raises:
        InputError: no such output or split, a log that does not cover it, or subwords left in it.
    """
    options = manifest_options(data, "--data")
    source, target = options["source_lang"], options["target_lang"]
    if not (data / "text" / f"{split}.{source}").is_file():
        raise InputError(f"--split {split}: not in {data / 'text'}")
    tokens = restore_document_order(log, data / "text" / f"{split}.{source}")
    if options["subwords"] != "none" and any(PIECE in line for line in tokens):
        raise InputError(f"{log}: holds subwords ({PIECE}); generate with --remove-bpe sentencepiece")
    sides = tokenizers_of(options)
    stage = "truecased" if options["truecase"] else "text" if sides == ("none", "none") else "tokenized"
    restore = plain_text(target, sides[1], options["truecase"])
    return Translation(
        tokens=tokens,
        text=[line if is_mark(line) else restore(line) for line in tokens],
        reference_tokens=list(read_lines(data / stage / f"{split}.{target}")),
        reference_text=list(read_lines(data / "text" / f"{split}.{target}")),
        tokenizer=sides[1],
    )
