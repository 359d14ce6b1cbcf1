"""A reader holds one document (of OPUS XML, one pair of films), and gives it before it has read on."""

import json
import re
import tracemalloc
from pathlib import Path

import pytest

from docnmt_fairseq.corpus import readers, xml
from docnmt_fairseq.corpus.opus import Archive
from docnmt_fairseq.corpus.readers import Reading
from docnmt_fairseq.errors import InputError
from tests.support.reading import write

SENTENCES = 50  # a document
BY_DOCUMENT = Reading("en", "de", options={"document_prop": "document"})


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
    sides = []
    for tag, language in (("src", "en"), ("ref", "de")):
        body = "".join(f'<seg id="{s}">sentence {s}</seg>' for s in range(SENTENCES))
        sides.append(f'<{tag} lang="{language}"><p>{body}</p></{tag}>')
    content = "".join(f'<doc id="{d}">{"".join(sides)}</doc>\n' for d in range(documents))
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


# A small corpus of every format.
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


def make(name, folder, documents):
    if name not in MAKE:
        pytest.fail(f"add a small corpus of format {name} to MAKE in {__file__}")
    return list(map(str, MAKE[name](folder, documents)))


def peak(folder, name, documents):
    folder.mkdir()
    paths = readers.resolve(name, make(name, folder, documents), BY_DOCUMENT)
    tracemalloc.start()
    try:
        found = readers.read(name, paths, BY_DOCUMENT)
        assert sum(map(len, found)) == documents * SENTENCES
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", readers.READERS.names())
def test_documents_come_before_the_rest_is_read(tmp_path, name):
    files = [Path(path) for path in make(name, tmp_path, 40)]
    text = next(path for path in files if path.is_file())
    content = text.read_bytes()
    if name == "parquet":  # says at its end what is where
        text.write_bytes(content.replace(b"of 39", b"\xff\xff\xff39"))
    else:
        text.write_bytes(content + b"\xff\n")  # neither UTF-8 nor XML
    paths = readers.resolve(name, list(map(str, files)), BY_DOCUMENT)
    documents = readers.read(name, paths, BY_DOCUMENT)
    assert len(next(documents)) == (1 if name == "wmt-ape" else SENTENCES)
    with pytest.raises(InputError, match=f"^{re.escape(str(text))}"):
        list(documents)


@pytest.mark.parametrize("name", readers.READERS.names())
def test_peak_memory(tmp_path, name):
    peak(tmp_path / "warm", name, 2)  # imports and caches
    few, many = peak(tmp_path / "few", name, 25), peak(tmp_path / "many", name, 100)
    assert many < few + 50_000  # the 75 extra documents would take 400 kB or more; their names take a little


def test_films_are_read_one_pair_at_a_time(tmp_path, monkeypatch):
    opened = []
    film = Archive.film
    monkeypatch.setattr(Archive, "film", lambda archive, name: opened.append(name) or film(archive, name))
    documents = readers.read("opus-xml", opus_xml(tmp_path, 3), Reading("de", "en"))
    for count in (1, 2, 3):
        next(documents)
        assert opened == ["de/1.xml.gz", "en/1.xml.gz"] * count


def test_what_was_read_of_xml_is_freed(tmp_path):
    path = opus_xml(tmp_path, 200)[0]
    in_memory = [len(group.getparent()) for group in xml.iterate_elements(path, "linkGrp")]
    assert len(in_memory) == 200 and max(in_memory) < 40  # what one read of 32 kB holds
