"""Text files: packed files, byte order marks, errors with line numbers; readers hold one document in memory."""

import bz2
import gzip
import json
import lzma
import re
from pathlib import Path

import pytest

from docnmt_fairseq.corpus import files, readers
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers import Reading
from docnmt_fairseq.errors import InputError
from tests.support.reading import read, write

SENTENCES = 50  # per document
BY_DOCUMENT = Reading("en", "de", options={"document_prop": "document"})


def test_packed_files(tmp_path):
    content = b"a\nb\n" * 100
    write(tmp_path, "x.gz", gzip.compress(content))
    write(tmp_path, "x.bz2", bz2.compress(content))
    write(tmp_path, "x.xz", lzma.compress(content))
    for name in ("x.gz", "x.bz2", "x.xz"):
        assert list(read_lines(tmp_path / name)) == ["a", "b"] * 100
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-5])
        with pytest.raises(InputError, match=name):
            list(read_lines(tmp_path / name))


def test_zst(tmp_path, monkeypatch):
    zstd, path = pytest.importorskip("backports.zstd"), tmp_path / "x.zst"
    path.write_bytes(zstd.compress(b"a\nb\n" * 100))
    assert list(read_lines(path)) == ["a", "b"] * 100
    monkeypatch.setattr(files, "zstd", None)
    with pytest.raises(InputError, match=r"docnmt_fairseq\[zstd\]"):
        list(read_lines(path))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_prefix_finds_packed_files(tmp_path, ending):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[ending]
    write(tmp_path, f"c.en{ending}", pack(b"a\n\n"))
    write(tmp_path, "c.de", "A\n\n")
    assert read("delimited", [tmp_path / "c"])[0].paragraphs == [[("a", "A")]]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"PK\x03\x04\x14\0a\n", "not text; unpack it"),
        (gzip.compress(b"a\n" * 100), "unpack"),
        (b"a\n\xff\n", ":2: not UTF-8"),
    ],
)
def test_bad_files(tmp_path, content, line):
    with pytest.raises(InputError, match=f"x.*{line}"):
        list(read_lines(write(tmp_path, "x", content)))


def lines(documents, head="", tail="", sentence="sentence {s} of document {d}\n"):
    body = "".join(sentence.replace("{s}", str(s)) for s in range(SENTENCES))
    return "".join((head + body + tail).replace("{d}", str(d)) for d in range(documents))


def two_files(folder, content):
    return [write(folder, "x.en", content), write(folder, "x.de", content)]


def opus_xml(folder, documents):
    films = lines(1, '<document id="0">', "</document>", '<s id="{s}">sentence {s}</s>\n')
    for language in ("en", "de"):
        (folder / language).mkdir()
        write(folder / language, "1.xml", films)
    group = '<linkGrp fromDoc="en/1.xml.gz" toDoc="de/1.xml.gz">\n'
    links = lines(documents, group, "</linkGrp>\n", '<link xtargets="{s};{s}" />\n')
    return [write(folder, "en-de.xml", f"<cesAlign>{links}</cesAlign>"), folder, folder]


def ted_xml(folder, documents):
    talks = lines(documents, '<doc docid="{d}">', "</doc>\n", '<seg id="{s}">sentence {s} of talk {d}</seg>\n')
    return two_files(folder, f"<mteval>\n{talks}</mteval>\n")


def wmt_xml(folder, documents):
    body = "".join(f'<seg id="{s}">sentence {s}</seg>' for s in range(SENTENCES))
    sides = "".join(f'<{tag} lang="{lang}"><p>{body}</p></{tag}>' for tag, lang in (("src", "en"), ("ref", "de")))
    content = "".join(f'<doc id="{d}">{sides}</doc>\n' for d in range(documents))
    return [write(folder, "x.xml", f"<dataset>\n{content}</dataset>\n")]


def jsonl(folder, documents):
    sentences = [f"sentence {s}" for s in range(SENTENCES)]
    rows = [{"en": [f"{one} of {d}" for one in sentences], "de": sentences} for d in range(documents)]
    return [write(folder, "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))]


def parquet(folder, documents):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(line) for line in jsonl(folder, documents)[0].read_text().splitlines()]
    pyarrow.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), folder / "x.parquet", row_group_size=16)
    return [folder / "x.parquet"]


def tmx(folder, documents):
    variants = "".join(f'<tuv xml:lang="{lang}"><seg>sentence {{s}}</seg></tuv>' for lang in ("en", "de"))
    units = lines(documents, sentence=f'<tu><prop type="document">{{d}}</prop>{variants}</tu>\n')
    return [write(folder, "x.tmx", f"<tmx><body>{units}</body></tmx>\n")]


MAKE = {
    "delimited": lambda folder, n: two_files(folder, lines(n, tail="\n")),
    "d-lines": lambda folder, n: two_files(folder, lines(n, head="<d>\n")),
    "news-commentary": lambda folder, n: two_files(folder, lines(n, tail="\n")),
    "tsv": lambda folder, n: [write(folder, "x.tsv", lines(n, tail="\n", sentence="sentence {s}\tof document {d}\n"))],
    "ted-tags": lambda folder, n: two_files(folder, lines(n, head="<url>u</url>\n<talkid>{d}</talkid>\n")),
    "opus-moses": lambda folder, n: [
        *two_files(folder, lines(n)),
        write(folder, "x.ids", lines(n, sentence="en/{d}.xml.gz\tde/{d}.xml.gz\t{s}\t{s}\n")),
    ],
    "opus-xml": opus_xml,
    "jsonl": jsonl,
    "parquet": parquet,
    "ted-xml": ted_xml,
    "tmx": tmx,
    "wmt-ape": lambda folder, n: two_files(folder, lines(n)),
    "wmt-xml": wmt_xml,
}


@pytest.mark.parametrize("name", ["delimited", "d-lines", "news-commentary", "jsonl", "wmt-xml", "opus-moses"])
def test_byte_order_marks_and_carriage_returns_are_ignored(tmp_path, name):
    files = MAKE[name](tmp_path, 2)
    plain = read(name, files)
    for file in files:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert plain and read(name, files) == plain


@pytest.mark.parametrize("name", readers.READERS.names())
def test_readers_yield_documents_before_reading_the_rest(tmp_path, name):
    files = [Path(path) for path in MAKE[name](tmp_path, 40)]
    text = next(path for path in files if path.is_file())
    content = text.read_bytes()
    if name == "parquet":
        text.write_bytes(content.replace(b"of 39", b"\xff\xff\xff39"))
    else:
        text.write_bytes(content + b"\xff\n")  # neither UTF-8 nor XML
    documents = readers.read(name, readers.resolve(name, list(map(str, files)), BY_DOCUMENT), BY_DOCUMENT)
    assert len(next(documents)) == (1 if name == "wmt-ape" else SENTENCES)
    with pytest.raises(InputError, match=f"^{re.escape(str(text))}"):
        list(documents)
