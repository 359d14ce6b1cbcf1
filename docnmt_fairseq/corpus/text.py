"""Normalisation of sentences, with counts."""

import logging
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Tuple

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.marks import MOST_LEVELS, PARAGRAPH, levels_ended

ON_EMPTY = ("error", "drop")

# Control characters, and format characters without meaning in running text: soft hyphen, zero-width space, direction
# marks, byte order mark; halves of characters, which JSON may hold and no file of text can. The joiners U+200C and
# U+200D spell words in several languages and stay.
INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)
NOTHING = "\u200c\u200d\u2581\ufffd "  # joiners; the mark of SentencePiece and of bad decoding, which it drops

logger = logging.getLogger(__name__)


def normalise(text: str) -> str:
    """The text in NFC, with white space of any kind collapsed and invisible characters removed.

    The result is empty if nothing that can be seen is left.
    """
    if not text.isprintable() or "  " in text:  # else there is nothing to remove within it, as nearly always
        text = " ".join(text.split())  # first: a tab is white space and a control character
        text = " ".join(INVISIBLE.sub("", text).split())
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.strip(" ") if text.strip(NOTHING) else ""


@dataclass
class TextCounts:
    """What passed through :func:`normalise_documents`; ``words`` holds one number a side."""

    documents: int = 0
    paragraphs: int = 0
    sentences: int = 0
    longest_document: int = 0
    dropped_pairs: int = 0
    words: List[int] = field(default_factory=list)
    further_levels: int = 0  # that end with paragraphs

    def add(self, document: Document) -> None:
        """Counts one document."""
        self.documents += 1
        self.paragraphs += len(document.paragraphs)
        self.further_levels += sum(levels - 1 for levels in document.ended)
        self.sentences += len(document)
        self.longest_document = max(self.longest_document, len(document))
        for texts in document.sentences():
            self.words = self.words or [0] * len(texts)
            for side, text in enumerate(texts):
                self.words[side] += text.count(" ") + 1


def normalise_documents(documents: Iterable[Document], on_empty: str, counts: TextCounts) -> Iterator[Document]:
    """Yields the documents with every sentence normalised, and counts them.

    Args:
        documents: from a reader.
        on_empty: "error", or "drop" to leave out a sentence of which a side has no visible character.
        counts: added to.

    Raises:
        InputError: an empty sentence (unless dropped), or one that would read as a mark; names file and line.
    """
    for document in documents:
        kept = _normalise_document(document, on_empty, counts)
        if kept.paragraphs:
            counts.add(kept)
            yield kept


def _normalise_document(document: Document, on_empty: str, counts: TextCounts) -> Document:
    """The document normalised; paragraphs of which nothing is left are left out."""
    kept: List[List[Tuple[str, ...]]] = []
    ended: List[int] = []
    levels = 0  # that ended since what was kept last
    for p, paragraph in enumerate(document.paragraphs):
        sentences: List[Tuple[str, ...]] = []
        levels = max(levels, document.levels_before(p))
        for s, raw in enumerate(paragraph):
            texts = tuple(map(normalise, raw))
            if any(map(_is_none, texts)):
                _refuse_mark(document, p, s, texts)
                if on_empty != "drop":
                    side = texts.index("")
                    raise document.error(
                        p, s, side, "nothing is left of this sentence; mend it, or use --on-empty drop"
                    )
                counts.dropped_pairs += 1
                continue
            sentences.append(texts)
        if sentences:
            ended += [levels] if kept else []
            kept.append(sentences)
            levels = 0
    return Document(kept, document.files, ended=ended)


def _is_none(text: str) -> bool:
    """Whether a normalised text is no sentence: empty, a mark, or meant as one."""
    return not text or (text.startswith(PARAGRAPH) and not text.replace(PARAGRAPH, "").strip())


def _refuse_mark(document: Document, paragraph: int, sentence: int, texts: Tuple[str, ...]) -> None:
    for side, text in enumerate(texts):
        if text and _is_none(text):
            message = f"a sentence that is exactly {text} would read as a paragraph boundary; change or remove it"
            if not levels_ended(text):
                message = f"{text}: no mark: as many {PARAGRAPH} as levels end, at most {MOST_LEVELS}, a space between"
            raise document.error(paragraph, sentence, side, message)
