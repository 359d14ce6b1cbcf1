"""Russian: ты and вы.

The plural of both is вы, so it is polite only where one person is addressed, which no word tells; the capital of
polite letters (Вы) is not demanded.
"""

import re

from docnmt_fairseq.evaluation.register.base import RULES, RegisterRule, either_case

TY = ("ты", "тебя", "тебе", "тобой", "тобою")
TVOJ = ("твой", "твоего", "твоему", "твоим", "твоём", "твоем", "твоя", "твоей", "твоею", "твою", "твоё", "твое")
TVOI = ("твои", "твоих", "твоими")
VY = ("вы", "вас", "вам", "вами")
VASH = ("ваш", "вашего", "вашему", "вашим", "вашем", "ваша", "вашей", "вашею", "вашу", "ваше")
VASHI = ("ваши", "ваших", "вашими")


@RULES.register("ru")
class Russian(RegisterRule):
    """See the module."""

    marks = {
        "ты": re.compile(either_case(*TY, *TVOJ, *TVOI)),
        "вы": re.compile(either_case(*VY, *VASH, *VASHI)),
    }
