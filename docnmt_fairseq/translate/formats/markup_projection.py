"""Projection of markup onto a translation: divides it into as many pieces as the source sentence has.

Cuts are at word boundaries; at line ends, with their punctuation. A piece that occurs once in the translation (a name,
a number) is found there. A translation with as many words as the source is cut between the same words; others are cut
so that they divide the characters in the same proportion. A piece with words keeps at least one if the translation is
long enough.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from typing import Container, Dict, Iterator, List, Mapping, Sequence, Tuple

# Characters after which a line may end without a space: Han, Hiragana, Katakana.
UNSPACED = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HAN = re.compile(f"[{UNSPACED}]")
CLOSING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u300d\u300f\u30fc!),.:;?\u201d\u2019"
WORD = re.compile(f"[{UNSPACED}][{CLOSING}]*|[^\\s{UNSPACED}]+")
MAX_SEARCHED = 200  # pieces of a sentence; with more, none is searched in the translation

Span = Tuple[int, int]


class Gap(Enum):
    """Kind of a gap between two pieces, which determines the white space around it."""

    OPEN = "start tag: white space stays before it"
    CLOSE = "end tag: white space stays after it"
    OBJECT = "inline object: white space around it stays"
    LINE = "line end within white space: moves with it if a side has no words"
    PART = "separates words without white space, as between two subtitles"


SEPARATORS = (Gap.OBJECT, Gap.PART, Gap.LINE)  # of words
SIGNED = re.compile(r"[-\u2212\u2013]?[^\W_]")  # start of a piece that continues a word: 10<sup>-3</sup>
GLUED = re.compile(r"\w+(?:[-\u2212\u2013]\w+)*")
DASH = r"[-\u2013\u2014]"
# Punctuation after and before an object.
HEAD = re.compile(rf"[^\w\s.!?\u2026\u3002\uff01\uff1f]+(?!\S)|[\"\u201d\u2019\u00bb]+(?=[.!?])|\s+{DASH}(?=\s)")
TAIL = re.compile(rf"(?<!\S)(?:[^\w\s]+|{DASH}\s+)$")
PUNCTUATION = re.compile(r"[^\w\s]+(?!\S)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+")
ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]")
CLOSED = ")]}\u00bb\u201d\u2019\"'"  # punctuation that another one may follow


def cores_of(pieces: Sequence[str], gaps: Sequence[Gap]) -> Iterator[Span]:
    """Yields the span of each piece without surrounding white space and punctuation of objects.

    After an object, punctuation that would follow other punctuation, or nothing, belongs to the object, even if it
    ends the sentence; so does everything between two objects without words and ends of sentences.
    """
    before_objects = _before_objects(pieces, gaps)
    behind, last = False, ""  # an object is before the piece, and the last visible character before it
    for piece, gap, before_object in zip(pieces, [None, *gaps], before_objects):
        behind = behind or gap is Gap.OBJECT
        start, end = 0, len(piece)
        if behind and before_object and not any(map(str.isalnum, piece)) and not ENDS.search(piece):
            start = end
        elif behind:
            loose = not last or not (last.isalnum() or last in CLOSED)
            head = (PUNCTUATION if loose else HEAD).match(piece)
            start = head.end() if head else 0
        if before_object and start < end:
            tail = TAIL.search(piece, start)
            end = tail.start() if tail else end
        core = piece[start:end]
        start += len(core) - len(core.lstrip())
        core = core.strip()
        if core:
            behind, last = False, core[-1]
        yield start, start + len(core)


def _before_objects(pieces: Sequence[str], gaps: Sequence[Gap]) -> List[bool]:
    """Returns for each piece whether an object follows it without text in between."""
    found = [False]
    for piece, gap in zip(pieces[:0:-1], gaps[::-1]):
        found.append(gap is Gap.OBJECT or (found[-1] and not piece))
    return found[::-1]


@dataclass(frozen=True)
class Atoms:
    """Units between which a translation may be cut: words, and punctuation before and after each."""

    spans: List[Span]
    whole: List[int]  # number of atoms before each word with its punctuation, and before the end: where a line may end
    words: List[int]  # number of atoms before each word without punctuation, and before the end
    visible: List[int]  # number of characters before each atom, and before the end, without white space

    @classmethod
    def of(cls, text: str, inside: Container[int] = ()) -> "Atoms":
        """Returns the atoms of a text; ``inside`` are places where a word or the punctuation after it may be cut."""
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
            parts = [start, first, last, end, *(place for place in range(first + 1, end) if place in inside)]
            spans += [(a, b) for a, b in pairwise(sorted(parts)) if a < b]
        visible = list(accumulate((end - start for start, end in spans), initial=0))
        return cls(spans, [*whole, len(spans)], [*words, len(spans)], visible)

    def nearest(self, wanted: float, low: int, high: int, among: Sequence[int]) -> int:
        """Returns the cut with the number of preceding characters nearest to ``wanted``.

        Args:
            wanted: number of characters.
            low, high: range of the cut; if none of ``among`` is in it, the next one.
            among: candidate cuts, ascending.
        """
        first = bisect_left(among, low)
        end = max(bisect_right(among, high), first + 1)
        place = bisect_left(among, wanted, first, end, key=self.visible.__getitem__)
        before, behind = among[max(place - 1, first)], among[min(place, end - 1)]
        return before if wanted - self.visible[before] <= self.visible[behind] - wanted else behind

    def space_at(self, cut: int) -> bool:
        """Returns whether white space is at a cut."""
        return 0 < cut < len(self.spans) and self.spans[cut - 1][1] < self.spans[cut][0]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def project(translation: str, pieces: Sequence[str], gaps: Sequence[Gap]) -> List[str]:
    """Divides the translation of a sentence into as many pieces as the sentence has.

    Args:
        translation: translation of the whole sentence.
        pieces: pieces of the sentence; the first and the last have visible text.
        gaps: gaps between the pieces.
    """
    if len(pieces) == 1:
        return [translation.strip()]
    spans = list(cores_of(pieces, gaps))
    texts = [piece[start:end] for piece, (start, end) in zip(pieces, spans)]
    cores = [number for number, text in enumerate(texts) if text]
    between = [gaps[left:right] for left, right in pairwise(cores)]
    inside = _word_cuts(translation, pieces, cores, between)
    glued = _glued_cores(pieces, cores, between)
    words = [texts[core] for core in cores]
    same = {} if inside else _same_words(translation, words, between, glued)
    atoms = Atoms.of(translation, {*inside.values(), *same.values()})
    if not atoms.spans:
        return [(piece[:start] + piece[end:]).strip() for piece, (start, end) in zip(pieces, spans)]
    cuts = _cuts(translation, atoms, words, between, inside, glued, same)
    projected = ["" for _ in pieces]
    for core, (first, end) in zip(cores, pairwise([0, *cuts, len(atoms.spans)])):
        projected[core] = translation[atoms.spans[first][0] : atoms.spans[end - 1][1]] if first < end else ""
    for (left, right), own, before, cut in zip(pairwise(cores), between, [0, *cuts], cuts):
        source = [pieces[left][spans[left][1] :], *pieces[left + 1 : right], pieces[right][: spans[right][0]]]
        if Gap.OBJECT in own:
            sides = (texts[left], projected[left].rstrip()), (texts[right], projected[right])
            kept = _around_objects(source, own, *sides, 0 < cut < len(atoms.spans))
        else:
            kept = _between_words(source, own, atoms.space_at(cut), 0 < cut < len(atoms.spans) and cut != before)
        projected[left] += kept[0]
        projected[left + 1 : right] = kept[1:-1]
        projected[right] = kept[-1] + projected[right]
    for core, before_it, after_it in zip(cores[1:], between, between[1:]):
        if not projected[core] and Gap.OBJECT in before_it and Gap.OBJECT in after_it and " " in pieces[core]:
            projected[core] = " "  # objects whose words in between are lost do not touch
    return projected


def _glued_cores(pieces: Sequence[str], cores: Sequence[int], gaps: Sequence[Sequence[Gap]]) -> List[int]:
    """Returns the numbers of the cores that continue the word before them."""
    return [
        number
        for number, ((left, right), own) in enumerate(zip(pairwise(cores), gaps), start=1)
        if pieces[left][-1:].isalnum() and SIGNED.match(pieces[right])
        and not any(pieces[left + 1 : right]) and not any(gap in SEPARATORS for gap in own)
    ]  # fmt: skip


def _word_cuts(
    translation: str, pieces: Sequence[str], cores: Sequence[int], gaps: Sequence[Sequence[Gap]]
) -> Dict[int, int]:
    """Returns the places of the cuts inside words that occur unchanged in the translation: m|2, H|2|O.

    Returns:
        number of the core after the cut -> place in the translation; -1 if a word with digits was not found: no other
        word is raised or lowered instead.
    """
    text, starts = "", []
    for number, core in enumerate(cores):
        starts.append(len(text))
        separated = number and any(gap in SEPARATORS for gap in gaps[number - 1])
        text += "\0" + pieces[core] if separated else pieces[core]
    glued = {number: starts[number] for number in _glued_cores(pieces, cores, gaps)}
    found: Dict[int, int] = {}
    for word in GLUED.finditer(text) if glued else ():
        own = {number: start - word.start() for number, start in glued.items() if word.start() < start < word.end()}
        if own:
            alike = re.compile(rf"(?<!\w){re.escape(word[0])}(?!\w)", re.IGNORECASE)
            places = [one.start() for one in alike.finditer(translation)]
            order = sum(1 for _ in alike.finditer(text, 0, word.start()))
            last, size = max(own), len(word[0])
            ends = starts[last] + len(pieces[cores[last]].split()[0]) == word.end()
            fits = len(places) == sum(1 for _ in alike.finditer(text))
            if fits and last + 1 == len(cores) and starts[last] + len(pieces[cores[last]].rstrip()) == word.end():
                fits = not any(map(str.isalnum, translation[places[order] + size :]))
            if fits:
                found.update({number: places[order] + offset for number, offset in own.items()})
                found.update({last + 1: places[order] + size} if ends and last + 1 < len(cores) else {})
            elif any(map(str.isdigit, word[0])):
                found.update(dict.fromkeys(own, -1))
    return found


def _cuts(
    translation: str,
    atoms: Atoms,
    cores: Sequence[str],
    gaps: Sequence[Sequence[Gap]],
    inside: Mapping[int, int],
    glued: Container[int],
    same: Mapping[int, int],
) -> List[int]:
    """Returns the number of atoms before each cut, a cut between every two cores.

    Args:
        translation, atoms, cores, gaps: translation and its atoms, texts of the source and what is between them.
        inside: see :func:`_word_cuts`.
        glued: see :func:`_glued_cores`.
        same: see :func:`_same_words`.
    """
    lost = [inside.get(number) == -1 for number in range(len(cores))]
    sizes = (0 if one else sum(map(len, core.split())) for core, one in zip(cores, lost))
    wanted = list(accumulate(sizes, initial=0))
    wordy = [any(map(str.isalnum, core)) and not one for core, one in zip(cores, lost)]
    line_ends = [Gap.LINE in own or Gap.PART in own for own in gaps]
    among = [
        atoms.whole if line_end else atoms.words if core[0].isalnum() else range(len(atoms.visible))
        for line_end, core in zip(line_ends, cores[1:])
    ]
    unchanged = {} if any(line_ends) else _unchanged_cores(translation, atoms.spans, cores, inside)
    numbers = {end: number for number, (_, end) in enumerate(atoms.spans, start=1)}
    numbers.update((start, number) for number, (start, _) in enumerate(atoms.spans))
    same = {core: numbers[place] for core, place in same.items()}
    if all(same.get(number, cut) == cut for number, cut in unchanged.items()):
        unchanged = {**same, **unchanged}
        if same:
            wordy = [one and number not in glued for number, one in enumerate(wordy)]
    enough = sum(wordy) < len(atoms.whole)
    needs = list(accumulate(wordy if enough else [False for _ in cores], initial=0))
    fixed = {0: 0, **unchanged, len(cores): len(atoms.spans)}
    places = sorted(fixed)
    # A word that is found again must leave the others theirs, and no line ends inside a word.
    if any(needs[b] - needs[a] > fixed[b] - fixed[a] for a, b in pairwise(places)) or (inside and any(line_ends)):
        needs = [0 for _ in needs] if inside else needs
        places = sorted({0, *(inside.keys() & fixed.keys()), len(cores)})
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


def _same_words(
    translation: str, cores: Sequence[str], gaps: Sequence[Sequence[Gap]], glued: Container[int]
) -> Dict[int, int]:
    """Returns the places of cuts between words if the translation has as many words as the source: core -> place.

    Punctuation after a word is divided as in the source.
    """
    counts = [
        sum(any(map(str.isalnum, word)) for word in core.split()) - (number in glued)
        for number, core in enumerate(cores)
    ]
    words = [found for found in WORD.finditer(translation) if any(map(str.isalnum, found[0]))]
    if sum(counts) != len(words) or len(words) != sum(any(map(str.isalnum, word)) for word in translation.split()):
        return {}
    places: Dict[int, int] = {}
    for number, (core, before) in enumerate(zip(cores, accumulate(counts, initial=0))):
        if number == 0 or before == 0 or number in glued:
            continue
        line_end = any(gap in (Gap.LINE, Gap.PART) for gap in gaps[number - 1])
        if any(map(str.isalnum, core.split()[0])) or line_end:
            if counts[number]:
                found = words[before]
                lead = 0 if line_end or not core[0].isalnum() else _punctuation(found[0])
                places[number] = found.start() + lead
        else:  # punctuation after the previous word
            found, last = words[before - 1], cores[number - 1]
            after = _punctuation(found[0][::-1])
            own = _punctuation(last[::-1]) if any(map(str.isalnum, last)) else len(last)
            if own < after or (own == after and counts[number]):
                places[number] = found.end() - after + own
    return places


def _punctuation(text: str) -> int:
    """Returns the number of punctuation marks that a text starts with."""
    return next((number for number, one in enumerate(text) if not _is_punctuation(one)), len(text))


def _unchanged_cores(
    translation: str, atoms: Sequence[Span], cores: Sequence[str], inside: Mapping[int, int]
) -> Dict[int, int]:
    """Returns the cuts around cores that occur once and unchanged in the translation: core -> atoms before it.

    Cuts inside of unchanged words are added.
    """
    if len(cores) > MAX_SEARCHED:
        return {}
    starts = {start: number for number, (start, _) in enumerate(atoms)}
    ends = {end: number + 1 for number, (_, end) in enumerate(atoms)}
    fixed: Dict[int, int] = {}
    behind = 0
    for number, core in enumerate(cores):
        place = inside.get(number, -1)
        cut = starts.get(place, ends.get(place, -1))
        if cut >= max(behind, 1):
            fixed[number] = behind = cut
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
    """Returns white space and punctuation around objects: as in the source if the adjacent text is of the same kind.

    Args:
        source: white space and punctuation of the source before, between and after the gaps.
        gaps: one or more.
        before: text before them, in the source and in the translation.
        after: text after them.
        inside: the translation has words on both sides.
    """
    kept = list(source)
    objects = [number for number, gap in enumerate(gaps) if gap is Gap.OBJECT]
    if not before[1] and not inside:
        kept[: objects[0] + 1] = [text.strip() for text in kept[: objects[0] + 1]]
    elif not any(kept[: objects[0] + 1]) and _is_letter(before[1][-1:]) and not _is_letter(before[0][-1:]):
        kept[0] = " "
    if not after[1] and not inside:
        kept[objects[-1] + 1 :] = [text.strip() for text in kept[objects[-1] + 1 :]]
    elif not any(kept[objects[-1] + 1 :]) and _is_letter(after[1][:1]) and not _is_letter(after[0][:1]):
        kept[-1] = " "
    elif after[1][:1] in CLOSING and after[0][:1] not in CLOSING:
        kept[objects[-1] + 1 :] = [text.strip() for text in kept[objects[-1] + 1 :]]
    return kept


def _is_letter(character: str) -> bool:
    """Returns whether a character needs a space before a word: of Han text none does."""
    return character.isalnum() and not HAN.match(character)


def _between_words(source: Sequence[str], gaps: Sequence[Gap], space: bool, inside: bool) -> List[str]:
    """Returns white space around gaps without objects.

    Args:
        source: white space of the source before, between and after the gaps.
        gaps: one or more.
        space: the translation has white space there.
        inside: words are on both sides, and no other cut is there.
    """
    kept = ["" for _ in source]
    if not inside:
        return kept
    if Gap.LINE in gaps or (space and any(source)):
        return list(source)
    if space and Gap.PART not in gaps:
        kept[next((number for number, gap in enumerate(gaps) if gap is not Gap.CLOSE), len(gaps))] = " "
    return kept
