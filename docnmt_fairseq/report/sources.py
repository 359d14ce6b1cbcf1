"""Attention of the tokens of a translation to several sources, as in figure 2 of [L]."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.plots import plot_source_weights
from docnmt_fairseq.layers.capture import SourceShares
from docnmt_fairseq.report.html import as_script, display_text
from docnmt_fairseq.report.inspection import Inspection

MEAN = "mean of all layers"
LINE_LENGTH = 96  # characters per row of a heat map
FIRST_SENTENCES = 3  # in a picture
NOTE = (
    "Each column is a word of the translation, or a part of one, with the percentage of its attention to each source "
    "and to the sentinel, if any (the decoder's own state)."
)
INDEPENDENT = (
    "This model attends to each source independently, without a distribution over sources: each has 100 %, or with "
    "CA-ATT the share without v(c)."
)
INCOMPLETE = "The remainder to 100 is the share of v(c), which depends on the word alone (CA-ATT)."


@dataclass(frozen=True)
class Shares:
    """Shares of the sources for every token of a translated document.

    Attributes:
        names: the K sources, optionally with a sentinel last.
        layers: [tokens, K] by title of the layer; the first is the mean if there are several.
    """

    names: Tuple[str, ...]
    layers: Dict[str, Tensor]

    @property
    def mean(self) -> Tensor:
        """Mean of all layers, [tokens, K]."""
        return next(iter(self.layers.values()))

    @property
    def independent(self) -> bool:
        """True if the shares are not a distribution over the sources."""
        return float(self.mean.sum(1).max()) > 1.01


def shares_of(model: nn.Module, inspection: Inspection) -> Optional[Shares]:
    """Shares over all chunks; None for a model with one source and no sentinel."""
    tokens = sum(len(sentence.translation) for sentence in inspection.sentences)
    names: Tuple[str, ...] = ()
    layers: Dict[str, Tensor] = {}
    for name, module in model.named_modules():
        for chunk in inspection.chunks:
            for evidence in chunk.capture.of(module):
                if isinstance(evidence, SourceShares) and len(evidence.names) > 1:
                    names = evidence.names
                    shares = layers.setdefault(_title(name), torch.zeros(tokens, len(names)))
                    shares[torch.from_numpy(chunk.target.tokens)] = evidence.shares.float()
    if not layers:
        return None
    if len(layers) > 1:
        layers = {MEAN: torch.stack(list(layers.values())).mean(0), **layers}
    return Shares(names, layers)


def _title(name: str) -> str:
    number = next((int(step) + 1 for step in name.split(".") if step.isdigit()), None)
    return "decoder" if number is None else f"decoder layer {number}"


def section(shares: Shares, inspection: Inspection) -> str:
    """Heat maps of all sentences, initially of the mean; a script switches layers."""
    notes = [NOTE]
    if shares.independent:
        notes.append(INDEPENDENT)
    elif any(float(of_layer.sum(1).min()) < 0.99 for of_layer in shares.layers.values()):
        notes.append(INCOMPLETE)
    parts = [f'<p class="note">{" ".join(notes)}</p>']
    if len(shares.layers) > 1:
        options = "".join(f'<option value="{n}">{escape(name)}</option>' for n, name in enumerate(shares.layers))
        parts.append(f'<div class="controls"><label>layer<select id="source-layer">{options}</select></label></div>')
    first = 0
    for number, sentence in enumerate(inspection.sentences):
        parts.append(f'<div class="shares"><div class="number">{number + 1}</div><div>')
        for tokens in wrap_tokens([display_text(token) for token in sentence.translation]):
            parts.append(_heat_map(shares.names, tokens, shares.mean[first : first + len(tokens)], first))
            first += len(tokens)
        parts.append("</div></div>")
    data = [percents(of_layer) for of_layer in shares.layers.values()]
    return f'{"".join(parts)}<script type="application/json" id="source-shares">{as_script(data)}</script>'


def percents(shares: Tensor) -> List[List[int]]:
    """Shares [tokens, K] in percent."""
    return shares.mul(100).round().int().tolist()


def wrap_tokens(tokens: Sequence[str]) -> Iterator[List[str]]:
    """Yields the tokens of a sentence in rows of limited length."""
    line: List[str] = []
    width = 0
    for token in tokens:
        size = max(len(token), 3) + 2
        if line and width + size > LINE_LENGTH:
            yield line
            line, width = [], 0
        line.append(token)
        width += size
    yield line


def _heat_map(names: Sequence[str], tokens: Sequence[str], shares: Tensor, first: int) -> str:
    """Table with a column per token, from token ``first`` of the document, and a row per source."""
    head = "".join(f'<th scope="col">{escape(token)}</th>' for token in tokens)
    rows = []
    for row, (name, values) in enumerate(zip(names, zip(*percents(shares)))):
        cells = "".join(
            f'<td data-w="{first + place}" data-k="{row}" style="--share:{value / 100:g}">{value}</td>'
            for place, value in enumerate(values)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0"><table class="heat"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def draw(path: Path, shares: Optional[Shares], inspection: Inspection, sentence: Optional[int] = None) -> None:
    """Draws the mean over layers of a sentence (from 1; by default the first few) as PNG.

    Raises:
        InputError: a model with one source.
    """
    if shares is None:
        raise InputError("--source-weights: the model attends to one source, without a sentinel")
    tokens = [[display_text(token) for token in sentence.translation] for sentence in inspection.sentences]
    chosen = slice(0, FIRST_SENTENCES) if sentence is None else slice(sentence - 1, sentence)
    of_sentences = shares.mean.split([len(of_sentence) for of_sentence in tokens])
    path.parent.mkdir(parents=True, exist_ok=True)
    plot_source_weights(shares.names, tokens[chosen], [part.numpy() for part in of_sentences[chosen]], path)
