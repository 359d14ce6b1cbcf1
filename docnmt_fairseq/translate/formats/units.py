"""Units of text with markup in them, and how a translation is laid over the pieces between the marks of markup.

A unit is pieces of text with gaps between them: a tag, a line end, the next subtitle. What stands in a gap is the
format's affair and is never shown to the model. A translation has as many pieces as the original, so that each gap is
there once, in the same order: tags stay paired and nested.

Where a translation is cut: at words. A piece that stands in the translation word for word (a name, a number) is found
there; every other cut is where the same share of the characters lies before it. A piece that has words keeps at least
one, as long as there are enough.
"""

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, pairwise
from typing import Dict, List, Sequence, Tuple


class Gap(Enum):
    """What is between two pieces, and what white space does there."""

    OPEN = "the beginning of marked text: white space stands before it"
    CLOSE = "the end of marked text: white space stands after it"
    OBJECT = "something by itself: the white space around it stays"
    LINE = "a line end, which the white space holds: goes with it where no word is left on a side"
    PART = "a place that parts words without white space, as between two subtitles"


@dataclass(frozen=True)
class Unit:
    """Text that is translated for itself: a paragraph, heading, cell, run of subtitles.

    Attributes:
        pieces: the text between the gaps.
        gaps: one fewer than pieces.
        new_paragraph: whether a paragraph begins with it.
        whole_words: punctuation stays with its word, as fits line ends but not tags.
    """

    pieces: List[str]
    gaps: List[Gap] = field(default_factory=list)
    new_paragraph: bool = True
    whole_words: bool = False


# Characters of which each may stand at the end of a line, though no space follows: Han, Hiragana, Katakana.
UNSPACED = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
CLOSING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u300d\u300f\u30fc!),.:;?\u201d\u2019"
ATOM = re.compile(f"[{UNSPACED}][{CLOSING}]*|[^\\s{UNSPACED}]+")

Span = Tuple[int, int]


def lay(translation: str, pieces: Sequence[str], gaps: Sequence[Gap], whole_words: bool = False) -> List[str]:
    """The translation of a sentence in as many pieces as the sentence.

    Args:
        translation: of all of them.
        pieces: of the sentence; the first and the last have visible text.
        gaps: between them.
        whole_words: see :class:`Unit`.
    """
    cores = [number for number, piece in enumerate(pieces) if piece.strip()]
    atoms = atoms_of(translation, whole_words)
    if not atoms:
        return [translation.strip(), *("" for _ in pieces[1:])]
    cuts = _cuts(translation, atoms, [pieces[core].strip() for core in cores])
    laid = ["" for _ in pieces]
    for core, first, end in zip(cores, [0, *cuts], [*cuts, len(atoms)]):
        laid[core] = translation[atoms[first][0] : atoms[end - 1][1]] if first < end else ""
    before = 0
    for left, right, cut in zip(cores, cores[1:], cuts):
        inside = 0 < cut < len(atoms) and cut != before
        space = inside and atoms[cut - 1][1] < atoms[cut][0]
        source = [_end(pieces[left]), *pieces[left + 1 : right], _start(pieces[right])]
        kept = _white_space(source, gaps[left:right], space, inside, cut > 0, cut < len(atoms))
        laid[left] += kept[0]
        laid[left + 1 : right] = kept[1:-1]
        laid[right] = kept[-1] + laid[right]
        before = cut
    return laid


