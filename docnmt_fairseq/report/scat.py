"""Reader of SCAT (Yin et al. 2021): ambiguous pronouns with the context words that translators highlighted.

A side has two parallel files, ``PREFIX.LANG`` and ``PREFIX.context.LANG``, the previous sentences on one line. Pronouns
are marked by ``<p>…</p>``, highlighted words by `` <hon>…<hoff> ``, each tag with a space that is not part of the text.
Most highlights are on the French side. The sides are not aligned; if both contexts have the same number of sentences,
these are taken as translations of each other.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

_TAG = re.compile(r"( ?<hon>|</?hoff> ?|</?p>)")
_ENDS = re.compile(r"[.!?…][\"'’”»)\]]*$")

Span = Tuple[int, int]  # of characters


@dataclass(frozen=True)
class Example:
    """Sentence with its previous sentences."""

    sentences: List[List[str]]  # words of each sentence
    pronouns: List[int]  # positions of words with pronouns in the last sentence
    highlighted: List[Tuple[int, Optional[int]]]  # sentence and position of each word; None for words of the target


@dataclass
class Scat:
    """Complete examples of a file, and numbers of others."""

    examples: List[Example] = field(default_factory=list)
    repaired: int = 0  # unbalanced tags, or tags inside a word
    damaged: int = 0  # skipped: fragments of tags
    unmarked: int = 0  # skipped: no pronoun or highlighted word
    unaligned: int = 0  # highlighted target sentences that are not aligned


@dataclass(frozen=True)
class _Marked:
    text: str
    pronouns: List[Span]
    highlighted: List[Span]
    repaired: bool


def read_scat(prefix: Path, source: str, target: str) -> Scat:
    """Reads the examples.

    Args:
        prefix: prefix of the files.
        source: language of the pronouns.
        target: language whose highlighted words count for their sentences; its files are optional.

    Raises:
        InputError: missing files, or different numbers of lines.
    """
    languages = [source, *([target] if Path(f"{prefix}.{target}").is_file() else [])]
    paths = [Path(f"{prefix}{middle}.{language}") for language in languages for middle in (".context", "")]
    texts = [list(read_lines(path)) for path in paths]
    if len({*map(len, texts)}) > 1:
        counts = ", ".join(f"{path} {len(text)}" for path, text in zip(paths, texts))
        raise InputError(f"--scat {prefix}: different numbers of lines: {counts}")
    scat = Scat()
    for lines in zip(*texts):
        marked = [found for found in map(_marked, lines) if found is not None]
        if len(marked) < len(lines):
            scat.damaged += 1
            continue
        found, aligned = _example(*marked)
        scat.unaligned += not aligned
        if found.pronouns and found.highlighted:
            scat.examples.append(found)
            scat.repaired += any(line.repaired for line in marked)
        else:
            scat.unmarked += aligned
    return scat


def _marked(line: str) -> Optional[_Marked]:
    """Line without its tags; None if fragments of tags remain."""
    text, repaired, opened, pronoun = "", False, None, None
    pronouns: List[Span] = []
    highlighted: List[Span] = []
    for part in _TAG.split(line):
        tag = part.strip()
        if tag == "<hon>":
            repaired |= opened is not None
            opened = len(text) if opened is None else opened
        elif tag in ("<hoff>", "</hoff>"):
            repaired |= opened is None
            if opened is not None:
                highlighted.append((opened, len(text)))
            opened = None
        elif tag == "<p>":
            pronoun = len(text)
        elif tag == "</p>":
            if pronoun is not None:
                pronouns.append((pronoun, len(text)))
            pronoun = None
        else:
            text += part
    if "<" in text or ">" in text:
        return None
    if opened is not None:  # not closed: highlights one word
        repaired = True
        highlighted.append((opened, opened + len(text[opened:].split(" ")[0])))
    whole = [span for span in pronouns if not _inside_a_word(text, span)]
    return _Marked(text, whole, highlighted, repaired or len(whole) < len(pronouns))


def _inside_a_word(text: str, span: Span) -> bool:
    start, end = span
    return (start > 0 and text[start - 1].isalnum()) or text[end : end + 1].isalnum()


def _example(before: _Marked, own: _Marked, *target: _Marked) -> Tuple[Example, bool]:
    """Example, and whether the highlighted words of the target are aligned."""
    rows = [*_sentences(list(_words(before))), list(_words(own))]
    highlighted: List[Tuple[int, Optional[int]]] = _highlighted(rows)
    aligned = True
    if target:
        of_target = [*_sentences(list(_words(target[0]))), list(_words(target[1]))]
        marked = _highlighted(of_target)
        aligned = len(of_target) == len(rows) or all(row == len(of_target) - 1 for row, _ in marked)
        last = len(of_target) - 1
        highlighted += [(row if row < last else len(rows) - 1, None) for row, _ in marked if aligned]
    pronouns = [place for place, (_, _, pronoun) in enumerate(rows[-1]) if pronoun]
    return Example([[word for word, _, _ in row] for row in rows], pronouns, highlighted), aligned


def _highlighted(rows: List[List[Tuple[str, bool, bool]]]) -> List[Tuple[int, Optional[int]]]:
    return [(number, place) for number, row in enumerate(rows) for place, (_, marked, _) in enumerate(row) if marked]


def _words(marked: _Marked) -> Iterator[Tuple[str, bool, bool]]:
    """Yields each word, whether it is highlighted, and whether it contains a pronoun."""
    for match in re.finditer(r"\S+", marked.text):
        yield match[0], _covers(match, marked.highlighted), _covers(match, marked.pronouns)


def _covers(word: re.Match[str], spans: List[Span]) -> bool:
    shared = (word.string[max(word.start(), a) : min(word.end(), b)] for a, b in spans)
    return any(character.isalnum() for part in shared for character in part)


def _sentences(words: List[Tuple[str, bool, bool]]) -> Iterator[List[Tuple[str, bool, bool]]]:
    """Yields the words of each sentence; sentences end with . ! ? or …, unless a lower-case letter follows."""
    start = 0
    for place, (word, _, _) in enumerate(words, start=1):
        if place == len(words) or (_ENDS.search(word) and not words[place][0][0].islower()):
            yield words[start:place]
            start = place
