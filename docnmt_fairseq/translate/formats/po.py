"""gettext messages (.po, .pot)."""

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import LINE, Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.messages import DIVISION, Message

# The header is the message of the empty string.
HEADER = re.compile(r'^msgid[ \t]+""[ \t]*\r?\n(msgstr[ \t]+"[^\n]*(?:\n"[^\n]*)*)', re.MULTILINE)
CHARSET = re.compile(r"charset=([\w.-]+)")
MESSAGE = re.compile(r'\s*msgid\s*"')
EMPTY = re.compile(r'\s*msgid\s*""\s*$')
BEFORE = re.compile(r"\s*(?:#(?!~)|msgctxt\b)")
TRANSLATION = re.compile(r"\s*msgstr\b")
AFTER = re.compile(r'\s*(?:msgid_plural\b|msgstr\b|"|$)')
MESSAGES_PER_SENTENCE = 4
PLURALS = re.compile(r"nplurals\s*=\s*(\d)")


@dataclass(frozen=True)
class Entry:
    """Message of a file.

    Attributes:
        entry: polib's entry.
        first, start, end: its comments and text are lines from ``first``, its translation from ``start`` to ``end``.
        texts: the message and its plural.
    """

    entry: Any
    first: int
    start: int
    end: int
    texts: List[Message]


@register("po")
class Gettext(WholeFile):
    """Untranslated and fuzzy messages are translated and marked fuzzy; everything else stays."""

    help = "gettext: untranslated and fuzzy messages; translations are marked fuzzy until reviewed"
    endings = (".po", ".pot")

    def parse(self, content: bytes, name: str) -> Parsed:
        charset = self._charset(content)
        text = decode(content, name, charset)
        file = self.needs("polib").pofile(f"{text}\n")  # with a line end, it is not taken for a file name
        lines = LINE.findall(text if text.endswith("\n") else f"{text}\n")
        entries = [entry for entry in file if entry.msgid and not entry.obsolete]
        places = list(_places(lines))
        if len(entries) != len(places):
            raise InputError(f"{name}: not gettext's format: a line before the text of its message")
        messages = [
            Entry(
                entry,
                *place,
                [Message(text, division=DIVISION) for text in (entry.msgid, entry.msgid_plural) if text],
            )
            for entry, place in zip(entries, places)
            if entry.fuzzy or not entry.translated()
        ]
        self.reading.limits.check(len(messages), "messages", name, MESSAGES_PER_SENTENCE)
        found = re.search(PLURALS, file.metadata.get("Plural-Forms", ""))
        forms = int((found or re.search(PLURALS, plural_rule(self._target())))[1])  # type: ignore[index]
        segments = [
            segment
            for message in messages
            for number, text in enumerate(message.texts)
            for segment in text.segments(new_paragraph=number == 0)
        ]

        def render(pieces: List[Pieces]) -> bytes:
            new, parts, behind = iter(pieces), [], 0
            for message in messages:
                translations = [text.render(new) for text in message.texts]
                parts += lines[behind : message.first]
                parts += _marked_fuzzy(lines[message.first : message.start])
                parts += self._translation(message.entry, translations, forms, lines[message.first].endswith("\r\n"))
                behind = message.end
            translated = self._with_header("".join([*parts, *lines[behind:]]))
            try:
                return translated.encode(charset)
            except UnicodeEncodeError:
                return _changed(translated, CHARSET, "charset=UTF-8").encode()

        return Parsed(segments, render)

    def _charset(self, content: bytes) -> str:
        header = HEADER.search(content.decode("latin-1"))
        found = CHARSET.search(header[1]) if header else None
        return "UTF-8" if found is None or found[1] == "CHARSET" else found[1]

    def _target(self) -> str:
        return self.reading.languages()[1].replace("-", "_")

    def _with_header(self, text: str) -> str:
        """Returns a file with the values that a template leaves open."""
        text = _changed(text, re.compile("charset=CHARSET"), "charset=UTF-8")
        text = _changed(text, re.compile(r'(?<="Language:) *(?=\\n")'), lambda _: f" {self._target()}")
        rule = re.compile(r'(?<="Plural-Forms:)[^"]*INTEGER[^"]*(?=\\n")')
        return _changed(text, rule, lambda _: f" {plural_rule(self._target())}")

    def _translation(self, entry: Any, translations: Sequence[str], forms: int, crlf: bool) -> Iterator[str]:
        """Yields the lines of a translation; the first plural form is the singular, and existing forms stay."""
        new: Dict[str, Any] = {"msgstr": translations[0]}
        if entry.msgid_plural:
            kept = {} if entry.fuzzy else {form: text for form, text in entry.msgstr_plural.items() if text}
            texts = {form: translations[form > 0 or forms == 1] for form in range(forms)}
            new = {"msgid_plural": "x", "msgstr_plural": {**texts, **kept}}
        written = str(self.needs("polib").POEntry(msgid="x", **new))
        for line in LINE.findall(written[written.index("\nmsgstr") + 1 :].rstrip("\n") + "\n"):
            yield line.replace("\n", "\r\n") if crlf else line


