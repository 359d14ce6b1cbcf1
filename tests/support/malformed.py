"""Contents of files that mean no good, or were damaged: by name, the ending of the file and its content."""

import gzip
import io
import random
import zipfile

FORMATS = ("txt", "srt", "vtt", "html", "md", "po", "xlf", "docx", "en.gz")
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
    """Contents with bytes changed, inserted or cut off at random places."""
    chance = random.Random(number)
    content = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(content))
        content[place : place + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(4)))
    return bytes(content[: chance.randrange(1, len(content) + 1)] if chance.random() < 0.3 else content)


TEXTS = {  # in a file of every format
    "empty": b"",
    "a line feed": b"\n",
    "a byte order mark": b"\xef\xbb\xbf",
    "a byte order mark in UTF-16": "\ufeffHello.\n".encode("utf-16-le"),
    "zeros": bytes(1000),
    "control characters": bytes(range(32)) * 9,
    "no UTF-8": b"fine\n\xff\xfe\xc3(\n",
    "Latin-1": "Müller für Großes\n".encode("latin-1"),
    "a surrogate": b"a \xed\xa0\x80 b\n",
    "directions": "\u202eabc\u202c \u2066def\u2069 \u061c\n".encode(),
    "marks only": b"<p>\n\n<p>\n<p>\n\n",
    "white space": " \t\u00a0\u3000\u2028\u2029\x0b\x0c\x85\r\n".encode(),
    "carriage returns": b"one\rtwo\rthree\r",
    "combining characters": ("a" + "\u0301" * 3000 + "\n").encode(),
    "not a character": "\ufffe\uffff\U0010ffff a\n".encode(),
    "a long line": b"word " * 200_000 + b"\n",
    "a long word": b"x" * 1_000_000,
    "brackets": b"<" * 100_000,
    "closing brackets": b">" * 100_000,
    "quotes of a tag": b'<a b="' * 10_000,
    "ticks and stars": b"`*_`` **[" * 3_000,
    "open square brackets": b"[" * 5_000 + b"](" * 3_000,
    "deep quotes": b"> " * 20_000 + b"deep\n",
    "deep list": b"".join(b" " * n + b"- a\n" for n in range(300)),
    "arrows": b"-->\n" * 1000,
    "deep tags": b"<b><div>" * 2_000 + b"x" + b"</div></b>" * 2_000,
    "an archive": docx(("a", "b")),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
}
CASES = {
    **{f"{name} in .{ending}": (ending, text) for name, text in TEXTS.items() for ending in FORMATS},
    "a truncated .gz": ("en.gz", gzip.compress(b"word " * 10_000)[:-20]),
    "a bomb in .gz": ("md.gz", gzip.compress(bytes(70 << 20), 1)),
    "negative times": ("srt", "1\n-00:00:01,000 --> -00:00:02,000\nHello.\n"),
    "times without end": ("srt", f"1\n{'9' * 3000}:00:00,000 --> 00:00:02,000\nHello.\n"),
    "times as words": ("srt", "1\nnow --> then\nHello.\n"),
    "the end before the beginning": ("srt", "1\n00:00:09,000 --> 00:00:02,000\nHello.\n"),
    "one cue ten thousand times": ("srt", (CUE + "and so on\n\n") * 10_000),
    "a cue in a cue": ("vtt", f"WEBVTT\n\n{CUE.replace(',', '.')}{CUE.replace(',', '.')}x\n"),
    "unknown entities": ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n&#xd800; &#99999999999; &nope; &#0;\n"),
    "unknown entities of HTML": ("html", "<p>&#xd800; &#99999999999; &nope; &#0; x</p>"),
    "an unfinished comment": ("html", "<p>one<!-- two"),
    "an unfinished declaration": ("html", "<p>one<![CDATA[ two"),
    "an unfinished script": ("html", "<p>one<script>two"),
    "unfinished front matter": ("md", "---\ntitle: x\n"),
    "a table without end": ("md", "|" * 50_000 + "\n|" + "-|" * 50_000 + "\n"),
    "references to each other": ("md", "[a]: b\n[b]: a\n[a][b] [b][a]\n"),
    "a catalogue without header": ("po", 'msgid "One"\nmsgstr ""\n'),
    "an unfinished message": ("po", 'msgid "One\nmsgstr ""\n'),
    "messages in the wrong order": ("po", 'msgstr ""\nmsgid "One"\n'),
    "plural forms that are none": (
        "po",
        'msgid ""\nmsgstr "Plural-Forms: nplurals=x;\\n"\n\nmsgid "a"\nmsgid_plural "b"\n',
    ),
    "an unknown character set": ("po", 'msgid ""\nmsgstr "charset=klingon\\n"\n'),
    "the name of a file": ("po", "/etc/hosts"),
    "an entity bomb": ("xlf", f"{BOMB}]><xliff>&i;</xliff>"),
    "an entity bomb in UTF-16": (
        "xlf",
        f'<?xml version="1.0" encoding="UTF-16"?>{BOMB}]><xliff>&i;</xliff>'.encode("utf-16"),
    ),
    "an entity bomb in an attribute": ("xlf", f'{BOMB}]><xliff a="&i;"/>'),
    "an outside entity": ("xlf", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><xliff>&x;</xliff>'),
    "an outside document type": ("xlf", '<!DOCTYPE xliff SYSTEM "http://127.0.0.1:9/x.dtd">' + XLIFF.format("Hello.")),
    "inclusion": ("xlf", XLIFF.format('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>x')),
    "deep elements": ("xlf", XLIFF.format("<g>" * 5000 + "x" + "</g>" * 5000)),
    "an unknown encoding": ("xlf", '<?xml version="1.0" encoding="klingon"?>' + XLIFF.format("x")),
    "no namespace that is declared": ("xlf", XLIFF.format("<a:g>x</a:g>")),
    "segments without source": ("xlf", "<xliff><trans-unit/><segment/><trans-unit><target/></trans-unit></xliff>"),
    "text of ten megabytes": ("xlf", XLIFF.format("word " * 2_200_000)),
    "a Word document in a Word document": ("docx", docx(("word/document.xml", document("x")))),
    "an entity bomb in Word": ("docx", docx(("word/document.xml", f"{BOMB}]><w>&i;</w>"))),
    "deep paragraphs": ("docx", document("<w:p>" * 5000 + "</w:p>" * 5000)),
    "a way out of the archive": ("docx", docx(("../../x", "y"), ("word/document.xml", WORD.format("")))),
    "fields without end": ("docx", document('<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:t>One.</w:t></w:r></w:p>')),
    "field ends only": ("docx", document('<w:p><w:r><w:fldChar w:fldCharType="end"/><w:t>One.</w:t></w:r></w:p>')),
    "text outside of paragraphs": ("docx", document("<w:t>One.</w:t>x")),
    "a truncated archive": ("docx", document("<w:p/>")[:-30]),
    "an archive without its beginning": ("docx", document("<w:p/>")[10:]),
    "two members of one name": ("docx", docx(("word/document.xml", WORD.format("")), ("word/document.xml", "x"))),
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
    for number in range(6):
        CASES[f"broken .{ending} {number}"] = (ending, broken(content, f"{ending} {number}"))


def content_of(name):
    """The ending and the content of a case, bytes; packed if its ending says so."""
    ending, content = CASES[name]
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    packed = content.startswith(b"\x1f\x8b") or ending != "en.gz"
    return ending, content if packed else gzip.compress(content)
