"""A document whose words tell what they looked at: the part that reports and the server's page have in common."""

from dataclasses import dataclass
from html import escape
from typing import Any, Dict, List

from docnmt_fairseq.report.elements import buttons, display_text, table
from docnmt_fairseq.report.inspection import Inspection, Sentence
from docnmt_fairseq.report.views import RELEVANCE, View

SHOWN = 4  # entries of a head in the tables
PANEL = "Point at a word, or choose one by click or key (Tab, then arrows), to see the sentences and words it looks at."


@dataclass(frozen=True)
class Viewer:
    """A document and the views of its tokens, which ``assets/viewer.js`` shows.

    Attributes:
        inspection: the document.
        views: of its tokens.
        alone: what is said of a model without context mechanism.
    """

    inspection: Inspection
    views: List[View]
    alone: str = "every sentence was translated by itself"

    def to_json(self) -> Dict[str, Any]:
        """What the script reads."""
        return {"relevance": RELEVANCE, "views": [view.to_json() for view in self.views]}

    def to_html(self) -> str:
        """Notes, controls, sentences with a button a token, a panel, and tables."""
        hidden = "" if self._shown() else " hidden"  # nothing can be chosen
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return (
            f'{notes}{self._controls()}<div class="reader"><div id="reader">{self._sentences()}</div>'
            f'<aside id="panel" aria-live="polite" aria-label="What the chosen word looked at"{hidden}>'
            f"<p>{PANEL}</p></aside></div>{self._tables()}"
        )

    def _shown(self) -> List[View]:
        return [view for view in self.views if view.heads]

    @property
    def notes(self) -> List[str]:
        """What people should know before they look."""
        notes = []
        if not self.views:
            notes.append(f"This model has no context mechanism: {self.alone}.")
        silent = [view.title for view in self.views if not view.heads]
        if silent:
            why = "it reports nothing, or no word of this document has context there"
            notes.append(f"Nothing to show of {', '.join(silent)}: {why}.")
        if any(view.side == "target" for view in self._shown()):
            notes.append("A word of the translation stands for the decoder's state that predicts it.")
        return notes

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
            "source": list(buttons([s.source for s in sentences], "source", "source" in sides)),
            "target": list(buttons([s.translation for s in sentences], "target", "target" in sides)),
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


def _reference(sentence: Sentence) -> str:
    if sentence.reference is None or sentence.reference == sentence.translation:
        return ""
    (text,) = buttons([sentence.reference], "", active=False)
    return f'<p class="reference">reference: <span dir="auto">{text}</span></p>'
