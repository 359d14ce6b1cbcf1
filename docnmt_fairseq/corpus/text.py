"""Normalisation of sentences and documents, with counts."""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Tuple

from docnmt_fairseq.boundaries import MAX_LEVELS, PARAGRAPH
from docnmt_fairseq.corpus.document import Document

ON_EMPTY = ("error", "drop")

# Control characters, format characters without meaning in running text (soft hyphen, zero-width space, direction marks,
# byte order mark), and surrogates. The joiners U+200C and U+200D are used in the spelling of some languages and kept.
INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)
NON_JOINER = "\u200c"
# Text of only these characters is blank: joiners, fillers, variation selectors, and what SentencePiece drops.
NOTHING = "\u200c\u200d\u2581\ufffd\u034f\u115f\u1160\u2800\u3164\uffa0\ufe0e\ufe0f "


def normalise(text: str) -> str:
    """Normalises to NFC, collapses white space and removes invisible characters.

    The result is empty if no visible character is left.
    """
    if not text.isprintable() or "  " in text:  # otherwise there is nothing to remove inside the text
        text = " ".join(text.split())  # first, because a tab is white space and a control character
        text = " ".join(INVISIBLE.sub("", text).split())
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.strip(" ") if text.strip(NOTHING) else ""


def is_blank(line: str) -> bool:
    """Returns whether :func:`normalise` leaves nothing of a line."""
    return not line.strip(NOTHING) or (not line.isprintable() and not normalise(line))


@dataclass
class TextCounts:
    """Counts of the documents that :func:`normalise_documents` yielded; lists have one number per side."""

    documents: int = 0
    paragraphs: int = 0
    sentences: int = 0
    longest_document: int = 0
    dropped_pairs: int = 0
    words: List[int] = field(default_factory=list)
    further_levels: int = 0  # levels above the paragraph that end with paragraphs
    non_joiners: List[int] = field(default_factory=list)  # zero-width non-joiners, which models may replace

    def add(self, document: Document) -> None:
        """Adds one document."""
        self.documents += 1
        self.paragraphs += len(document.paragraphs)
        self.further_levels += sum(levels - 1 for levels in document.ended)
        self.sentences += len(document)
        self.longest_document = max(self.longest_document, len(document))
        for texts in document.sentences():
            self.words, self.non_joiners = self.words or [0] * len(texts), self.non_joiners or [0] * len(texts)
            for side, text in enumerate(texts):
                self.words[side] += text.count(" ") + 1
                self.non_joiners[side] += text.count(NON_JOINER)


def normalise_documents(documents: Iterable[Document], on_empty: str, counts: TextCounts) -> Iterator[Document]:
    """Yields the documents with every sentence normalised; documents without sentences are left out."""
    for document in documents:
        kept = _normalise_document(document, on_empty, counts)
        if kept.paragraphs:
            counts.add(kept)
            yield kept


def _normalise_document(document: Document, on_empty: str, counts: TextCounts) -> Document:
    kept: List[List[Tuple[str, ...]]] = []
    ended: List[int] = []
    levels = 0  # levels that ended since the last paragraph that was kept
    for p, paragraph in enumerate(document.paragraphs):
        sentences: List[Tuple[str, ...]] = []
        levels = max(levels, document.levels_before(p))
        for s, raw in enumerate(paragraph):
            texts = tuple(map(normalise, raw))
            for side, text in enumerate(texts):
                if text.startswith(PARAGRAPH) and not text.replace(PARAGRAPH, "").strip():
                    message = (
                        f"{text}: a sentence of {PARAGRAPH} only; boundaries are 1 to {MAX_LEVELS} of them on a line"
                    )
                    raise document.error(p, s, side, message)
            if all(texts):
                sentences.append(texts)
            elif on_empty == "drop":
                counts.dropped_pairs += 1
            else:
                message = "no visible character in this sentence; correct it, or use --on-empty drop"
                raise document.error(p, s, texts.index(""), message)
        if sentences:
            ended += [levels] if kept else []
            kept.append(sentences)
            levels = 0
    return Document(kept, document.files, ended=ended)
