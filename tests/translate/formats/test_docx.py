"""Word documents: all text is translated, formatting stays."""

import io
import zipfile

import docx
import pytest
from docx.shared import Pt
from lxml import etree

from tests.support.malformed import docx as packed
from tests.support.texts import WAYS, through

FIELD = '<w:r {ns}><w:fldChar w:fldCharType="{kind}"/></w:r>'
NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def field(paragraph, code, result):
    """Returns a field with its result."""
    for xml in (
        FIELD.format(ns=NS, kind="begin"),
        f"<w:r {NS}><w:instrText> {code} </w:instrText></w:r>",
        FIELD.format(ns=NS, kind="separate"),
        f"<w:r {NS}><w:t>{result}</w:t></w:r>",
        FIELD.format(ns=NS, kind="end"),
    ):
        paragraph._p.append(etree.fromstring(xml))


@pytest.fixture(scope="module")
def content():
    document = docx.Document()
    document.add_heading("The title", 0)
    paragraph = document.add_paragraph("Hello ")
    paragraph.add_run("big").bold = True
    paragraph.add_run(" wide")
    large = paragraph.add_run(" world. Second")
    large.font.size = Pt(20)
    paragraph.add_run(" sentence.")
    paragraph.add_run().add_break()
    paragraph.add_run("Next line\tafter tab")
    document.add_paragraph("Item one", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Cell text", "100"
    numbered = document.add_paragraph("See page ")
    field(numbered, "PAGE", "Seven")
    numbered.add_run(" or the ")
    field(numbered, 'HYPERLINK "http://x.org"', "linked words")
    numbered.add_run(".")
    box = document.add_paragraph("Around a box.")
    inside = "<w:txbxContent><w:p><w:r><w:t>Inside the box.</w:t></w:r></w:p></w:txbxContent>"
    box._p.append(etree.fromstring(f"<w:r {NS}><w:pict>{inside}</w:pict></w:r>"))
    document.sections[0].header.paragraphs[0].text = "Header text"
    document.sections[0].footer.paragraphs[0].text = "Footer text"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def test_every_text_is_translated_once(content):
    found, (lines,) = through("docx", content)
    assert [line for line in lines if line != "<p>"] == [
        "The title", "Hello big wide world.", "Second sentence.", "Next line", "after tab", "Item one", "Cell text",
        "See page or the linked words.", "Inside the box.", "Around a box.", "Footer text", "Header text",
    ]  # fmt: skip
    document = docx.Document(io.BytesIO(found))
    paragraph = document.paragraphs[1]
    assert paragraph.text == "HELLO BIG WIDE WORLD. SECOND SENTENCE.\nNEXT LINE\tAFTER TAB"
    assert [(run.text, run.bold, run.font.size) for run in paragraph.runs][:5] == [
        ("HELLO ", None, None), ("BIG", True, None), (" WIDE", None, None), (" WORLD. SECOND", None, Pt(20)),
        (" SENTENCE.", None, None),
    ]  # fmt: skip
    assert document.tables[0].cell(0, 0).text == "CELL TEXT"
    assert document.sections[0].header.paragraphs[0].text == "HEADER TEXT"
    assert "".join(run.text for run in document.paragraphs[3].runs) == "SEE PAGE Seven OR THE LINKED WORDS."


FORMS = (
    '<w:r {ns} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:AlternateContent>'
    '<mc:Choice Requires="wps"><w:drawing>{first}</w:drawing></mc:Choice>'
    "<mc:Fallback><w:pict>{other}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)
BOX = "<w:txbxContent><w:p><w:r><w:t>{}</w:t></w:r><w:r><w:t>{}</w:t></w:r></w:p></w:txbxContent>"


@pytest.mark.parametrize(
    ("other", "lines", "translated"),
    [
        (BOX.format("In the", " box."), [], ["IN THE", " BOX."]),  # as Word writes text boxes
        (BOX.format("Not in", " the box."), ["Not in the box."], ["NOT IN", " THE BOX."]),
        ("", [], []),
    ],
)
def test_alternative_content(other, lines, translated):
    document = docx.Document()
    around = document.add_paragraph("Around ")
    around._p.append(etree.fromstring(FORMS.format(ns=NS, first=BOX.format("In the", " box."), other=other)))
    around.add_run(" it.")
    stream = io.BytesIO()
    document.save(stream)
    found, (seen,) = through("docx", stream.getvalue())
    assert [line for line in seen if line != "<p>"] == ["In the box.", *lines, "Around it."]
    paragraph = docx.Document(io.BytesIO(found)).paragraphs[0]._p
    texts = [element.text for element in paragraph.iter(f"{{{paragraph.nsmap['w']}}}t")]
    assert texts == ["AROUND ", "IN THE", " BOX.", *translated, " IT."]


@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        (["It is big.", "^1", " The dog sleeps.", "^[2]"], ["It is big.", "The dog sleeps."]),
        (["See the note", "^3", ", and", "^4", "^,5", "."], ["See the note and."]),
        (["20 m", "^2", " of Docnmt", "^TM"], ["20 m2 of Docnmt"]),
        (["See ", "https://a.", "org/b", " now"], ["See now"]),
    ],
)
def test_raised_notes_and_addresses(runs, shown):
    document = docx.Document()
    paragraph = document.add_paragraph()
    for run in runs:
        paragraph.add_run(run.removeprefix("^")).font.superscript = run.startswith("^") or None
    stream = io.BytesIO()
    document.save(stream)
    found, (lines,) = through("docx", stream.getvalue())
    assert [line for line in lines if line != "<p>"] == shown
    new = [run.text for run in docx.Document(io.BytesIO(found)).paragraphs[0].runs]
    assert new == [run.removeprefix("^") if run.startswith(("^", "http", "org/")) else run.upper() for run in runs]


