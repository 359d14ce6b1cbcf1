"""Elements of an HTML page."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """Collects elements and data; asserts that all elements are closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found, self.data = [], [], ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and self.found[-1][1].get("id") == "data":
            self.data += data
