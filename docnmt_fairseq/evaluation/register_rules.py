"""Rules that detect the register of a sentence, one class per language.

Register is the T-V distinction (Brown and Gilman 1960), the familiar and the polite second person. Few words mark it,
so a rule is a list of these. Imperatives without a pronoun, and verbs in languages that drop pronouns, are not
detected.
"""

import re
from abc import ABC
from typing import ClassVar, Mapping, Match, Optional, Pattern, Set

from docnmt_fairseq.evaluation.words import may_begin_sentence
from docnmt_fairseq.registry import Registry


class RegisterRule(ABC):
    """Register of sentences of one language.

    Labels and document consistency use unambiguous markers only. Translations also use ambiguous markers if a sentence
    has no unambiguous one.

    Class attributes:
        markers: patterns by register, the familiar register first.
    """

    markers: ClassVar[Mapping[str, Pattern[str]]]

    def is_unambiguous(self, marker: Match[str]) -> bool:
        """Returns whether a marker found in a sentence (``marker.string``) has no other reading."""
        return True

    def register_of(self, line: str, *, unambiguous_only: bool = False) -> Optional[str]:
        """Register of a sentence, or None if it has no marker or those of both registers.

        Args:
            line: plain text.
            unambiguous_only: ignore ambiguous markers; by default they count if there is no unambiguous one.
        """
        clear: Set[str] = set()
        ambiguous: Set[str] = set()
        for register, pattern in self.markers.items():
            for marker in pattern.finditer(line):
                (clear if self.is_unambiguous(marker) else ambiguous).add(register)
        found = clear if clear or unambiguous_only else ambiguous
        return found.pop() if len(found) == 1 else None


RULES: Registry[RegisterRule] = Registry("register rule")


def either_case(*words: str) -> str:
    """Regular expression for whole words with the first letter in either case.

    Words in capitals do not match, since most of them are abbreviations.
    """
    return rf"\b(?:{'|'.join(f'[{word[0].upper()}{word[0].lower()}]{re.escape(word[1:])}' for word in words)})\b"


DEIN = ("dein", "deine", "deinem", "deinen", "deiner", "deines", "deins")
DEINET = ("deinesgleichen", "deinetwegen", "deinetwillen")


@RULES.register("de")
class German(RegisterRule):
    """du and Sie.

    Sie, Ihnen and Ihr differ from "she", "they" and "her" in the capital only, so they are ambiguous at the start of a
    sentence. The plural ihr, euch, euer is neither register.
    """

    markers = {
        "du": re.compile(either_case("du", "dich", "dir", *DEIN, *DEINET)),
        "Sie": re.compile(r"\b(?:Sie|Ihnen|Ihr|Ihre[mnrs]?|Ihretw(?:egen|illen))\b"),
    }

    def is_unambiguous(self, marker: Match[str]) -> bool:
        """True for du, and for Sie within a sentence."""
        return marker[0][0] in "Dd" or not may_begin_sentence(marker.string, marker.start())


HYPHEN = "[-\u2010\u2011]"  # the latter two are typographic
NOUNS = rf"(?<![Rr]endez{HYPHEN})(?<![Gg]arde{HYPHEN}à{HYPHEN})"


@RULES.register("fr")
class French(RegisterRule):
    """tu and vous.

    Vous is also the plural of both, so the rule does not suit texts that address groups. Ton is ambiguous ("tone");
    tiens and tienne, mostly verbs, are left out, as is the vous of rendez-vous and garde-à-vous.
    """

    markers = {
        "tu": re.compile(either_case("tu", "te", "toi", "ton", "ta", "tes", "tien") + r"|\b[Tt]['’](?=\w)"),
        "vous": re.compile(NOUNS + either_case("vous", "votre", "vos", "vôtre", "vôtres")),
    }

    def is_unambiguous(self, marker: Match[str]) -> bool:
        """True for all markers but ton."""
        return marker[0].lower() != "ton"


TY = ("ты", "тебя", "тебе", "тобой", "тобою")
TVOJ = ("твой", "твоего", "твоему", "твоим", "твоём", "твоем", "твоя", "твоей", "твоею", "твою", "твоё", "твое")
TVOI = ("твои", "твоих", "твоими")
VY = ("вы", "вас", "вам", "вами")
VASH = ("ваш", "вашего", "вашему", "вашим", "вашем", "ваша", "вашей", "вашею", "вашу", "ваше")
VASHI = ("ваши", "ваших", "вашими")


@RULES.register("ru")
class Russian(RegisterRule):
    """ты and вы, with or without the capital of letters.

    Вы is also the plural of both, so the rule does not suit texts that address groups.
    """

    markers = {
        "ты": re.compile(either_case(*TY, *TVOJ, *TVOI)),
        "вы": re.compile(either_case(*VY, *VASH, *VASHI)),
    }


TU = ("tú", "te", "ti", "contigo", "tu", "tus", "tuyo", "tuya", "tuyos", "tuyas")
VOSOTROS = ("vosotros", "vosotras", "vuestro", "vuestra", "vuestros", "vuestras")
OS = r"|(?<![.\w])[Oo]s\b"  # not n.os, "numbers"
WITH_TE = r"|(?:[ÁÉÍÓÚáéíóú]\w{1,4}[ae]|ándo|éndo)te(?:l[aeo]s?)?\b"


@RULES.register("es")
class Spanish(RegisterRule):
    """tú and usted.

    Su, le and lo are also "his", "her" and "their", so many polite sentences have no marker. Te at the end of a verb is
    found if an accent distinguishes it (tómate, ayudándote), not in ayudarte, which ends like parte. Ustedes,
    in America the plural of both registers, is ambiguous; vosotros is familiar.
    """

    markers = {
        "tú": re.compile(either_case(*TU, *VOSOTROS) + OS + WITH_TE),
        "usted": re.compile(either_case("usted", "ustedes") + r"|\b(?:Uds?|Vds?)\."),
    }

    def is_unambiguous(self, marker: Match[str]) -> bool:
        """True for all markers but the plural of usted."""
        return marker[0].lower() not in ("ustedes", "uds.", "vds.")
