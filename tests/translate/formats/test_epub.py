"""Electronic books: pages and tables of contents are translated; everything else stays."""

import io
import zipfile

import pytest

from tests.support.malformed import docx as packed
from tests.support.texts import WAYS, through

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf"><metadata><title>The book</title></metadata><manifest>
<item id="a" href="text/one%20page.xhtml" media-type="application/xhtml+xml"/>
<item id="b" href="text/first.xhtml" media-type="application/xhtml+xml"/>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="x" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="c" href="style.css" media-type="text/css"/></manifest>
<spine toc="x"><itemref idref="b"/><itemref idref="a"/></spine></package>
"""
PAGE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
    '<body><p id="p">{} <i>big</i><a id="x"/> page.<br/></p></body></html>\n'
)
CONTENTS = (
    '<?xml version="1.0"?>\n<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel>'
    "<text>The label</text></navLabel></navPoint></navMap></ncx>\n"
)
MEMBERS = (
    ("META-INF/container.xml", CONTAINER),
    ("mimetype", "application/epub+zip"),
    ("OEBPS/book.opf", PACKAGE),
    ("OEBPS/text/one page.xhtml", PAGE.format("Second")),
    ("OEBPS/text/first.xhtml", "\ufeff" + PAGE.format("First")),
    ("OEBPS/nav.xhtml", PAGE.format("Way")),
    ("OEBPS/toc.ncx", CONTENTS),
    ("OEBPS/style.css", "p { color: red }"),
)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_pages_in_reading_order(way):
    content = packed(*MEMBERS)
    found, (lines,) = through("epub", content, WAYS[way])
    assert lines == ["First big page.", "<p>", "Second big page.", "<p>", "Way big page.", "<p>", "The label"]
    if way == "same":
        assert found == content
        return
    archive = zipfile.ZipFile(io.BytesIO(found))
    first = archive.infolist()[0]
    assert first.filename == "mimetype" and first.compress_type == zipfile.ZIP_STORED
    new = {info.filename: archive.read(info).decode() for info in archive.infolist()}
    old = dict(MEMBERS)
    assert sorted(new) == sorted(old)
    for name in ("META-INF/container.xml", "mimetype", "OEBPS/book.opf", "OEBPS/style.css"):
        assert new[name] == old[name]
    if way == "upper":
        wanted = old["OEBPS/text/first.xhtml"].replace("First", "FIRST").replace("big", "BIG").replace(" page", " PAGE")
        assert new["OEBPS/text/first.xhtml"] == wanted
        assert new["OEBPS/toc.ncx"] == CONTENTS.replace("The label", "THE LABEL")
