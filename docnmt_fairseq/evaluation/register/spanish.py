"""Spanish: tú and usted.

Subject pronouns are mostly dropped, and su, le, lo are as well "his", "her", "their": many polite sentences show
nothing. Ustedes is the plural of both registers in America, and not sure; vosotros is familiar where it is used.
"""

import re
from typing import Match

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule, either_case

TU = ("tú", "te", "ti", "contigo", "tu", "tus", "tuyo", "tuya", "tuyos", "tuyas")
VOSOTROS = ("vosotros", "vosotras", "vuestro", "vuestra", "vuestros", "vuestras")


@RULES.register("es")
class Spanish(RegisterRule):
    """See the module."""

    marks = {
        "tú": re.compile(either_case(*TU, *VOSOTROS)),
        "usted": re.compile(either_case("usted", "ustedes") + r"|\b(?:Uds?|Vds?)\."),
    }

    def is_sure(self, mark: Match[str]) -> bool:
        """See :meth:`RegisterRule.is_sure`."""
        return mark[0].lower() not in ("ustedes", "uds.", "vds.")
