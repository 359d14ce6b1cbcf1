"""Plain text from the output of ``fairseq-generate``, reversing the steps of ``docnmt prepare``, and its scores.

The functions that score a text take lines of delimited text with boundaries on the same lines, ignore the boundaries,
and raise :class:`InputError` for different numbers of lines.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.edits import OPERATIONS, edited_line
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.prepared import manifest_options
from docnmt_fairseq.corpus.subwords import JOINER, WITH_CODES, WORD_BEGINS, join_subwords
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import BleuOptions, ChrfOptions
from docnmt_fairseq.evaluation.significance import sign_p_value
from docnmt_fairseq.evaluation.texts import References, restore_document_order

TOKENISED = BleuOptions(tokenize="none", smooth="none")  # equal to multi-bleu.perl


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


@dataclass(frozen=True)
class TextScore:
    """Score by one metric, the number of sentences, and sacreBLEU's signature."""

    score: float
    sentences: int
    signature: str


def corpus_scores(
    hypotheses: Sequence[str], *references: Sequence[str], tokenizer: Optional[str] = None
) -> Dict[str, Any]:
    """BLEU and chrF of plain text, the number of sentences, and sacreBLEU's signatures.

    Args:
        hypotheses: lines of the translation.
        references: lines of each reference.
        tokenizer: sacreBLEU's tokeniser for BLEU; the default does not suit languages without spaces.
    """
    bleu = _score("bleu", BleuOptions(tokenize=tokenizer), hypotheses, references)
    chrf = _score("chrf", ChrfOptions(), hypotheses, references)
    return {
        "bleu": bleu.score,
        "chrf": chrf.score,
        "sentences": bleu.sentences,
        "bleu_signature": bleu.signature,
        "chrf_signature": chrf.signature,
    }


def tokenized_bleu(hypotheses: Sequence[str], *references: Sequence[str]) -> TextScore:
    """BLEU of tokenised text as by multi-bleu.perl, comparable for the same tokenisation of the references only."""
    return _score("bleu", TOKENISED, hypotheses, references)


def tokenized_sign_test(hypotheses: Sequence[str], baseline: Sequence[str], *references: Sequence[str]) -> float:
    """P-value of the sign test of Collins et al. (2005) with BLEU of tokenised text."""
    metric = _metric("bleu", TOKENISED, references)
    rows = (np.array(_statistics(metric, text, references)) for text in (baseline, hypotheses))
    return sign_p_value(metric, *rows)


def human_targeted_error_rate(hypotheses: Sequence[str], reference: Sequence[str]) -> TextScore:
    """HTER of tokenised text with case, as in WMT's automatic post-editing tasks; the reference is a post-edit."""
    return _score("hter", MetricOptions(), hypotheses, [reference])


def _score(
    name: str, options: MetricOptions, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> TextScore:
    metric = _metric(name, options, references)
    score = metric.corpus_score(_statistics(metric, hypotheses, references))
    return TextScore(score, metric.test_set.sentences, metric.signature())


def _metric(name: str, options: MetricOptions, references: Sequence[Sequence[str]]) -> Metric:
    lines = [number for number, line in enumerate(references[0], start=1) if not is_boundary(line)]
    streams = [[[reference[number - 1] for number in lines]] for reference in references]
    return METRICS[name](References((), streams, None, [lines]), options)


def _statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> List[List[float]]:
    if len(hypotheses) != len(references[0]):
        raise InputError(f"{len(hypotheses)} translated lines, but {len(references[0])} lines in the reference")
    return metric.statistics([[hypotheses[number - 1] for number in metric.test_set.lines[0]]])
