"""gettext messages (.po, .pot)."""

import re
from typing import Any, Iterator, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Marked, marks_of_message

# The header is the message of the empty string.
HEADER = re.compile(rb'^msgid[ \t]+""[ \t]*\r?\n(msgstr[ \t]+"[^\n]*(?:\n"[^\n]*)*)', re.MULTILINE)
CHARSET = re.compile(rb"charset=([\w.-]+)")
MESSAGES_PER_SENTENCE = 4
PLURALS = re.compile(r"nplurals\s*=\s*(\d)")


@register("po")
class Gettext(WholeFile):
    """Untranslated and fuzzy messages are translated and marked fuzzy; translated and obsolete ones stay."""

    help = "gettext: untranslated and fuzzy messages; translations are marked fuzzy until reviewed"
    endings = (".po", ".pot")

    def parse(self, content: bytes, name: str) -> Parsed:
        charset, file = self._load(content, name)
        entries = [entry for entry in file if not entry.obsolete and (entry.fuzzy or not entry.translated())]
        self.reading.limits.check(len(entries), "messages", name, MESSAGES_PER_SENTENCE)
        texts = [
            [list(_lines(message)) for message in (entry.msgid, entry.msgid_plural) if message] for entry in entries
        ]
        found = re.search(PLURALS, file.metadata.get("Plural-Forms", ""))
        forms = int(found[1]) if found else 2
        segments = [
            line.segment(new_paragraph=number == 0)
            for messages in texts
            for number, line in enumerate(line for message in messages for line in message)
        ]

        def render(pieces: List[Pieces]) -> bytes:
            new = iter(pieces)
            for entry, messages in zip(entries, texts):
                _fill(entry, ["".join(line.render(next(new)) for line in message) for message in messages], forms)
            text = str(file) if file.header else str(file).removeprefix("#\n")
            return (text if text.endswith("\n") else f"{text}\n").encode(charset, "xmlcharrefreplace")

        return Parsed(segments, render)

    def _load(self, content: bytes, name: str) -> Any:
        """Returns the character set and polib's file."""
        library = self.needs("polib")
        header = HEADER.search(content)
        found = CHARSET.search(header[1]) if header else None
        charset = found[1].decode() if found else "UTF-8"
        charset = "UTF-8" if charset == "CHARSET" else charset
        text = decode(content, name, charset)
        try:
            file = library.pofile(f"{text}\n", wrapwidth=78)  # with a line end, it is not taken for a file name
        except (OSError, ValueError, IndexError, AttributeError) as error:  # polib's errors of syntax
            raise InputError(f"{name}: not gettext's format: {_reason(error)}") from error
        if not len(file) and not file.metadata and text.strip():
            raise InputError(f"{name}: contains no gettext messages")
        file.ordered_metadata = lambda: list(file.metadata.items())  # polib would sort them
        return charset, file


def _reason(error: Exception) -> str:
    found = re.search(r"\(line (\d+)\)(?:: (.*))?", str(error))
    return f"line {found[1]}" if found else type(error).__name__


def _lines(message: str) -> Iterator[Marked]:
    """Yields the lines of a message with their line ends."""
    for line in re.findall(r"[^\n]*\n|[^\n]+", message):
        yield Marked(line, marks_of_message(line))


def _fill(entry: Any, translations: List[str], forms: int) -> None:
    """Sets the translation of a message, marked fuzzy; the first plural form is the singular."""
    if entry.msgid_plural:
        entry.msgstr_plural = {form: translations[form > 0 or forms == 1] for form in range(forms)}
    else:
        entry.msgstr = translations[0]
    entry.flags = ["fuzzy", *(flag for flag in entry.flags if flag != "fuzzy")]
    entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
