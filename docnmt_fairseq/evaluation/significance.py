"""Whether systems differ by more than chance: sacrebleu's paired tests over segments, and resampling of documents."""

import logging
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric, Signature

SEGMENT_TESTS = {"bootstrap": "bs", "randomisation": "ar"}  # and what sacrebleu calls them
DOCUMENTS = "documents"
TESTS = (*SEGMENT_TESTS, DOCUMENTS)
DEFAULT_SAMPLES = {"bootstrap": 1000, "randomisation": 10_000, DOCUMENTS: 1000}
SEED = 12345  # sacrebleu's own
_FEW_DOCUMENTS = 10

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What a test says of one system beside the baseline.

    Attributes:
        score: of the system, on the whole test set.
        difference: from the baseline's score; None for the baseline itself, as for the next two.
        p_value: how likely chance makes a difference at least as large, either way.
        difference_interval: of 95 %, where documents were resampled.
        mean: of the resampled scores; None where no scores were resampled, as for the next.
        margin: half the 95 % interval of the resampled scores.
    """

    score: float
    difference: Optional[float] = None
    p_value: Optional[float] = None
    difference_interval: Optional[Tuple[float, float]] = None
    mean: Optional[float] = None
    margin: Optional[float] = None


def check_resampling(
    tests: Sequence[str], levels: Sequence[str], samples: Optional[int], seed: int, documents: int, sentences: int
) -> None:
    """Refuses what cannot be tested: over one segment, any difference would count as significant.

    Args:
        tests: some of ``TESTS``.
        levels: of the scores that are tested.
        samples: None for the tests' defaults.
        seed: of the tests.
        documents: in the test set.
        sentences: in the test set.

    Raises:
        InputError: a number that makes no sense, or a single segment or document.
    """
    if samples is not None and samples < 1:
        raise InputError(f"--samples {samples}: at least 1")
    if seed < 1:  # sacrebleu takes 0 for none
        raise InputError(f"--seed {seed}: at least 1")
    if tests and sentences < 2:
        raise InputError(f"--test {' '.join(tests)}: the test set is one sentence; a test takes several")
    if not tests or (DOCUMENTS not in tests and "document" not in levels):
        return
    if documents < 2:
        remedy = "an empty line in the references ends a document; else leave it out, and give --level sentence"
        raise InputError(f"--test {' '.join(tests)}: the test set is one document; a test takes several. {remedy}")
    if documents < _FEW_DOCUMENTS:
        logger.warning(f"a test over {documents} documents: with so few, p-values come out too small")


def compare_segments(
    test: str, systems: Mapping[str, Sequence[str]], metric: "Metric", samples: int, seed: int
) -> Tuple[Dict[str, Outcome], "Signature"]:
    """Returns the outcomes of sacrebleu's paired test by system, and its signature.

    A system that scores exactly what the baseline scores has p = 1: every difference is at least as large as none.
    sacrebleu counts larger ones only, and would call a system significantly different from itself.

    Args:
        test: one of ``SEGMENT_TESTS``.
        systems: the segments of each, the baseline first.
        metric: which remembers its references.
        samples: resamples, or trials of randomisation.
        seed: of the choices, at least 1.
    """
    from sacrebleu.significance import PairedTest

    with _seeded(seed):
        paired = PairedTest(
            list(systems.items()), {"": metric}, references=None, test_type=SEGMENT_TESTS[test], n_samples=samples
        )
        signatures, columns = paired()
    (name,) = signatures
    first = columns[name][0].score
    outcomes = {}
    for i, (system, result) in enumerate(zip(systems, columns[name])):
        difference = None if i == 0 else float(result.score - first)
        p_value = 1.0 if difference == 0 else result.p_value
        # sacrebleu's own are NumPy's, single precision among them, which JSON does not take.
        mean, margin = (None if value is None else float(value) for value in (result.mean, result.ci))
        outcomes[system] = Outcome(float(result.score), difference, p_value, None, mean, margin)
    return outcomes, signatures[name]


def compare_documents(
    systems: Mapping[str, np.ndarray], score: Callable[[List[float]], float], samples: int, seed: int
) -> Dict[str, Outcome]:
    """Returns the outcomes of the paired bootstrap over whole documents, by system.

    Sentences of one document are not independent, so that resampling sentences makes differences look surer than they
    are. Here documents are drawn with replacement, the same for all systems, with all that is in them. A p-value is
    the share of resampled differences that are at least as far from their mean as the observed difference is from 0
    (bootstrap under a shifted null hypothesis, two-sided), one added to numerator and denominator.

    Args:
        systems: by name the sums that the score is made of, [documents, sums], the baseline first.
        score: made of such sums over documents.
        samples: how often documents are drawn.
        seed: of the draws.
    """
    from sacrebleu.significance import estimate_ci

    first = next(iter(systems.values()))
    documents = len(first)
    # How often each document was drawn, [samples, documents]: sums over a resample are then one product.
    draws = np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=samples)
    resampled, observed = {}, {}
    for name, sums in systems.items():
        resampled[name] = np.array([score(row) for row in (draws @ sums).tolist()])
        observed[name] = score(sums.sum(0).tolist())
    baseline = next(iter(systems))
    outcomes = {}
    for name in systems:
        mean, margin = map(float, estimate_ci(resampled[name]))
        if name == baseline:
            outcomes[name] = Outcome(observed[name], mean=mean, margin=margin)
            continue
        differences = resampled[name] - resampled[baseline]
        difference = observed[name] - observed[baseline]
        as_far = np.abs(differences - differences.mean()) >= abs(difference)
        p_value = (int(as_far.sum()) + 1) / (samples + 1)
        low, high = map(float, np.quantile(differences, (0.025, 0.975)))
        outcomes[name] = Outcome(observed[name], difference, p_value, (low, high), mean, margin)
    return outcomes


def sums_by_document(statistics: Sequence[Sequence[float]], segments: Sequence[int]) -> np.ndarray:
    """Returns the statistics of segments added up by document, [documents, sums].

    Args:
        statistics: of each segment.
        segments: how many of them each document has, at least one.
    """
    starts = np.cumsum([0, *segments[:-1]])
    return np.add.reduceat(np.array(statistics, dtype=np.float64), starts, axis=0)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Gives sacrebleu its seed, which it takes from the environment only."""
    name = "SACREBLEU_SEED"
    before = os.environ.get(name)
    os.environ[name] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
