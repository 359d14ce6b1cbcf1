"""What metrics of register have in common: the language, and its rule."""

from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import Metric, MetricOptions
from docnmt_fairseq.evaluation.register import RULES
from docnmt_fairseq.evaluation.texts import References
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class RegisterOptions(MetricOptions):
    """Whose rule tells the registers."""

    register_language: Optional[str] = option(None, "language of the translations", names=RULES)


class RegisterMetric(Metric):
    """A metric that asks the rule of a language which register sentences show.

    Raises:
        InputError: no language is given.
    """

    Options = RegisterOptions
    options: RegisterOptions
    joins_documents = False

    def __init__(self, test_set: References, options: RegisterOptions):
        super().__init__(test_set, options)
        if options.register_language is None:
            raise InputError(f"{self.title}: of which language? Give --register-language: {', '.join(RULES.names())}")
        self.rule = RULES[options.register_language]()
