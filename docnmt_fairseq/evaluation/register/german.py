"""German: du and Sie.

Sie, Ihnen and Ihr are polite by their capital alone, so at the beginning of a sentence they may also be "she", "they"
or "her", and are not sure. The plural ihr, euch, euer is neither register: it is said to several people, some of whom
would be addressed by du and some by Sie.
"""

import re
from typing import Match

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule, either_case
from docnmt_fairseq.evaluation.words import may_begin_sentence

DEIN = ("dein", "deine", "deinem", "deinen", "deiner", "deines", "deins")
DEINET = ("deinesgleichen", "deinetwegen", "deinetwillen")


@RULES.register("de")
class German(RegisterRule):
    """See the module."""

    marks = {
        "du": re.compile(either_case("du", "dich", "dir", *DEIN, *DEINET)),
        "Sie": re.compile(r"\b(?:Sie|Ihnen|Ihr|Ihre[mnrs]?|Ihretw(?:egen|illen))\b"),
    }

    def is_sure(self, mark: Match[str]) -> bool:
        """See :meth:`RegisterRule.is_sure`."""
        return mark[0][0] in "Dd" or not may_begin_sentence(mark.string, mark.start())
