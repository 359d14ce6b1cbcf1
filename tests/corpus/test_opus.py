"""OPUS: XML with an alignment, and Moses text with ids."""

import gzip
import logging
import re
import zipfile

import pytest

from docnmt_fairseq.corpus.readers import Reading
from tests.support.reading import EN_DE, read, refused, text, write

ALIGNMENT = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">
<cesAlign version="1.0">
<linkGrp targType="s" fromDoc="de/2001/7/11.xml.gz" toDoc="en/2001/7/12.xml.gz" >
<link id="SL0" xtargets=";1" />
<link id="SL1" xtargets="1;2 3" overlap="0.553" />
<link id="SL2" xtargets="2 3;4" />
<link id="SL3" xtargets="4;" />
</linkGrp>
<linkGrp targType="s" fromDoc="de/2002/8/13.xml.gz" toDoc="en/2002/8/14.xml.gz" >
<link id="SL0" xtargets="1;1" />
</linkGrp>
<linkGrp targType="s" fromDoc="de/2002/8/13.xml.gz" toDoc="en/2002/8/14.xml.gz" >
</linkGrp>
</cesAlign>
"""
FIRST = [[("a2 ! a3", "A1"), ("a4", "A2 A3")]]
SECOND = [[("b1", "B1")]]


def raw(*sentences):
    body = "".join(
        f'  <s id="{i}">\n    <time id="T{i}S" value="00:00:0{i},000" />\n{sentence}\n  </s>\n'
        for i, sentence in enumerate(sentences, start=1)
    )
    return f'<?xml version="1.0"?>\n<document id="9">\n{body}  <meta><genre>Drama</genre></meta>\n</document>\n'


def tokenised(*sentences):
    words = ("".join(f'<w id="{i}">{word}</w>' for i, word in enumerate(s.split())) for s in sentences)
    return raw(*(f"    {sentence}" for sentence in words))


FILMS = {
    "de/2001/7/11": raw("A1", "A2", "A3", "A4"),
    "en/2001/7/12": tokenised("a1", "a2 !", "a3", "a4"),
    "de/2002/8/13": raw("B1"),
    "en/2002/8/14": tokenised("b1"),
}


def folder_of(folder, language, packed):
    for name, content in FILMS.items():
        if name.startswith(language):
            path = folder / f"{name}.xml{'.gz' if packed else ''}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    return folder


def zip_of(folder, language, packed, films=FILMS):
    path = folder / f"{language.strip('/')}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("OpenSubtitles/INFO", "about")
        for name, content in films.items():
            if name.startswith(language):
                member = f"OpenSubtitles/xml/{name}.xml{'.gz' if packed else ''}"
                archive.writestr(member, gzip.compress(content.encode()) if packed else content)
    return path


@pytest.fixture
def corpus(tmp_path):
    return [write(tmp_path, "de-en.xml", ALIGNMENT), zip_of(tmp_path, "en", False), zip_of(tmp_path, "de", False)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("archive", ["zip", "folder", "folder of the language"])
def test_films_in_a_zip_or_a_folder(tmp_path, archive, packed):
    alignment = write(tmp_path, "de-en.xml.gz", gzip.compress(ALIGNMENT.encode()))
    if archive == "zip":
        archives = [zip_of(tmp_path, language, packed) for language in ("en", "de")]
    else:
        archives = [folder_of(tmp_path / "xml", language, packed) for language in ("en", "de")]
        if archive == "folder of the language":
            archives = [tmp_path / "xml" / "en", tmp_path / "xml" / "de"]
    assert text(read("opus-xml", [alignment, *archives])) == [FIRST, SECOND]


def test_direction_follows_the_languages(corpus):
    alignment, english, german = corpus
    swapped = read("opus-xml", [alignment, german, english], Reading("de", "en"))
    assert text(swapped) == [[[row[::-1] for row in paragraph] for paragraph in FIRST], [[("B1", "b1")]]]


@pytest.mark.parametrize(
    "names, languages, order", [(("en", "zh_cn"), ("zh", "en"), (1, 0)), (("pt", "pt_br"), ("pt", "pt_br"), (0, 1))]
)
def test_regional_languages(tmp_path, names, languages, order):
    def renamed(path):
        return re.sub("(de|en)/", lambda match: names[("de", "en").index(match[1])] + "/", path)

    films = {renamed(name): film for name, film in FILMS.items()}
    archives = [zip_of(tmp_path, f"{name}/", False, films) for name in names]
    alignment = write(tmp_path, "x.xml", renamed(ALIGNMENT))
    found = read("opus-xml", [alignment, *(archives[side] for side in order)], Reading(*languages))
    assert text(found)[1] == [[tuple(("B1", "b1")[side] for side in order)]]


def test_paragraphs_of_the_source(tmp_path, corpus):
    film = FILMS["en/2001/7/12"].replace('  <s id="1">', '<p id="1">  <s id="1">', 1)
    film = film.replace('  <s id="4">', '</p><p id="2">  <s id="4">').replace("  <meta>", "</p><meta>")
    zip_of(tmp_path, "en", False, {**FILMS, "en/2001/7/12": film})
    assert text(read("opus-xml", corpus))[0] == [[row] for row in FIRST[0]]
    one = film.replace('</p><p id="2">', "")
    zip_of(tmp_path, "en", False, {**FILMS, "en/2001/7/12": one})
    assert text(read("opus-xml", corpus))[0] == FIRST


@pytest.mark.parametrize(
    "old, new, parts",
    [
        ('"1;2 3"', '"1;2 9"', ["de-en.xml:6", "sentence 9 is not in", "12.xml"]),
        ("en/2002/8/14", "en/2002/8/15", ["de-en.xml:10", "en/2002/8/15.xml.gz is not in", "en.zip"]),
        ("en/2001/7/12", "en/../de/2001/7/11", ["de-en.xml:4", "is not in"]),
        ('"en/2001', '"fr/2001', ["de-en.xml:4", "aligns de with fr"]),
        ("</cesAlign>", "", ["de-en.xml:", "cannot be read as XML"]),
    ],
)
def test_bad_alignments(tmp_path, corpus, old, new, parts):
    refused("opus-xml", [write(tmp_path, "de-en.xml", ALIGNMENT.replace(old, new, 1)), *corpus[1:]], *parts)


@pytest.mark.parametrize("change", ["malformed", "missing", "other sentences", "damaged"])
def test_bad_films_are_left_out_on_request(tmp_path, corpus, caplog, change):
    films = dict(FILMS)
    if change == "missing":
        del films["en/2001/7/12"]
    else:
        films["en/2001/7/12"] = {"malformed": "<document>a & b", "other sentences": raw("a1"), "damaged": ""}[change]
    zip_of(tmp_path, "en", False, films)
    with caplog.at_level(logging.WARNING):
        documents = read("opus-xml", corpus, Reading("en", "de", drop_incomplete=True))
    assert text(documents) == [SECOND]
    assert "de-en.xml: 1 films left out; the first: " in caplog.text
    wrong = Reading("en", "fr", drop_incomplete=True)
    refused("opus-xml", corpus, "aligns de with en", options=wrong)


IDS = """de/2001/7/11.xml.gz\ten/2001/7/12.xml.gz\t1\t2 3
de/2001/7/11.xml.gz\ten/2001/7/12.xml.gz\t2\t4
de/2001/7/11.xml.gz\ten/2001/7/15.xml.gz\t1\t1
"""


def test_moses(tmp_path, caplog):
    files = [write(tmp_path, f"OpenSubtitles.de-en.{suffix}", content)
             for suffix, content in (("en", "a\nb\nc\n"), ("de", "A\nB\nC\n"), ("ids", IDS))]  # fmt: skip
    with caplog.at_level(logging.INFO):
        documents = read("opus-moses", files)
    assert text(documents) == [[[("a", "A"), ("b", "B")]], [[("c", "C")]]]
    assert documents[1].lines == [[(3, 3)]]
    assert "3 pairs, 1 of them joined" in caplog.text
    prefix = tmp_path / "OpenSubtitles.de-en"
    assert documents == read("opus-moses", [prefix], EN_DE)
    assert text(read("opus-moses", [prefix], Reading("de"))) == [[[("A",), ("B",)]], [[("C",)]]]