def _places(lines: Sequence[str]) -> Iterator[Tuple[int, int, int]]:
    """Yields the first line of each message but the header, and the range of lines of its translation."""
    for number, line in enumerate(lines):
        if MESSAGE.match(line) and not (
            EMPTY.match(line) and not "".join(lines[number + 1 : number + 2]).startswith('"')
        ):
            first = number
            while first:
                before = first - 1
                while before and lines[before].lstrip().startswith('"'):
                    before -= 1
                if not BEFORE.match(lines[before]):
                    break
                first = before
            start = end = number + 1
            while end < len(lines) and AFTER.match(lines[end]):
                end += 1
                start = end if start == end - 1 and not TRANSLATION.match(lines[start]) else start
            while end > start and not lines[end - 1].strip():
                end -= 1
            yield first, start, end


def _marked_fuzzy(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines before a translation with the mark, and without the previous message."""
    marked = any(line.startswith("#,") for line in lines)
    for line in lines:
        if line.startswith("#|"):
            continue
        if line.startswith("#,"):
            flags = [flag.strip() for flag in line[2:].split(",")]
            yield f"#, {', '.join(['fuzzy', *(flag for flag in flags if flag != 'fuzzy')])}{line[len(line.rstrip()) :]}"
            continue
        if not marked and not line.startswith("#"):
            yield f"#, fuzzy{line[len(line.rstrip()) :]}"
            marked = True
        yield line


def _changed(text: str, pattern: "re.Pattern[str]", new: Any) -> str:
    """Returns a file with a change in its header."""
    header = HEADER.search(text)
    if header is None:
        return text
    return text[: header.start(1)] + pattern.sub(new, header[1], count=1) + text[header.end(1) :]


# --- Plural rules of languages, as gettext writes them ---

_TWO = "nplurals=2; plural=(n != 1);"
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
_EAST = f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_SLAVIC}"
_ONE_TO_FOUR = "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"
RULES = {
    **dict.fromkeys(("id", "ja", "km", "ko", "lo", "ms", "my", "th", "vi", "zh"), "nplurals=1; plural=0;"),
    **dict.fromkeys(("fr", "pt_BR"), "nplurals=2; plural=(n > 1);"),
    **dict.fromkeys(("be", "bs", "hr", "ru", "sr", "uk"), _EAST),
    **dict.fromkeys(("cs", "sk"), _ONE_TO_FOUR),
    "ar": "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);",
    "ga": "nplurals=3; plural=(n==1 ? 0 : n==2 ? 1 : 2);",
    "lt": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "lv": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);",
    "pl": f"nplurals=3; plural=(n==1 ? 0 : {_SLAVIC}",
    "ro": "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);",
    "sl": "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
}


def plural_rule(locale: str) -> str:
    """Returns the value of ``Plural-Forms`` for a language such as ``pl`` or ``pt_BR``."""
    return RULES.get(locale) or RULES.get(locale.split("_")[0].lower()) or _TWO
