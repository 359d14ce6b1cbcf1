"""What extra sources a sentence has beside itself, as ``--extra-sources`` names them."""

from dataclasses import dataclass
from typing import List, Optional

from docnmt_fairseq.batch.context_sentences import CONTEXT_SELECTIONS
from docnmt_fairseq.errors import InputError

NONE = "none"
OPTION = "--extra-sources"
FORMS = "previous[:N], next[:N], random[:N], random-each-epoch[:N], similar[:N], training-set[:N]"
FORMS += ", text:SUFFIX, features:NAME"


@dataclass(frozen=True)
class SourceSpec:
    """One extra source.

    Attributes:
        kind: a selection of context sentences, ``text`` or ``features``.
        name: of the text or the features.
        contexts: N context sentences, 0 for text and features.
    """

    kind: str
    name: str = ""
    contexts: int = 0

    @property
    def of_document(self) -> bool:
        """Whether the document holds it; all else is data of its own."""
        return self.kind in CONTEXT_SELECTIONS

    def __str__(self) -> str:
        return f"{self.kind}:{self.contexts if self.of_document else self.name}"


def parse_specs(text: Optional[str]) -> List[SourceSpec]:
    """The extra sources that an option names, in its order; none of None and "none".

    Raises:
        InputError: an unknown kind, a missing name, a number of sentences below 1, one source twice.
    """
    if text in (None, "", NONE):
        return []
    specs = [_parse(part.strip()) for part in text.split(",")]
    twice = next((spec for number, spec in enumerate(specs) if spec in specs[:number]), None)
    if twice is not None:
        raise InputError(f"{OPTION} {text}: {twice} is there twice")
    return specs


def _parse(part: str) -> SourceSpec:
    kind, colon, argument = part.partition(":")
    if kind in CONTEXT_SELECTIONS:
        if colon and not (argument.isdecimal() and int(argument) > 0):
            raise InputError(f"{OPTION} {part}: {argument or 'nothing'} is no number of sentences; at least 1")
        return SourceSpec(kind, contexts=int(argument or 1))
    if kind not in ("text", "features") or not argument:
        raise InputError(f"{OPTION} {part}: must be of {FORMS}")
    return SourceSpec(kind, argument)