def atoms_of(text: str, whole_words: bool) -> List[Span]:
    """What a text may be cut between: words, and unless they are to be whole the punctuation around them."""
    atoms: List[Span] = []
    for found in ATOM.finditer(text):
        start, end = found.span()
        if not whole_words:
            first, last = start, end
            while first < end and _is_punctuation(text[first]):
                first += 1
            while last > first and _is_punctuation(text[last - 1]):
                last -= 1
            if first < last:
                atoms += [(a, b) for a, b in ((start, first), (first, last), (last, end)) if a < b]
                continue
        atoms.append((start, end))
    return atoms


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _cuts(translation: str, atoms: Sequence[Span], cores: Sequence[str]) -> List[int]:
    """The number of atoms before each cut, a cut between every two cores."""
    visible = list(accumulate((end - start for start, end in atoms), initial=0))  # characters before each atom
    wanted = list(accumulate((sum(map(len, core.split())) for core in cores), initial=0))
    wordy = [any(map(str.isalnum, core)) for core in cores]
    needs = list(accumulate(wordy if sum(wordy) <= len(atoms) else [False for _ in cores], initial=0))
    fixed = {0: 0, **_found_again(translation, atoms, cores), len(cores): len(atoms)}
    # A word that is found again must leave the others theirs.
    places = sorted(fixed)
    if any(needs[b] - needs[a] > fixed[b] - fixed[a] for a, b in pairwise(places)):
        places = [0, len(cores)]
    cuts: List[int] = []
    for begin, end in pairwise(places):
        scale = (visible[fixed[end]] - visible[fixed[begin]]) / max(wanted[end] - wanted[begin], 1)
        last = fixed[begin]
        for core in range(begin + 1, end):
            low = last + needs[core] - needs[core - 1]
            high = max(low, fixed[end] - (needs[end] - needs[core]))
            place = visible[fixed[begin]] + (wanted[core] - wanted[begin]) * scale
            last = _nearest(visible, place, low, high)
            cuts.append(last)
        if end < len(cores):
            cuts.append(fixed[end])
    return cuts


def _nearest(numbers: Sequence[int], wanted: float, low: int, high: int) -> int:
    """The place in a rising row, between two others, of the number nearest to what is wanted."""
    place = bisect_left(numbers, wanted, low, high + 1)
    if place > low and (place > high or wanted - numbers[place - 1] <= numbers[place] - wanted):
        place -= 1
    return place


def _found_again(translation: str, atoms: Sequence[Span], cores: Sequence[str]) -> Dict[int, int]:
    """Cuts before and after cores that stand in the translation as they are, once: core -> atoms before it."""
    starts = {start: number for number, (start, _) in enumerate(atoms)}
    ends = {end: number + 1 for number, (_, end) in enumerate(atoms)}
    fixed: Dict[int, int] = {}
    behind = 0
    for number, core in enumerate(cores):
        if len(core) < 2 or cores.count(core) > 1 or not any(map(str.isalnum, core)):
            continue
        place = translation.find(core)
        first, end = starts.get(place), ends.get(place + len(core))
        if first is None or end is None or first < behind or translation.find(core, place + 1) >= 0:
            continue
        if not (number == 0 and first > 0) and not (number == len(cores) - 1 and end < len(atoms)):
            fixed[number], fixed[number + 1] = first, end
            behind = end
    fixed.pop(0, None)
    fixed.pop(len(cores), None)
    return fixed


def _white_space(
    source: Sequence[str], gaps: Sequence[Gap], space: bool, inside: bool, left: bool, right: bool
) -> List[str]:
    """The white space around the gaps of a cut.

    Args:
        source: that of the original, before, between and after the gaps.
        gaps: one or more.
        space: whether the translation has some there.
        inside: whether words stand on both sides, and no other cut is there.
        left, right: whether words of the translation stand before and after.
    """
    none = ["" for _ in source]
    objects = [number for number, gap in enumerate(gaps) if gap is Gap.OBJECT]
    if objects:
        first, last = objects[0], objects[-1]
        return [
            text if (left or number > first) and (right or number <= last) else "" for number, text in enumerate(source)
        ]
    if not inside:
        return none
    if Gap.LINE in gaps or (space and any(source)):
        return list(source)
    if space and Gap.PART not in gaps:
        number = next((n for n, gap in enumerate(gaps) if gap is not Gap.CLOSE), len(gaps))
        none[number] = " "
    return none


def _start(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _end(text: str) -> str:
    return text[len(text.rstrip()) :]
