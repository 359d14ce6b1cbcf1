"""Page of a report, a single HTML file, and the document viewer that it shares with the server."""

from dataclasses import dataclass, field
from html import escape
from typing import Any, Dict, List, Tuple

from docnmt_fairseq.report.html import LABELS, as_script, asset, display_text, table, words_html
from docnmt_fairseq.report.inspection import InspectedSentence, Inspection
from docnmt_fairseq.report.views import RELEVANCE, View

TABLE_ENTRIES = 4  # per head in the tables
PANEL = (
    "Point at a word{side}, or select one by click or key (Tab, then arrows), to see the sentences and words that it "
    "attends to."
)
SIDES = {"source": " of the source", "target": " of the translation"}
START = 'showViews(JSON.parse(document.getElementById("data").textContent));\n'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Viewer:
    """Document and views of its tokens, displayed by ``assets/viewer.js``."""

    inspection: Inspection
    views: List[View]
    without_context: str = "every sentence was translated independently"  # note for models without context mechanism

    def to_json(self) -> Dict[str, Any]:
        """Data of the script."""
        return {"relevance": RELEVANCE, "views": [view.to_json() for view in self.views]}

    def to_html(self) -> str:
        """Notes, controls, sentences with a button per word, a panel, and tables."""
        hidden = "" if self._available() else " hidden"
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return (
            f'{notes}{self._controls()}<div class="reader"><div id="reader">{self._sentences()}</div>'
            f'<aside id="panel" aria-live="polite" aria-label="Context of the selected word"{hidden}>'
            f"<p>{self._panel()}</p></aside></div>{self._tables()}"
        )

    def _available(self) -> List[View]:
        return [view for view in self.views if view.heads]

    def _panel(self) -> str:
        """Instructions; names the side if only one has context."""
        sides = {view.side for view in self._available()}
        return PANEL.format(side=SIDES[sides.pop()] if len(sides) == 1 else "")

    @property
    def notes(self) -> List[str]:
        """Notes above the document."""
        notes = []
        if not self.views:
            notes.append(f"This model has no context mechanism: {self.without_context}.")
        empty = [view.title for view in self.views if not view.heads]
        if empty:
            notes.append(f"No data from {', '.join(empty)}: no word of this document has context there.")
        if any(view.side == "target" for view in self._available()):
            notes.append("A word of the translation stands for the decoder state that predicts it.")
        return notes

    def _controls(self) -> str:
        if not self._available():
            return ""
        labels = (("view", "mechanism"), ("head", "head"), ("measure", "colour by"))
        controls = "".join(f'<label>{text}<select id="{name}"></select></label>' for name, text in labels)
        legend = (("to-sentences", "attended sentences"), ("to-words", "attended words"))
        swatches = "".join(f'<span><span class="swatch {name}"></span> {text}</span>' for name, text in legend)
        return (
            f'<div class="controls">{controls}<span class="legend">{swatches}</span></div>'
            '<noscript><p class="note">Without scripts, see the tables below the document.</p></noscript>'
        )

    def _sentences(self) -> str:
        active, sentences = bool(self._available()), self.inspection.sentences
        texts = {
            "source": list(words_html([s.source for s in sentences], "source", active)),
            "target": list(words_html([s.translation for s in sentences], "target", active)),
        }
        rows = []
        for number, sentence in enumerate(sentences):
            new = " paragraph" if number and sentence.paragraph != sentences[number - 1].paragraph else ""
            rows.append(
                f'<div class="sentence{new}" id="s{number + 1}" data-s="{number}"><div class="number">{number + 1}'
                f'<span class="value"></span></div><p class="source" dir="auto">'
                f"{texts['source'][number]}</p>"
                f'<p class="translation" dir="auto">{texts["target"][number]}</p>{_reference(sentence)}</div>'
            )
        return "".join(rows)

    def _tables(self) -> str:
        """Table of every view, for use without mouse or scripts."""
        tables = "".join(self._table(view) for view in self._available())
        return f"<details><summary>All tokens as tables</summary>{tables}</details>" if tables else ""

    def _table(self, view: View) -> str:
        measure, entries = next(iter(view.sentences.items()))
        heads = [f"head {head + 1}" for head in range(view.heads)] if view.heads > 1 else [measure]
        header = ["sentence", "token", *heads, *(["gate"] if view.share else [])]
        rows, word = [], 0
        for number, sentence in enumerate(self.inspection.sentences):
            for token in sentence.source if view.side == "source" else sentence.translation:
                of_heads = entries.get(word, [[]] * view.heads)
                cells = [
                    ", ".join(f"{key + 1} ({value:.2f})" for key, value in head[:TABLE_ENTRIES]) for head in of_heads
                ]
                share = [f"{view.share[word]:.0%}" if word in view.share else ""] if view.share else []
                rows.append([str(number + 1), LABELS.get(token, display_text(token)), *cells, *share])
                word += 1
        caption = f"{view.title}: sentences by {measure}, value in brackets"
        return f"<details><summary>{escape(view.title)}</summary>{table(header, rows, caption)}</details>"


def _reference(sentence: InspectedSentence) -> str:
    if sentence.reference is None or sentence.reference == sentence.translation:
        return ""
    (text,) = words_html([sentence.reference], "", active=False)
    return f'<p class="reference">reference: <span dir="auto">{text}</span></p>'


@dataclass
class Page:
    """Content of a report."""

    title: str
    properties: Dict[str, str]  # of the model and the document, by name
    inspection: Inspection
    views: List[View]
    sections: List[Tuple[str, str, str]] = field(default_factory=list)  # further ones: anchor, heading, HTML

    def to_html(self) -> str:
        """HTML of the file, which loads no other files."""
        viewer = Viewer(self.inspection, self.views)
        if any(anchor == "sources" for anchor, _, _ in self.sections):
            viewer = Viewer(self.inspection, self.views, "its attention to sources is under Sources")
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
