"""The page: one HTML file that loads nothing from anywhere."""

import json
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from docnmt_fairseq.report.inspection import Inspection, Sentence
from docnmt_fairseq.report.views import RELEVANCE, View

PIECE = "\u2581"  # begins a word in SentencePiece's tokens
JOINED = "@@"  # ends a subword of subword-nmt that is joined to the next
SHOWN = 4  # entries of a head in the tables
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
        data = {"relevance": RELEVANCE, "views": [view.to_json() for view in self.views]}
        links = "".join(f'<a href="#{anchor}">{escape(heading)}</a>' for anchor, heading, _ in self.sections)
        more = "".join(
            f'<section id="{anchor}"><h2>{escape(heading)}</h2>{content}</section>'
            for anchor, heading, content in self.sections
        )
        hidden = "" if self._shown() else " hidden"  # nothing can be chosen
        properties = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in self.properties.items())
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_asset('page.css')}</style></head><body>"
            f'<header><h1>{escape(self.title)}</h1><dl class="facts">{properties}</dl>'
            f'<nav aria-label="Sections"><a href="#document">Document</a>{links}</nav></header>'
            f'<main><section id="document"><h2>Document</h2>{self._notes()}{self._controls()}'
            f'<div class="reader"><div id="reader">{self._sentences()}</div>'
            f'<aside id="panel" aria-live="polite" aria-label="What the chosen word looked at"{hidden}>'
            f"<p>{PANEL}</p></aside></div>"
            f"{self._tables()}</section>{more}</main>"
            f'<script type="application/json" id="data">{as_script(data)}</script>'
            f"<script>{_asset('page.js')}</script><script>{_asset('sources.js')}</script></body></html>\n"
        )

    def _shown(self) -> List[View]:
        return [view for view in self.views if view.heads]

    def _notes(self) -> str:
        notes = []
        if not self.views:
            several = any(anchor == "sources" for anchor, _, _ in self.sections)
            alone = "what words attend to is under Sources" if several else "every sentence was translated by itself"
            notes.append(f"This model has no context mechanism: {alone}.")
        silent = [view.title for view in self.views if not view.heads]
        if silent:
            why = "it reports nothing, or no word of this document has context there"
            notes.append(f"Nothing to show of {', '.join(silent)}: {why}.")
        if any(view.side == "target" for view in self._shown()):
            notes.append("A word of the translation stands for the decoder's state that predicts it.")
        return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)

    def _controls(self) -> str:
        if not self._shown():
            return ""
        labels = (("view", "mechanism"), ("head", "head"), ("measure", "colour by"))
        controls = "".join(f'<label>{text}<select id="{name}"></select></label>' for name, text in labels)
        legend = (("to-sentences", "sentences the word looks at"), ("to-words", "words it looks at"))
        swatches = "".join(f'<span><span class="swatch {name}"></span> {text}</span>' for name, text in legend)
        return (
            f'<div class="controls">{controls}<span class="legend">{swatches}</span></div>'
            '<noscript><p class="note">Without scripts everything is in the tables below the document.</p></noscript>'
        )

    def _sentences(self) -> str:
        sides = {view.side for view in self._shown()} | {view.looks_at for view in self._shown() if view.tokens}
        sentences = self.inspection.sentences
        texts = {
            "source": list(_buttons([s.source for s in sentences], "source", "source" in sides)),
            "target": list(_buttons([s.translation for s in sentences], "target", "target" in sides)),
        }
        rows = []
        for number, sentence in enumerate(sentences):
            new = " paragraph" if number and sentence.paragraph != sentences[number - 1].paragraph else ""
            rows.append(
                f'<div class="sentence{new}" id="s{number + 1}" data-s="{number}"><div class="number">{number + 1}'
                f'<span class="value"></span></div><p class="source">{texts["source"][number]}</p>'
                f'<p class="translation">{texts["target"][number]}</p>{_reference(sentence)}</div>'
            )
        return "".join(rows)

    def _tables(self) -> str:
        """A table of every view for those who read without a mouse, or without scripts."""
        tables = "".join(self._table(view) for view in self._shown())
        return f"<details><summary>All words as tables</summary>{tables}</details>" if tables else ""

    def _table(self, view: View) -> str:
        measure, entries = next(iter(view.sentences.items()))
        heads = [f"head {head + 1}" for head in range(view.heads)] if view.heads > 1 else [measure]
        header = ["sentence", "word", *heads, *(["gate lets through"] if view.share else [])]
        rows, word = [], 0
        for number, sentence in enumerate(self.inspection.sentences):
            for token in sentence.source if view.side == "source" else sentence.translation:
                of_heads = entries.get(word, [[]] * view.heads)
                cells = [", ".join(f"{key + 1} ({value:.2f})" for key, value in head[:SHOWN]) for head in of_heads]
                share = [f"{view.share[word]:.0%}" if word in view.share else ""] if view.share else []
                rows.append([str(number + 1), display_text(token), *cells, *share])
                word += 1
        caption = f"{view.title}: sentences by {measure}, value in brackets"
        return f"<details><summary>{escape(view.title)}</summary>{table(header, rows, caption)}</details>"


PANEL = "Point at a word, or choose one by click or key (Tab, then arrows), to see the sentences and words it looks at."


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """An HTML table, which scrolls by itself where it is too wide."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def as_script(data: Any) -> str:
    """JSON that can stand in a script element whatever its strings hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def display_text(token: str) -> str:
    """A token as people read it, without the mark of its subword."""
    token = token.removesuffix(JOINED) if token != JOINED else token
    return token.removeprefix(PIECE) or token


def _buttons(sentences: List[List[str]], side: str, active: bool) -> Iterable[str]:
    """Yields each sentence with a button a token, or as text where nothing is known of them; no word is broken."""
    pieces = any(PIECE in token for tokens in sentences for token in tokens)
    number = 0
    for tokens in sentences:
        words: List[List[str]] = []
        joined = False
        for token in tokens:
            end = token == "</s>"
            begins = not (joined or (pieces and not token.startswith(PIECE))) or end or not words
            joined = token.endswith(JOINED) and token != JOINED
            alone = "" if end or token == PIECE else escape(display_text(token))
            text = _button(token, side, number) if active else alone
            words += [[]] if begins else []
            words[-1].append(text)
            number += 1
        if active:
            yield " ".join(f'<span class="word">{"".join(word)}</span>' for word in words)
        else:
            yield " ".join("".join(word) for word in words).strip()


def _button(token: str, side: str, number: int) -> str:
    cls, label = "w", ""
    if token in ("</s>", PIECE):
        cls = "w mark"
        label = f' aria-label="{"end of sentence" if token == "</s>" else "beginning of a word"}"'
    attributes = f'class="{cls}" tabindex="-1" data-side="{side}" data-w="{number}"{label}'
    return f'<button type="button" {attributes}>{escape(display_text(token))}</button>'


def _reference(sentence: Sentence) -> str:
    if sentence.reference is None or sentence.reference == sentence.translation:
        return ""
    (text,) = _buttons([sentence.reference], "", active=False)
    return f'<p class="reference">reference: {text}</p>'


def _asset(name: str) -> str:
    return (files("docnmt_fairseq.report") / "assets" / name).read_text(encoding="utf-8")
