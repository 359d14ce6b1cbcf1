"""Files of every format, and translators that stand in for a model."""

import io

from docnmt_fairseq.translate.formats import FORMATS, Reading
from docnmt_fairseq.translate.lines import TranslatedLine


def same(sentence):
    """The sentence itself."""
    return sentence


def backwards(sentence):
    """The words in the opposite order."""
    return " ".join(reversed(sentence.split()))


def shorter(sentence):
    """Every other word."""
    return " ".join(sentence.split()[::2])


def longer(sentence):
    """Every word, and another one."""
    return " ".join(f"{word} mmm" for word in sentence.split())


def marks(sentence):
    """What reads as markup in most formats."""
    return f"# <b> *{sentence}* & [x](y) --> `z` 1. | </p> {{0}} \\"


def nothing(sentence):
    """An empty translation."""
    return ""


WAYS = {way.__name__: way for way in (same, str.upper, backwards, shorter, longer, marks, nothing)}


class Plain:
    """Gives every line one translation, that of ``translate``, and no scores."""

    def translate_lines(self, *arguments):
        return [[TranslatedLine(line, []) for line in lines] for lines in self.translate(*arguments)]


class Stub(Plain):
    """Stands in for the translator: does to every sentence what it is told; remembers the lines."""

    def __init__(self, way=str.upper):
        self.way, self.seen = way, []

    def translate(self, documents, names, empty_lines, progress):
        self.seen += documents
        progress(sum(map(len, documents)))
        return [[line if line in ("", "<p>") else self.way(line) for line in lines] for lines in documents]


def through(name, content, way=str.upper, **reading):
    """The translation of a file's content, and the lines that a translator gets."""
    content = content.encode() if isinstance(content, str) else content
    documents = list(FORMATS[name](Reading(**reading)).documents(io.BytesIO(content), f"x.{name}"))
    translated = Stub(way).translate([one.lines for one in documents], [], "", lambda n: None)
    return b"".join(one.finish(lines) for one, lines in zip(documents, translated)), [one.lines for one in documents]
