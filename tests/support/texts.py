"""Translation of files by stub translators."""

import io

from docnmt_fairseq.translate.formats import FORMATS, Reading
from docnmt_fairseq.translate.lines import TranslatedLine


def same(sentence):
    """Returns the sentence."""
    return sentence


def backwards(sentence):
    """Returns the words in reverse order."""
    return " ".join(reversed(sentence.split()))


def shorter(sentence):
    """Returns every second word."""
    return " ".join(sentence.split()[::2])


def longer(sentence):
    """Returns every word with an additional one."""
    return " ".join(f"{word} mmm" for word in sentence.split())


def marks(sentence):
    """Returns a sentence with markup of most formats."""
    return f"# <b> *{sentence}* & [x](y) --> `z` 1. | </p> {{0}} \\"


def nothing(sentence):
    """Returns an empty translation."""
    return ""


WAYS = {way.__name__: way for way in (same, str.upper, backwards, shorter, longer, marks, nothing)}


class Plain:
    """Translator of lines without scores."""

    def translate_lines(self, *arguments):
        return [[TranslatedLine(line, []) for line in lines] for lines in self.translate(*arguments)]


class Stub(Plain):
    """Stub translator: applies a function to every sentence; records the lines."""

    def __init__(self, way=str.upper):
        self.way, self.seen = way, []

    def translate(self, documents, names, empty_lines, progress):
        self.seen += documents
        progress(sum(map(len, documents)))
        return [[line if line in ("", "<p>") else self.way(line) for line in lines] for lines in documents]


def through(name, content, way=str.upper, **reading):
    """Returns the translation of a file's content, and the lines for the translator."""
    content = content.encode() if isinstance(content, str) else content
    documents = list(FORMATS[name](Reading(**reading)).documents(io.BytesIO(content), f"x.{name}"))
    translated = Stub(way).translate([one.lines for one in documents], [], "", lambda n: None)
    return b"".join(one.finish(lines) for one, lines in zip(documents, translated)), [one.lines for one in documents]
