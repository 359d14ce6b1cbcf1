"""French: tu and vous.

The plural of both is vous, so it is polite only where one person is addressed, which no word tells: texts that speak
to groups are not for this rule. Ton is also a noun ("tone"), and not sure; tiens and tienne are mostly verbs, and left
out; a rendez-vous or garde-à-vous is no address.
"""

import re
from typing import Match

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule, either_case

HYPHEN = "[-\u2010\u2011]"  # the latter two are those of typesetters
NOUNS = rf"(?<![Rr]endez{HYPHEN})(?<![Gg]arde{HYPHEN}à{HYPHEN})"


@RULES.register("fr")
class French(RegisterRule):
    """See the module."""

    marks = {
        "tu": re.compile(either_case("tu", "te", "toi", "ton", "ta", "tes", "tien") + r"|\b[Tt]['’](?=\w)"),
        "vous": re.compile(NOUNS + either_case("vous", "votre", "vos", "vôtre", "vôtres")),
    }

    def is_sure(self, mark: Match[str]) -> bool:
        """See :meth:`RegisterRule.is_sure`."""
        return mark[0].lower() != "ton"
