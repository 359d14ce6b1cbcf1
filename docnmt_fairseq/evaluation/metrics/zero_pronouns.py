"""Accuracy of the English translations of zero pronouns, aZPT.

Source: [X] M. Xu, L. Wang, D. Wong, H. Liu, L. Song, L. Chao, S. Shi and Z. Tu, GuoFeng: A Benchmark for Zero Pronoun
Recovery and Translation, EMNLP 2022, whose published counts on its test set of subtitles are reproduced with the same
alignments.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, ClassVar, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, MetricOptions, Statistics
from docnmt_fairseq.evaluation.metrics.pronouns import AccuracyByPronoun
from docnmt_fairseq.evaluation.texts import References, Stream, rows_by_line, segments
from docnmt_fairseq.evaluation.words import SPACED, UNSPACED, Words, align, aligner, aligner_version
from docnmt_fairseq.options import option

ROLES = ("S", "O", "Pa", "P", "R")  # subject, object, possessive before a noun and alone, reflexive
FORMS = {
    "我": ("i", "me", "my", "mine", "myself"),
    "你": ("you", "you", "your", "yours", "yourself"),
    "他": ("he", "him", "his", "his", "himself"),
    "她": ("she", "her", "her", "hers", "herself"),
    "它": ("it", "it", "its", "its", "itself"),
    "我们": ("we", "us", "our", "ours", "ourselves"),
    "你们": ("you", "you", "your", "yours", "yourselves"),
    **dict.fromkeys(("他们", "她们", "它们"), ("they", "them", "their", "theirs", "themselves")),
}
THIRD_PERSON = re.compile("[他她它]们?")
# Words of both languages: characters of scripts without spaces, other words, contracted words ('s), single signs.
WORDS = re.compile(rf"(?<=\w)['’]{SPACED}+|[{UNSPACED}]|{SPACED}+|[^\w\s]")
BEFORE, AFTER = 2, 3  # words around an aligned word in which the pronoun is accepted

Links = Mapping[int, Sequence[int]]  # target positions of each aligned source position


class Mark(NamedTuple):
    """Zero pronoun: position in the characters of the source sentence, the pronoun, and its English translation."""

    position: int
    pronoun: str
    form: str
    subject: str  # form as a subject, the class in reports


@dataclass(frozen=True)
class ZeroPronounOptions(MetricOptions):
    """Options of the accuracy of zero pronouns."""

    zero_pronouns: str = option(
        "",
        f"rows LINE<TAB>POSITION<TAB>PRONOUN<TAB>ROLE ({', '.join(ROLES)}) of Chinese pronouns; lines and characters "
        "of the source from 0; requires --source",
        metavar="FILE",
        by_line=True,
    )
    alignments: Sequence[str] = option(
        (),
        "word alignments of systems instead of those by eflomal: links I-J, per line of the reference, between the "
        "source with its zero pronouns and the translation, both tokenised",
        metavar="SYSTEM=FILE",
    )


@METRICS.register("zero-pronouns")
class ZeroPronouns(AccuracyByPronoun):
    """Percentage of marked zero pronouns that are translated by the expected English form, aZPT [X].

    The pronouns are inserted into the source, which is aligned with the translation. The form must be among the words
    aligned with the pronoun, up to two before or three after these; for an unaligned pronoun, between the translation
    of the previous aligned word and the end of the sentence. Case is ignored. Accuracy is reported for each pronoun.

    By default the aligner is trained on the translation and the references, as in ``lexical-consistency``.
    """

    title = "aZPT"
    help = "translation of Chinese zero pronouns, with --zero-pronouns FILE --source FILE (program eflomal, GPL-3)"
    Options = ZeroPronounOptions
    options: ZeroPronounOptions
    enabled_by = "zero_pronouns"
    needs_source = True
    parts: ClassVar[Tuple[str, ...]] = tuple(dict.fromkeys(forms[0] for forms in FORMS.values()))

    def __init__(self, test_set: References, options: ZeroPronounOptions):
        super().__init__(test_set, options)
        self.files = {name: Path(file) for name, _, file in (pair.partition("=") for pair in options.alignments)}
        if not self.files:
            aligner()  # fails before other metrics are computed
        self.marks = read_marks(Path(options.zero_pronouns), test_set)

    def system_statistics(self, name: str, translation: Stream) -> Statistics:
        """:meth:`statistics` with the given alignment of the system."""
        if not self.files:
            return self.statistics(translation)
        lines = list(read_lines(self.files[name]))
        numbers = [number for document in self.test_set.lines for number in document]
        target = [text.lower().split() for text in segments(translation)]
        return self._rows(self._source(str.split), target, [read_links(lines[number - 1]) for number in numbers])

    def statistics(self, translation: Stream) -> Statistics:
        """Correct and marked zero pronouns of each sentence, in total and by pronoun."""
        source = self._source(WORDS.findall)
        target, *references = (
            [WORDS.findall(text.lower()) for text in segments(stream)]
            for stream in (translation, *self.test_set.streams)
        )
        words = [words for words, _ in source]
        found = align(words * (1 + len(references)), sum(references, target))
        return self._rows(source, target, [{i: [j] for i, j in links.items()} for links in found[: len(source)]])

    def _source(self, split: Callable[[str], List[str]]) -> List[Tuple[Words, List[range]]]:
        return [with_pronouns(*pair, split) for pair in zip(segments(self.test_set.source or []), self.marks)]

    def _rows(
        self, source: List[Tuple[Words, List[range]]], target: List[List[str]], links: Sequence[Links]
    ) -> Statistics:
        return [
            self.row(
                (mark.subject, mark.form in candidates(words, of_sentence, place)) for mark, place in zip(marks, at)
            )
            for (_, at), marks, words, of_sentence in zip(source, self.marks, target, links)
        ]

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature with the aligner."""
        return super().format_signature({"aligner": "given" if self.files else aligner_version(), **details})


