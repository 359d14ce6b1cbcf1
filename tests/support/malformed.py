"""Malicious and damaged files: by name, the ending of the file and its content."""

import gzip
import io
import random
import zipfile

FORMATS = ("txt", "srt", "vtt", "ass", "html", "md", "po", "xlf", "json", "docx", "epub", "en.gz")
CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
XLIFF = '<xliff version="1.2"><file><body><trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>'
WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">{}</w:document>'
BOMB = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">' + "".join(
    f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("bcdefgh", "cdefghi")
)


def docx(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return stream.getvalue()


def document(text):
    return docx(("word/document.xml", WORD.format(text)))


def broken(content, number):
    """Returns a content with bytes changed, inserted or removed at random positions."""
    chance = random.Random(number)
    content = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(content))
        content[place : place + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(4)))
    return bytes(content[: chance.randrange(1, len(content) + 1)] if chance.random() < 0.3 else content)


TEXTS = {  # in a file of every format
    "empty": b"",
    "UTF-16": "\ufeffHello.\n".encode("utf-16-le"),
    "control characters": bytes(range(32)) * 9,
    "Latin-1": "Müller für Großes\n".encode("latin-1"),
    "marks only": b"<p>\n\n<p>\n<p>\n\n",
    "a long word": b"x" * 1_000_000,
    "brackets": b"<" * 100_000,
    "deep tags": b"<b><div>" * 2_000 + b"x" + b"</div></b>" * 2_000,
}
CASES = {
    **{f"{name} in .{ending}": (ending, text) for name, text in TEXTS.items() for ending in FORMATS},
    "a truncated .gz": ("en.gz", gzip.compress(b"word " * 10_000)[:-20]),
    "a bomb in .gz": ("md.gz", gzip.compress(bytes(70 << 20), 1)),
    "a cue in a cue": ("vtt", f"WEBVTT\n\n{CUE.replace(',', '.')}{CUE.replace(',', '.')}x\n"),
    "unknown entities": ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n&#xd800; &#99999999999; &nope; &#0;\n"),
    "unfinished comment": ("html", "<p>one<!-- two"),
    "unfinished front matter": ("md", "---\ntitle: x\n"),
    "a long table": ("md", "|" * 50_000 + "\n|" + "-|" * 50_000 + "\n"),
    "deep quotes": ("md", "> " * 20_000 + "deep\n"),
    "a catalogue without header": ("po", 'msgid "One"\nmsgstr ""\n'),
    "the name of a file": ("po", "/etc/hosts"),
    "an entity bomb": ("xlf", f"{BOMB}]><xliff>&i;</xliff>"),
    "an external entity": ("xlf", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><xliff>&x;</xliff>'),
    "segments without source": ("xlf", "<xliff><trans-unit/><segment/><trans-unit><target/></trans-unit></xliff>"),
    "an entity bomb in Word": ("docx", docx(("word/document.xml", f"{BOMB}]><w>&i;</w>"))),
    "a way out of the archive": ("docx", docx(("../../x", "y"), ("word/document.xml", WORD.format("")))),
    "unfinished fields": ("docx", document('<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:t>One.</w:t></w:r></w:p>')),
}
GOOD = {
    "srt": (CUE + "Hello <i>there</i>,\nyou.\n\n") * 3,
    "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>Hello &amp; bye.\n",
    "html": "<!DOCTYPE html><p class='x'>Hello <b>you</b> &amp; me. <!-- c --> <code>x</code> It is.</p><ul><li>1</ul>",
    "md": "# Hello *you*\n\nOne [two](x) `three`.\n\n| a | b |\n|---|---|\n| c | d |\n",
    "po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#, c-format\nmsgid "One %d."\nmsgstr ""\n',
    "xlf": XLIFF.format('Hello <g id="1">you</g>.'),
    "docx": document("<w:p><w:r><w:t>Hello </w:t></w:r><w:r><w:t>you.</w:t></w:r></w:p>"),
}
for ending, good in GOOD.items():
    content = good if isinstance(good, bytes) else good.encode()
    for number in range(2):
        CASES[f"broken .{ending} {number}"] = (ending, broken(content, f"{ending} {number}"))


def content_of(name):
    """Returns ending and content of a case; compressed if the ending is that of a compressed file."""
    ending, content = CASES[name]
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    packed = content.startswith(b"\x1f\x8b") or ending != "en.gz"
    return ending, content if packed else gzip.compress(content)
