"""The contract of significance tests, what they say, and the registry that ``docnmt score`` asks for them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Dict, Mapping, Optional, Tuple

from docnmt_fairseq.evaluation.metrics import Metric
from docnmt_fairseq.evaluation.metrics.base import Statistics
from docnmt_fairseq.registry import Registry


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


@dataclass(frozen=True)
class Comparison:
    """One test of one metric; outcomes by system, the baseline first."""

    samples: int
    signature: str
    outcomes: Dict[str, Outcome]


class SignificanceTest(ABC):
    """Contract: ``cls()``; tests the differences of systems from the first of them, by any metric.

    Class attributes:
        help: in one line, what it is.
        title: what was done, in tables, with a place for the number of samples.
        samples: how many, unless told otherwise.
        draws: whether anything is drawn, so that samples and seed matter.
        draws_documents: whether documents are drawn, rather than the segments of the metric's level.
    """

    help: ClassVar[str]
    title: ClassVar[str]
    samples: ClassVar[int]
    draws: ClassVar[bool] = True
    draws_documents: ClassVar[bool] = False

    @abstractmethod
    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """The outcomes for all systems.

        Args:
            metric: by which they are compared.
            systems: the metric's statistics for each, [segments, sums], the baseline first.
            samples: how often chance is asked.
            seed: of the choices, at least 1.
        """


TESTS: Registry[SignificanceTest] = Registry("significance test")