def english(pronoun: str, role: str) -> Optional[Tuple[str, str]]:
    """Returns the English form of a Chinese pronoun in a role, and its form as a subject; None without one.

    The third person without 的 in a possessive role is an object (of a preposition), as in the published counts of [X].
    """
    base = re.sub("(自己)?的?$", "", pronoun.replace("們", "们"))
    if base not in FORMS or role not in ROLES:
        return None
    if role in ("Pa", "P") and THIRD_PERSON.fullmatch(pronoun):
        role = "O"
    return FORMS[base][ROLES.index(role)], FORMS[base][0]


def read_marks(path: Path, test_set: References) -> List[List[Mark]]:
    """Zero pronouns of each sentence by position; pronouns and roles without an English form are skipped.

    Raises:
        InputError: a malformed row, or none with an English form.
    """
    marks: List[List[Mark]] = [[] for _ in range(test_set.sentences)]
    for row, sentence, columns in rows_by_line(path, test_set):
        if len(columns) != 3 or not columns[0].isdecimal():
            raise InputError.at(path, row, "expected LINE<TAB>POSITION<TAB>PRONOUN<TAB>ROLE")
        position, pronoun, role = columns
        if forms := english(pronoun, role):
            marks[sentence].append(Mark(int(position), pronoun, *forms))
    if not any(marks):
        raise InputError(f"{path}: no pronoun with an English form and a role ({', '.join(ROLES)})")
    return [sorted(of_sentence, key=lambda mark: mark.position) for of_sentence in marks]


def with_pronouns(
    sentence: str, marks: Sequence[Mark], split: Callable[[str], List[str]]
) -> Tuple[List[str], List[range]]:
    """Words of a source sentence with its zero pronouns, and the positions of these."""
    words: List[str] = []
    places = []
    start = 0
    for mark in marks:
        words += split(sentence[start : mark.position])
        pronoun = split(mark.pronoun)
        places.append(range(len(words), len(words) + len(pronoun)))
        words += pronoun
        start = mark.position
    return words + split(sentence[start:]), places


def candidates(words: Words, links: Links, place: range) -> Words:
    """Words of a translation that may translate the source words at ``place``; see :class:`ZeroPronouns`."""
    own = [target for source in place for target in links.get(source, ())]
    if own:
        return [word for target in own for word in words[max(0, target - BEFORE) : target + AFTER + 1]]
    previous = max((source for source in links if source < place.start), default=None)
    start = 0 if previous is None else min(links[previous])
    # The published counts leave out the last word, mostly a full stop, if no later source word is aligned.
    return words[start:] if any(source >= place.stop for source in links) else words[start:-1]


def read_links(line: str) -> Dict[int, List[int]]:
    """Target positions by source position from links I-J."""
    links: Dict[int, List[int]] = {}
    for link in line.split():
        source, target = map(int, link.split("-"))
        links.setdefault(source, []).append(target)
    return links
