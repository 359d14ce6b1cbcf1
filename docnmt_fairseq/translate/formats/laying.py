"""How a translation is laid over the pieces of a sentence.

It is cut at words; at line ends with their punctuation. A piece that stands in the translation word for word (a name, a
number) is found there; every other cut is where the same share of the characters lies before it. A piece that has words
keeps at least one, as long as there are enough.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Dict, List, Sequence, Tuple

from docnmt_fairseq.translate.formats.units import Gap, Span, cores_of

# Characters of which each may stand at the end of a line, though no space follows: Han, Hiragana, Katakana.
UNSPACED = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
CLOSING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u300d\u300f\u30fc!),.:;?\u201d\u2019"
WORD = re.compile(f"[{UNSPACED}][{CLOSING}]*|[^\\s{UNSPACED}]+")
MANY = 200  # pieces of a sentence, from which on they are not looked for


@dataclass(frozen=True)
class Atoms:
    """What a translation may be cut between: words, and the punctuation before and after each.

    Attributes:
        spans: of the atoms.
        whole: how many of them stand before each word with its punctuation, and before the end: where a line may end.
        words: how many of them stand before each word without it, and before the end.
        visible: the characters before each atom, and before the end, white space aside.
    """

    spans: List[Span]
    whole: List[int]
    words: List[int]
    visible: List[int]

    @classmethod
    def of(cls, text: str) -> "Atoms":
        """Those of a text."""
        spans: List[Span] = []
        whole, words = [], []
        for found in WORD.finditer(text):
            whole.append(len(spans))
            first, last = start, end = found.span()
            while first < end and _is_punctuation(text[first]):
                first += 1
            while last > first and _is_punctuation(text[last - 1]):
                last -= 1
            words.append(len(spans) + int(start < first < end))
            spans += [(a, b) for a, b in ((start, first), (first, last), (last, end)) if a < b]
        visible = list(accumulate((end - start for start, end in spans), initial=0))
        return cls(spans, [*whole, len(spans)], [*words, len(spans)], visible)

    def nearest(self, wanted: float, low: int, high: int, among: Sequence[int]) -> int:
        """The cut before which the number of characters is nearest to what is wanted.

        Args:
            wanted: characters.
            low, high: two cuts that it lies between; where none of ``among`` does, it is the next one behind.
            among: the cuts to choose from, rising.
        """
        first = bisect_left(among, low)
        end = max(bisect_right(among, high), first + 1)
        place = bisect_left(among, wanted, first, end, key=self.visible.__getitem__)
        before, behind = among[max(place - 1, first)], among[min(place, end - 1)]
        return before if wanted - self.visible[before] <= self.visible[behind] - wanted else behind

    def space_at(self, cut: int) -> bool:
        """Whether white space is at a cut."""
        return 0 < cut < len(self.spans) and self.spans[cut - 1][1] < self.spans[cut][0]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def lay(translation: str, pieces: Sequence[str], gaps: Sequence[Gap]) -> List[str]:
    """The translation of a sentence in as many pieces as the sentence.

    Args:
        translation: of all of them.
        pieces: of the sentence; the first and the last have visible text.
        gaps: between them.
    """
    if len(pieces) == 1:
        return [translation.strip()]
    atoms = Atoms.of(translation)
    spans = list(cores_of(pieces, gaps))
    if not atoms.spans:
        return [(piece[:start] + piece[end:]).strip() for piece, (start, end) in zip(pieces, spans)]
    texts = [piece[start:end] for piece, (start, end) in zip(pieces, spans)]
    cores = [number for number, text in enumerate(texts) if text]
    between = [gaps[left:right] for left, right in pairwise(cores)]
    cuts = _cuts(translation, atoms, [texts[core] for core in cores], between)
    laid = ["" for _ in pieces]
    for core, (first, end) in zip(cores, pairwise([0, *cuts, len(atoms.spans)])):
        laid[core] = translation[atoms.spans[first][0] : atoms.spans[end - 1][1]] if first < end else ""
    for (left, right), own, before, cut in zip(pairwise(cores), between, [0, *cuts], cuts):
        source = [pieces[left][spans[left][1] :], *pieces[left + 1 : right], pieces[right][: spans[right][0]]]
        if Gap.OBJECT in own:
            sides = (texts[left], laid[left].rstrip()), (texts[right], laid[right])
            kept = _around_objects(source, own, *sides, 0 < cut < len(atoms.spans))
        else:
            kept = _between_words(source, own, atoms.space_at(cut), 0 < cut < len(atoms.spans) and cut != before)
        laid[left] += kept[0]
        laid[left + 1 : right] = kept[1:-1]
        laid[right] = kept[-1] + laid[right]
    return laid


def _cuts(translation: str, atoms: Atoms, cores: Sequence[str], gaps: Sequence[Sequence[Gap]]) -> List[int]:
    """The number of atoms before each cut, a cut between every two cores."""
    wanted = list(accumulate((sum(map(len, core.split())) for core in cores), initial=0))
    wordy = [any(map(str.isalnum, core)) for core in cores]
    line_ends = [Gap.LINE in own or Gap.PART in own for own in gaps]
    among = [
        atoms.whole if line_end else atoms.words if core[0].isalnum() else range(len(atoms.visible))
        for line_end, core in zip(line_ends, cores[1:])
    ]
    enough = sum(wordy) < len(atoms.whole)
    needs = list(accumulate(wordy if enough else [False for _ in cores], initial=0))
    fixed = {0: 0, **_found_again(translation, atoms.spans, cores), len(cores): len(atoms.spans)}
    places = sorted(fixed)
    # A word that is found again must leave the others theirs, and no line ends inside a word.
    if any(needs[b] - needs[a] > fixed[b] - fixed[a] for a, b in pairwise(places)) or any(line_ends):
        places = [0, len(cores)]
    cuts: List[int] = []
    for begin, end in pairwise(places):
        scale = (atoms.visible[fixed[end]] - atoms.visible[fixed[begin]]) / max(wanted[end] - wanted[begin], 1)
        last = fixed[begin]
        for core in range(begin + 1, end):
            low = min(last + needs[core] - needs[core - 1], fixed[end])
            high = max(low, fixed[end] - (needs[end] - needs[core]))
            place = atoms.visible[fixed[begin]] + (wanted[core] - wanted[begin]) * scale
            last = min(atoms.nearest(place, low, high, among[core - 1]), fixed[end])
            cuts.append(last)
        if end < len(cores):
            cuts.append(fixed[end])
    return cuts


def _found_again(translation: str, atoms: Sequence[Span], cores: Sequence[str]) -> Dict[int, int]:
    """Cuts before and after cores that stand in the translation as they are, once: core -> atoms before it."""
    if len(cores) > MANY:
        return {}
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


def _around_objects(
    source: Sequence[str], gaps: Sequence[Gap], before: Tuple[str, str], after: Tuple[str, str], inside: bool
) -> List[str]:
    """What stands around objects, white space and punctuation: as in the original, where what is beside it is alike.

    Args:
        source: the original's, before, between and after the gaps.
        gaps: one or more.
        before: what stands before them, in the original and in the translation.
        after: what stands after them.
        inside: whether the translation has words on both sides.
    """
    kept = list(source)
    objects = [number for number, gap in enumerate(gaps) if gap is Gap.OBJECT]
    if not before[1] and not inside:
        kept[: objects[0] + 1] = [text.strip() for text in kept[: objects[0] + 1]]
    elif not any(kept[: objects[0] + 1]) and before[1][-1:].isalnum() and not before[0][-1:].isalnum():
        kept[0] = " "
    if not after[1] and not inside:
        kept[objects[-1] + 1 :] = [text.strip() for text in kept[objects[-1] + 1 :]]
    elif not any(kept[objects[-1] + 1 :]) and after[1][:1].isalnum() and not after[0][:1].isalnum():
        kept[-1] = " "
    elif after[1][:1] in CLOSING and after[0][:1] not in CLOSING:
        kept[objects[-1] + 1 :] = [text.strip() for text in kept[objects[-1] + 1 :]]
    return kept


def _between_words(source: Sequence[str], gaps: Sequence[Gap], space: bool, inside: bool) -> List[str]:
    """The white space around gaps without objects.

    Args:
        source: the original's, before, between and after the gaps.
        gaps: one or more.
        space: whether the translation has some there.
        inside: whether words stand on both sides, and no other cut is there.
    """
    kept = ["" for _ in source]
    if not inside:
        return kept
    if Gap.LINE in gaps or (space and any(source)):
        return list(source)
    if space and Gap.PART not in gaps:
        kept[next((number for number, gap in enumerate(gaps) if gap is not Gap.CLOSE), len(gaps))] = " "
    return kept
