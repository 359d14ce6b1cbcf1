"""The page: one HTML file that loads nothing from anywhere."""

from dataclasses import dataclass, field
from html import escape
from typing import Dict, List, Tuple

from docnmt_fairseq.report.elements import as_script, asset
from docnmt_fairseq.report.inspection import Inspection
from docnmt_fairseq.report.viewer import Viewer
from docnmt_fairseq.report.views import View

START = 'showViews(JSON.parse(document.getElementById("data").textContent));\n'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass
class Page:
    """What the page shows.

    Attributes:
        title: its heading.
        properties: name → value, of the model and the document.
        inspection: the document.
        views: of its tokens.
        sections: more of it below, (anchor, heading, HTML).
    """

    title: str
    properties: Dict[str, str]
    inspection: Inspection
    views: List[View]
    sections: List[Tuple[str, str, str]] = field(default_factory=list)

    def to_html(self) -> str:
        """The file."""
        several = any(anchor == "sources" for anchor, _, _ in self.sections)
        viewer = Viewer(self.inspection, self.views, "what words attend to is under Sources") if several else None
        viewer = viewer or Viewer(self.inspection, self.views)
        links = "".join(f'<a href="#{anchor}">{escape(heading)}</a>' for anchor, heading, _ in self.sections)
        more = "".join(
            f'<section id="{anchor}"><h2>{escape(heading)}</h2>{content}</section>'
            for anchor, heading, content in self.sections
        )
        properties = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in self.properties.items())
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{asset('viewer.css')}</style></head><body>"
            f'<header><h1>{escape(self.title)}</h1><dl class="facts">{properties}</dl>'
            f'<nav aria-label="Sections"><a href="#document">Document</a>{links}</nav></header>'
            f'<main><section id="document"><h2>Document</h2>{viewer.to_html()}</section>{more}</main>'
            f'<script type="application/json" id="data">{as_script(viewer.to_json())}</script>'
            f"<script>{asset('viewer.js')}{START}</script><script>{asset('sources.js')}</script></body></html>\n"
        )
