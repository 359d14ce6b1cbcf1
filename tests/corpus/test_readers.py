"""Readers of delimited text, d-lines, WMT, TED and TMX."""

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.readers import Reading
from docnmt_fairseq.errors import InputError
from tests.support.reading import EN_DE, read, refused, text, write


def test_files_are_checked(tmp_path):
    write(tmp_path, "x.en", "a\n")
    refused("delimited", [tmp_path / "x"], "x.de: no such file")
    refused("ted-xml", [tmp_path / "x.en"], "one XML file per side")
    refused("wmt-xml", ["a", "b"], "one XML file")
    with pytest.raises(InputError):
        readers.READERS["sgm"](EN_DE)


def test_delimited_takes_prefix_or_files(tmp_path):
    files = [write(tmp_path, "x.en", "a\n\nb\n"), write(tmp_path, "x.de", "A\n\nB\n")]
    assert (
        text(read("delimited", [tmp_path / "x"])) == [[[("a", "A")]], [[("b", "B")]]] == text(read("delimited", files))
    )
    assert text(read("delimited", files[:1], Reading("en"))) == [[[("a",)]], [[("b",)]]]
    assert text(read("delimited", [tmp_path / "x"], Reading("en"))) == [[[("a",)]], [[("b",)]]]


def test_d_lines(tmp_path):
    files = [write(tmp_path, "en", "<d>\na\nb\n<d>\n<d>\nc\n"), write(tmp_path, "de", "<d>\nA\nB\n<d>\n<d>\nC\n")]
    documents = read("d-lines", files)
    assert text(documents) == [[[("a", "A"), ("b", "B")]], [[("c", "C")]]]
    assert documents[1].lines == [[(6, 6)]]


def test_wmt_ape_has_one_sentence_per_document(tmp_path):
    for name, content in (("src", "a\nb\n"), ("mt", "X\nY\n"), ("pe", "A\nB\n")):
        write(tmp_path, f"x.{name}", content)
    assert text(read("wmt-ape", [tmp_path / "x"])) == [[[("a", "A")]], [[("b", "B")]]]
    files = [tmp_path / "x.mt", tmp_path / "x.pe"]
    assert text(read("wmt-ape", files)) == [[[("X", "A")]], [[("Y", "B")]]]
    assert text(read("wmt-ape", [tmp_path / "x"], Reading("en"))) == [[[("a",)]], [[("b",)]]]
    write(tmp_path, "x.pe", "A\n")
    refused("wmt-ape", [tmp_path / "x"], "x.src:2", "number of lines")


@pytest.mark.parametrize(
    "source, target, parts",
    [
        ("a\n<d>\n", "A\n<d>\n", ["en:1", "before the first <d>"]),
        ("<d>\na\n<d>\nb\n", "<d>\nA\nX\nB\n", ["en:3", "<d> on one side only"]),
    ],
)
def test_bad_d_lines(tmp_path, source, target, parts):
    refused("d-lines", [write(tmp_path, "en", source), write(tmp_path, "de", target)], *parts)


WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="set">
  <doc origlang="en" id="one">
    <src lang="en">
      <p>
        <seg id="1">a &amp; b</seg>
        <seg id="2">c</seg>
      </p>
      <p><seg id="3">d</seg></p>
    </src>
    <ref lang="de" translator="A"><p><seg id="1">A</seg><seg id="2">C</seg></p><p><seg id="3">D</seg></p></ref>
    <ref lang="de" translator="B"><p><seg id="1">A2</seg><seg id="2">C2</seg></p><p><seg id="3">D2</seg></p></ref>
    <ref lang="fr" translator="F"><p><seg id="1">F</seg></p></ref>
    <hyp lang="de" system="S"><p><seg id="1">H</seg></p></hyp>
  </doc>
  <doc origlang="en" id="two">
    <src lang="en"><seg id="1">e</seg></src>
    <ref lang="de" translator="A"><seg id="1">E</seg></ref>
    <ref lang="de" translator="B"><seg id="1">E2</seg></ref>
  </doc>
