"""BLEU and chrF of a translation, with the signatures that make them reproducible."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import sentence_ids
from docnmt_fairseq.evaluation.metrics import MetricOptions, make_metric


@dataclass(frozen=True)
class Scores:
    """Corpus-level scores from 0 to 100, the number of sentences they are over, and sacrebleu's signatures."""

    bleu: float
    chrf: float
    sentences: int
    bleu_signature: str
    chrf_signature: str

    def to_json(self) -> Dict[str, Any]:
        """Returns the fields as a plain dictionary."""
        return asdict(self)


def corpus_scores(hypotheses: Sequence[str], reference: Sequence[str], tokenizer: Optional[str] = None) -> Scores:
    """Returns the scores over the sentences of a delimited text.

    Args:
        hypotheses: one line for each line of ``reference``; what stands at a mark is not scored.
        reference: the lines of the delimited reference, marks included.
        tokenizer: of sacrebleu's BLEU; None for its own choice, which does not suit languages without spaces.

    Raises:
        InputError: unequal numbers of lines, or no sentence to score.
    """
    translated, references = scored_sentences(hypotheses, reference)
    bleu, chrf = make_metric("bleu", MetricOptions(tokenize=tokenizer)), make_metric("chrf")
    return Scores(
        bleu=bleu.corpus_score(translated, references).score,
        chrf=chrf.corpus_score(translated, references).score,
        sentences=len(translated),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def scored_sentences(hypotheses: Sequence[str], reference: Sequence[str]) -> Tuple[List[str], List[List[str]]]:
    """Returns the sentences of two delimited texts as sacrebleu takes them: translations, and the one reference.

    Raises:
        InputError: as in :func:`corpus_scores`.
    """
    if len(hypotheses) != len(reference):
        raise InputError(f"{len(hypotheses)} lines translated, but the reference has {len(reference)}")
    ids = sentence_ids(reference)
    if not ids:
        raise InputError("the reference holds marks only: nothing to score")
    return [hypotheses[i] for i in ids], [[reference[i] for i in ids]]
