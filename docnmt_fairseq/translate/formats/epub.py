"""Electronic books (.epub): pages in reading order, and the table of contents of EPUB 2."""

import posixpath
from codecs import BOM_UTF8
from typing import Dict, List, Mapping, Tuple
from urllib.parse import unquote

from lxml import etree

from docnmt_fairseq.translate.formats.archive import Archive
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, register
from docnmt_fairseq.translate.formats.html_pages import TAGS_PER_SENTENCE, Html
from docnmt_fairseq.translate.formats.xml_text import Slot, Slots, local_name, parse_xml, xml_bytes

CONTAINER = "META-INF/container.xml"
PAGES, CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"


@register("epub")
class Epub(Archive):
    """Pages are read as HTML."""

    help = "electronic books: text of pages, table of contents"
    endings = (".epub",)

    def parts(self, contents: Mapping[str, bytes], name: str) -> Dict[str, Parsed]:
        found = {path: kind for path, kind in _manifest(contents, name) if path in contents}
        tags = sum(contents[path].count(b"<") for path in found)
        self.reading.limits.check(tags, "tags", name, TAGS_PER_SENTENCE)
        return {
            path: (self._page if kind == PAGES else self._contents)(contents[path], f"{name}: {path}")
            for path, kind in found.items()
        }

    def _page(self, content: bytes, name: str) -> Parsed:
        mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
        parsed = Html(self.reading).parse(content[len(mark) :], name)
        return Parsed(parsed.segments, lambda pieces: mark + parsed.render(pieces))

    def _contents(self, content: bytes, name: str) -> Parsed:
        """Returns the labels of a table of contents."""
        tree = parse_xml(content, name)
        labels = [Slots(Slot(label)) for label in tree.getroot().iter(etree.Element) if local_name(label) == "text"]

        def render(pieces: List[Pieces]) -> bytes:
            rest = iter(pieces)
            for label in labels:
                label.fill(rest)
            return xml_bytes(tree, content)

        return Parsed([segment for label in labels for segment in label.segments()], render)


def _manifest(contents: Mapping[str, bytes], name: str) -> List[Tuple[str, str]]:
    """Returns the pages in reading order and the tables of contents, with their types."""

    def elements(path: str) -> List[etree._Element]:
        return list(parse_xml(contents[path], f"{name}: {path}").getroot().iter(etree.Element))

    package = next((str(one.get("full-path")) for one in elements(CONTAINER) if local_name(one) == "rootfile"), "")
    listed = elements(package)
    items = {one.get("id"): one for one in listed if local_name(one) == "item" and one.get("href")}
    order = {one.get("idref"): number for number, one in enumerate(listed) if local_name(one) == "itemref"}
    ordered = sorted(items.items(), key=lambda item: order.get(item[0], len(listed)))
    folder = posixpath.dirname(package)
    return [
        (posixpath.normpath(posixpath.join(folder, unquote(str(item.get("href"))))), str(item.get("media-type")))
        for kind in (PAGES, CONTENTS)
        for _, item in ordered
        if item.get("media-type") == kind
    ]