</dataset>
"""


def test_wmt_xml(tmp_path):
    path = write(tmp_path, "wmt.xml", WMT)
    first = [[[("a & b", "A"), ("c", "C")], [("d", "D")]], [[("e", "E")]]]
    second = [[[("a & b", "A2"), ("c", "C2")], [("d", "D2")]], [[("e", "E2")]]]
    documents = read("wmt-xml", [path])
    assert text(documents) == first
    assert documents[0].lines == [[(6, 11), (7, 11)], [(9, 11)]]
    assert text(read("wmt-xml", [path], Reading("en", "de", options={"reference": "B"}))) == second
    assert text(read("wmt-xml", [path], Reading("en", "de", options={"reference": "1"}))) == second
    assert text(read("wmt-xml", [path], Reading("en"))) == [[[("a & b",), ("c",)], [("d",)]], [[("e",)]]]


@pytest.mark.parametrize(
    "old, new, options, parts",
    [
        ('<seg id="2">C</seg>', "", EN_DE, [":11", "document one: 3 source segments, but 2 here", ": 2"]),
        ('<seg id="2">C</seg>', '<seg id="1">C</seg>', EN_DE, [":11", "document one", "'1'", "twice"]),
        ("", "", Reading("en", "cs"), [":3", "document one", "no <ref lang='cs'>", "de, fr"]),
        ("", "", Reading("en", "de", options={"reference": "2"}), ["no reference '2'", "A, B"]),
    ],
)
def test_bad_wmt_xml(tmp_path, old, new, options, parts):
    refused("wmt-xml", [write(tmp_path, "wmt.xml", WMT.replace(old, new, 1) if old else WMT)], *parts, options=options)


TED = """<mteval>
<srcset setid="s" srclang="english">
<doc docid="7" genre="lectures">
<url>http://example.org/?a=b&c=d</url>
<talkid>7</talkid>
<title>Q&A</title>
<seg id="1"> A Q&A with R&D &amp; more </seg>
<seg id="2"> I <3 it, 1 < 2,  caf&eacute;&#33; </seg>
</doc>
<doc docid="8"><seg id="1">x</seg></doc>
</srcset>
</mteval>
"""


def test_ted_xml(tmp_path):
    source = write(tmp_path, "ted.en.xml", TED)
    target = write(tmp_path, "ted.de.xml", TED.replace("srcset", "refset").replace("more", "mehr").replace("x<", "X<"))
    documents = read("ted-xml", [source, target])
    assert text(documents) == [
        [[("A Q&A with R&D & more", "A Q&A with R&D & mehr"), ("I <3 it, 1 < 2, café!",) * 2]],
        [[("x", "X")]],
    ]
    assert documents[0].lines == [[(7, 7), (8, 8)]]


@pytest.mark.parametrize(
    "old, new, parts",
    [
        ('<seg id="1">x</seg>', "", ["talk 8: 1 source segments, but 0 here"]),
        ('<seg id="2">', '<seg id="3">', [":3: talk 7", "on one side only: 2, 3"]),
        ('<doc docid="8"><seg id="1">x</seg></doc>', "", ["en.xml:10: talk 8 is not at this place of", "de.xml"]),
        (
            '</doc>\n<doc docid="8"><seg id="1">x</seg></doc>\n</srcset>\n</mteval>',
            "",
            ["de.xml:3: <doc", "not closed"],
        ),
        ("&amp; more </seg>", "", ["de.xml:8", '<seg id="2"> is in the wrong place, or its element is not closed']),
        (
            '<doc docid="8"><seg id="1">x</seg></doc>',
            '<seg id="1">x</seg>',
            ["de.xml:10", '<seg id="1"> is in the wrong place'],
        ),
    ],
)
def test_bad_ted_xml(tmp_path, old, new, parts):
    assert old in TED
    refused("ted-xml", [write(tmp_path, "en.xml", TED), write(tmp_path, "de.xml", TED.replace(old, new, 1))], *parts)


def test_talks_with_different_segments_are_left_out_on_request(tmp_path, caplog):
    files = [write(tmp_path, "en.xml", TED), write(tmp_path, "de.xml", TED.replace('<seg id="2">', '<seg id="3">'))]
    refused("ted-xml", files, "--on-empty drop leaves out such talks")
    assert text(read("ted-xml", files, Reading("en", "de", True))) == [[[("x", "x")]]]
    assert "de.xml: 1 talks left out; the first: " in caplog.text


SGML = """<srcset setid="newstest2009" srclang="any">
<doc docid="idnes.cz/1" genre="news" origlang="cz">
<hl>
<seg id="1"> Q&A: "R&amp;D" </seg>
</hl>
<p>
<seg id="2"> 1 < 2 </seg>
</p>
</doc>
</srcset>
"""


def test_ted_xml_reads_the_sgml_of_wmt(tmp_path):
    reference = SGML.replace("srcset", "refset").replace('srclang="any"', 'srclang="any" trglang="de"')
    files = [write(tmp_path, "newstest2009-src.en.sgm", SGML), write(tmp_path, "newstest2009-ref.de.sgm", reference)]
    assert text(read("ted-xml", files)) == [[[('Q&A: "R&D"',) * 2, ("1 < 2",) * 2]]]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Das <unk>.", "Das <unk>."),
        ("<Enter> oder </unk>", "<Enter> oder </unk>"),
        ("<unk> und <UNK id=1>", "<unk> und <UNK id=1>"),
        ("<i>Hier</i> <b><u>und</u></b> da<br/>.", "Hier und da."),
        ("a <b und c> d", "a <b und c> d"),
        ("&lt;unk&gt; &amp;lt; &nosuch; R&D", "<unk> &lt; &nosuch; R&D"),
        ("ein\nSatz", "ein Satz"),
        ("", ""),
    ],
)
def test_text_of_segments_with_unescaped_signs(tmp_path, written, expected):
    target = SGML.replace('Q&A: "R&amp;D"', written)
    files = [write(tmp_path, "a.sgm", SGML), write(tmp_path, "b.sgm", target)]
    assert text(read("ted-xml", files)) == [[[('Q&A: "R&D"', expected), ("1 < 2",) * 2]]]


def test_sgml_names_in_upper_case_and_attributes_without_quotes(tmp_path):
    upper = SGML.replace("seg", "SEG").replace("doc", "DOC").replace("id=", "ID=")
    bare = SGML.replace('"1"', "1").replace('"2"', "2").replace('"idnes.cz/1"', "idnes.cz/1")
    other = SGML.replace('"', "'").replace("'R&amp;D'", '"R&amp;D"').replace("docid=", "\n docid = ")
    comment = SGML.replace("<p>", '<p> <!--\n<seg id="2">old</seg>\n-->')
    files = [write(tmp_path, name, content) for name, content in zip("abcd", (upper, bare, other, comment))]
    documents = [read("ted-xml", [path], Reading("en"))[0] for path in files]
    assert text(documents) == [[[('Q&A: "R&D"',), ("1 < 2",)]]] * 4
    assert [document.lines for document in documents] == [
        [[(4,), (7,)]],
        [[(4,), (7,)]],
        [[(5,), (8,)]],
        [[(4,), (9,)]],
    ]


def test_documents_without_a_reference_are_left_out_on_request(tmp_path, caplog):
    content = WMT.replace('<ref lang="de" translator="A"><seg id="1">E</seg></ref>', "")
    path, drop = write(tmp_path, "wmt.xml", content.replace('translator="B"><seg', 'translator="C"><seg')), True
    options = {"reference": "A"}
    refused("wmt-xml", [path], "no reference 'A'", "--on-empty drop", options=Reading("en", "de", options=options))
    assert len(read("wmt-xml", [path], Reading("en", "de", drop, options))) == 1
    assert len(read("wmt-xml", [path], Reading("en", "fr", drop))) == 0
    assert "1 documents left out; the first" in caplog.text and "2 documents left out; the first" in caplog.text


# As in the campaigns up to 2015; later ones have <doc> around a talk, and the names of reviewers after it.
PLAIN = """<url>http://example.org/talks/one.html</url>
<keywords>talks, climate & all</keywords>
<speaker>A. Speaker</speaker>
<talkid>1</talkid>
<title>A. Speaker: One</title>
<description>TED Talk Subtitles: <one> & all.</description>
 Thank you & good night.
