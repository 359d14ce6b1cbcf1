"""Whether systems differ by more than chance: tests by name, a file for each way of drawing."""

import logging
from typing import Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.significance.base import TESTS, Comparison, Outcome, SignificanceTest
from docnmt_fairseq.registry import import_folder

__all__ = ["FEW_DOCUMENTS", "SEED", "TESTS", "Comparison", "Outcome", "SignificanceTest", "check_resampling"]

SEED = 12345  # sacrebleu's own
FEW_DOCUMENTS = 10  # with fewer, p-values come out too small

logger = logging.getLogger(__name__)
import_folder(__name__, __path__)


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
    if not tests or ("document" not in levels and not any(TESTS[test].draws_documents for test in tests)):
        return
    if documents < 2:
        remedy = "an empty line in the references ends a document; else leave it out, and give --level sentence"
        raise InputError(f"--test {' '.join(tests)}: the test set is one document; a test takes several. {remedy}")
    if documents < FEW_DOCUMENTS:
        logger.warning(f"a test over {documents} documents: with so few, p-values come out too small")
