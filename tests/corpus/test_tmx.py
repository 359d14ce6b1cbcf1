"""Translation memories."""

from docnmt_fairseq.corpus.readers import Reading
from tests.support.reading import read, refused, text, write

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