I <3 it.
<url>http://example.org/talks/none.html</url>
<talkid>2</talkid>
<url>http://example.org/talks/three.html</url>
<talkid>3</talkid>
<i>Music</i>
"""
IN_DOC = """<doc docid="1" genre="lectures">
<url>http://example.org/talks/one.html</url>
<talkid>1</talkid>
Thank you & good night.
I <3 it.
<reviewer href="http://example.org/r">R. Reviewer
<translator href="http://example.org/t">T. Translator</translator>
<translator>U. Translator</translator>
</doc>

<doc docid="2">
<talkid>2</talkid>
</doc>
<doc docid="3">
<talkid>3</talkid>
<i>Music</i>
</doc>

"""


def upper(content):
    """Returns the content with its sentences in upper case."""
    return "".join(line if line.startswith(("<u", "<k", "<s", "<t", "<d", "</", "<r")) else line.upper()
                   for line in content.splitlines(keepends=True))  # fmt: skip


@pytest.mark.parametrize("source, target", [(PLAIN, IN_DOC), (IN_DOC, PLAIN)])
def test_talks(tmp_path, source, target):
    write(tmp_path, "train.tags.en-de.en", source)
    write(tmp_path, "train.tags.en-de.de", upper(target))
    documents = read("ted-tags", [tmp_path / "train.tags.en-de"])
    assert text(documents) == [
        [[("Thank you & good night.", "THANK YOU & GOOD NIGHT."), ("I <3 it.", "I <3 IT.")]],
        [[("<i>Music</i>", "<I>MUSIC</I>")]],
    ]
    lines = {PLAIN: (7, 13), IN_DOC: (4, 16)}
    assert [document.lines[0][0] for document in documents] == list(zip(lines[source], lines[target]))


def test_one_side_and_empty_lines(tmp_path):
    source = write(tmp_path, "en", PLAIN.replace("I <3 it.\n", "I <3 it.\n\nb\n"))
    target = write(tmp_path, "de", PLAIN.replace("I <3 it.\n", "\n\nB\n"))
    assert text(read("ted-tags", [source, target]))[0] == [
        [("Thank you & good night.",) * 2, ("I <3 it.", ""), ("b", "B")]
    ]
    assert text(read("ted-tags", [source], Reading("en")))[1] == [[("<i>Music</i>",)]]


@pytest.mark.parametrize(
    "old, new, parts",
    [
        ("I <3 it.\n", "", ["de:1", "talk 1: 2 source segments, but 1 here"]),
        ("<talkid>3", "<talkid>4", ["en:11: talk 3 is not at this place of"]),
        (PLAIN[PLAIN.index("<url>http://example.org/talks/three") :], "", ["en:11: talk 3 is not"]),
        ("<url>http://example.org/talks/one.html</url>", "Hello", ["de:1", "before the first talk"]),
    ],
)
def test_bad_talks(tmp_path, old, new, parts):
    assert old in PLAIN
    files = [write(tmp_path, "en", PLAIN), write(tmp_path, "de", PLAIN.replace(old, new, 1))]
    refused("ted-tags", files, *parts)


HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'


def unit(source, target, extra="", languages=("en", "de")):
    sides = zip(languages, (source, target))
    variants = "".join(f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>' for language, text in sides)
    return f"<tu>{extra}{variants}</tu>\n"


def tmx(folder, *units, name="x.tmx"):
    return write(folder, name, HEAD + "".join(units) + "</body></tmx>\n")


def of(name):
    return f'<prop type="x-file">{name}</prop><prop type="x-other">o</prop>'


def test_every_file_is_a_document(tmp_path):
    first, second = tmx(tmp_path, unit("a", "A"), unit("b  &amp;\nc", "B")), tmx(tmp_path, unit("d", "D"), name="y.tmx")
    documents = read("tmx", [first, second])
    assert text(documents) == [[[("a", "A"), ("b & c", "B")]], [[("d", "D")]]]
    assert documents[0].lines == [[(4, 4), (5, 5)]]


def test_documents_by_a_property_or_a_note(tmp_path):
    path = tmx(tmp_path, unit("a", "A", of("1")), unit("b", "B", of("1")), unit("c", "C", of("2")))
    named = Reading("en", "de", options={"document_prop": "x-file"})
    assert text(read("tmx", [path], named)) == [[[("a", "A"), ("b", "B")]], [[("c", "C")]]]
    noted = tmx(tmp_path, unit("a", "A", "<note>1</note>"), unit("b", "B", "<note>2</note>"), name="n.tmx")
    assert len(read("tmx", [noted], Reading("en", "de", options={"document_prop": "note"}))) == 2
    refused("tmx", [noted], "n.tmx:4: ", '<prop type="x-file">', "--document-prop", options=named)
    assert read("tmx", [noted], Reading("en", "de", True, {"document_prop": "x-file"})) == []
    mixed = tmx(tmp_path, unit("a", "A", of("1")), unit("b", "B", of("2")), unit("c", "C", of("1")))
    refused("tmx", [mixed], "x.tmx:6: document 1 continues", options=named)


def test_formatting_codes_are_left_out(tmp_path):
    marked = 'see <bpt i="1">&lt;b&gt;</bpt>this<ept i="1">&lt;/b&gt;</ept> <hi>book</hi><ph>x<sub>note</sub>y</ph>.'
    assert text(read("tmx", [tmx(tmp_path, unit(marked, "A"))])) == [[[("see this book.", "A")]]]


def test_languages_and_their_regions(tmp_path):
    path = tmx(
        tmp_path, unit("a", "A", languages=("EN-us", "de_AT")), unit("b", "B", languages=("en", "fr")),
        unit("c", "C", languages=("de", "en")),
    )  # fmt: skip
    assert text(read("tmx", [path])) == [[[("a", "A"), ("C", "c")]]]
    filipino = tmx(tmp_path, unit("a", "A", languages=("en", "fil")), unit("b", "B", languages=("en", "fi-FI")))
    assert text(read("tmx", [filipino], Reading("en", "fi"))) == [[[("b", "B")]]]
