"""Spanish: tú and usted.

Subject pronouns are mostly dropped, and su, le, lo are as well "his", "her", "their": many polite sentences show
nothing. Te at the end of a verb is found where an accent tells it from other words (tómate, ayudándote), not in
ayudarte, which ends as parte does. Ustedes is the plural of both registers in America, and not sure; vosotros is
familiar where it is used.
"""

import re
from typing import Match

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule, either_case

TU = ("tú", "te", "ti", "contigo", "tu", "tus", "tuyo", "tuya", "tuyos", "tuyas")
VOSOTROS = ("vosotros", "vosotras", "vuestro", "vuestra", "vuestros", "vuestras")
OS = r"|(?<![.\w])[Oo]s\b"  # not n.os, "numbers"
WITH_TE = r"|(?:[ÁÉÍÓÚáéíóú]\w{1,4}[ae]|ándo|éndo)te(?:l[aeo]s?)?\b"


@RULES.register("es")
class Spanish(RegisterRule):
    """See the module."""

    marks = {
        "tú": re.compile(either_case(*TU, *VOSOTROS) + OS + WITH_TE),
        "usted": re.compile(either_case("usted", "ustedes") + r"|\b(?:Uds?|Vds?)\."),
    }

    def is_sure(self, mark: Match[str]) -> bool:
        """See :meth:`RegisterRule.is_sure`."""
        return mark[0].lower() not in ("ustedes", "uds.", "vds.")