def test_labels_of_charts():
    space = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    chart = f"<c:c {space}><c:strCache><c:pt><c:v>The year</c:v></c:pt></c:strCache><c:f>Sheet!A</c:f></c:c>"
    stream = io.BytesIO()
    docx.Document().save(stream)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("word/charts/chart1.xml", chart)
    found, _ = through("docx", stream.getvalue())
    new = zipfile.ZipFile(io.BytesIO(found)).read("word/charts/chart1.xml").decode()
    assert chart.replace("The year", "THE YEAR") in new


@pytest.mark.parametrize("way", WAYS)
def test_only_text_changes(content, way):
    found, _ = through("docx", content, WAYS[way])
    assert way != "same" or found == content
    before, after = zipfile.ZipFile(io.BytesIO(content)), zipfile.ZipFile(io.BytesIO(found))
    assert after.namelist() == before.namelist()
    for name in before.namelist():
        if b"<w:t>" not in before.read(name):
            assert after.read(name) == before.read(name)
            continue
        trees = [etree.fromstring(archive.read(name)) for archive in (before, after)]
        for text in (text for tree in trees for text in tree.iter(f"{{{NS[9:-1]}}}t")):
            text.text = None
            text.attrib.clear()
        assert etree.tostring(trees[0], method="c14n") == etree.tostring(trees[1], method="c14n")
    docx.Document(io.BytesIO(found))


@pytest.mark.parametrize("target", ["word/document2.xml", "/word/document2.xml"])
def test_name_of_the_main_part(content, target):
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    members["word/document2.xml"] = members.pop("word/document.xml")
    members["_rels/.rels"] = members["_rels/.rels"].replace(b"word/document.xml", target.encode())
    other = packed(*members.items())
    found, lines = through("docx", other)
    assert lines == through("docx", content)[1] and through("docx", other, WAYS["same"])[0] == other
    assert b">THE TITLE<" in zipfile.ZipFile(io.BytesIO(found)).read("word/document2.xml")


def test_drawings():
    drawing = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    texts = "<a:p><a:r><a:t>Open the</a:t></a:r><a:r><a:t> door</a:t></a:r></a:p><a:p><a:r><a:t>Now</a:t></a:r></a:p>"
    body = (
        '<w:p><w:r><w:t xml:space="preserve">Before </w:t></w:r><w:r><w:drawing><wp:inline xmlns:wp="wp">'
        '<wp:docPr id="1" name="Picture 1" descr="The big house" title="A house"/></wp:inline></w:drawing></w:r></w:p>'
    )
    content = packed(
        ("word/document.xml", f"<w:document {NS}>{body}</w:document>"),
        ("word/charts/chart1.xml", f'<c:chart xmlns:c="c" {drawing}>{texts}<c:v>Data</c:v></c:chart>'),
        ("word/diagrams/data1.xml", f"<d {drawing}>{texts}</d>"),
    )
    found, (lines,) = through("docx", content)
    assert lines == [
        "The big house", "<p>", "A house", "<p>", "Before", "<p>", "Open the door", "<p>", "Now", "<p>",
        "Open the door", "<p>", "Now",
    ]  # fmt: skip
    archive = zipfile.ZipFile(io.BytesIO(found))
    chart = archive.read("word/charts/chart1.xml").decode()
    assert chart == f'<c:chart xmlns:c="c" {drawing}>{texts}<c:v>Data</c:v></c:chart>'.replace(
        "Open the", "OPEN THE"
    ).replace(" door", " DOOR").replace("Now", "NOW")
    assert 'name="Picture 1" descr="THE BIG HOUSE" title="A HOUSE"' in archive.read("word/document.xml").decode()
