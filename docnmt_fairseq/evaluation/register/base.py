"""The contract of the rules that tell the register of a line, and the registry of languages.

Register is what sociolinguistics calls T and V, after tu and vos (Brown and Gilman 1960): the familiar and the polite
second person. The words that mark it are few, so a rule is lists of them. Imperatives without a pronoun, and verbs
alone where a language drops pronouns, show nothing to such a rule.
"""

import re
from abc import ABC
from typing import ClassVar, Mapping, Match, Optional, Pattern, Set

from docnmt_fairseq.registry import Registry


class RegisterRule(ABC):
    """Contract: ``marks`` by register, and ``is_sure`` where a mark may mean something else.

    A rule has two strictnesses. Labels, and what a document keeps to, are read from sure marks alone. A translation is
    asked which register it shows at all: where it has no sure mark, the others count.

    Class attributes:
        marks: by register, the familiar one first, what only that register has.
    """

    marks: ClassVar[Mapping[str, Pattern[str]]]

    def is_sure(self, mark: Match[str]) -> bool:
        """Whether a mark that was found in a line (``mark.string``) can mean nothing else."""
        return True

    def register_of(self, line: str, *, sure_only: bool = False) -> Optional[str]:
        """One of the registers, or None where a line has no mark, or those of both.

        Args:
            line: a sentence, as it is written.
            sure_only: only sure marks count; otherwise others count where there is no sure one.
        """
        sure: Set[str] = set()
        unsure: Set[str] = set()
        for register, words in self.marks.items():
            for mark in words.finditer(line):
                (sure if self.is_sure(mark) else unsure).add(register)
        shown = sure if sure or sure_only else unsure
        return shown.pop() if len(shown) == 1 else None


RULES: Registry[RegisterRule] = Registry("register rule")


def either_case(*words: str) -> str:
    """A regular expression of whole words, the first letter of each in either case.

    Not all in capitals: such words are abbreviations more often.
    """
    return rf"\b(?:{'|'.join(f'[{word[0].upper()}{word[0].lower()}]{re.escape(word[1:])}' for word in words)})\b"
