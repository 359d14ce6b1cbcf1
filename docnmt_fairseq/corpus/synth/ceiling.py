"""What a model that sees one sentence at a time can reach at best.

Why this is a bound. The words of a sentence with an undecidable word are drawn without regard to the right form
(``document``), so all that the sentence tells of it is which source word is asked about. The best such model answers
every source word with its most frequent right form, and is right as often as that form's share: the Bayes accuracy. The
shares are counted on the train split; the largest of several counted shares is on average a little above the largest
true share, so the count errs on the safe side.

Why luck needs its own bound. On a finite split any guesser may exceed its expected accuracy. The words of one document
share their deciding sentences, so its guesses are right or wrong together, but documents are drawn independently.
``upper_bound`` therefore treats a document's words as if they were one and the same draw, the worst that can be: the
split is worth ``(Σ m)² / Σ m²`` independent draws where m words lie in a document, and the bound is the accuracy that
so many draws of the ceiling's probability exceed with a probability below 0.1 %.
"""

import math
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from docnmt_fairseq.corpus.synth.table import Case
from docnmt_fairseq.errors import InputError

LUCK = 0.001

# (kind, source word, right form) → how often.
Counts = Counter[Tuple[str, str, str]]


def count_forms(counts: Counts, cases: Iterable[Case]) -> None:
    """Adds the right forms of ``cases`` to ``counts``."""
    counts.update((case.kind, case.source_word, case.right) for case in cases)


def largest_shares(counts: Counts) -> Dict[Tuple[str, str], float]:
    """The share of the most frequent right form of each kind's source words."""
    forms: Dict[Tuple[str, str], List[int]] = {}
    for (kind, word, _), count in counts.items():
        forms.setdefault((kind, word), []).append(count)
    return {key: max(numbers) / sum(numbers) for key, numbers in forms.items()}


def ceiling(counts: Counts, documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    """The best accuracy without context on a split, by kind and overall.

    Args:
        counts: the right forms of the train split.
        documents: the cases of the split, a list a document.

    Returns:
        ``{"kinds": {kind: figures}, "overall": figures, "source_words": {word: share}}`` where figures are
        ``accuracy`` (expected at best), ``cases``, ``independent_draws`` and ``upper_bound``.

    Raises:
        InputError: the train split lacks a source word of the split, or the split has none.
    """
    if not any(documents):
        raise InputError("--sentences-per-document: no document has room for an undecidable word; ask for longer ones")
    shares = largest_shares(counts)
    for case in (case for document in documents for case in document):
        if (case.kind, case.source_word) not in shares:
            message = f"--train-documents: too few to hold the {case.kind} word '{case.source_word}'; ask for more"
            raise InputError(message)
    kinds = sorted({kind for kind, _ in shares})
    by_kind = {kind: [[case for case in document if case.kind == kind] for document in documents] for kind in kinds}
    return {
        "kinds": {kind: _figures(shares, cases) for kind, cases in by_kind.items() if any(cases)},
        "overall": _figures(shares, documents),
        "source_words": {word: share for (_, word), share in sorted(shares.items())},
    }


def _figures(shares: Mapping[Tuple[str, str], float], documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    from scipy.stats import binom

    expected = [shares[case.kind, case.source_word] for document in documents for case in document]
    accuracy = math.fsum(expected) / len(expected)
    sizes = [len(document) for document in documents]
    draws = max(1, sum(sizes) ** 2 // sum(size * size for size in sizes))
    return {
        "accuracy": accuracy,
        "cases": len(expected),
        "independent_draws": draws,
        "upper_bound": float(binom.ppf(1 - LUCK, draws, accuracy)) / draws,
    }
