"""How the tokens of a translation divide their attention over several sources, as in figure 2 of [L]."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.plots import plot_source_weights
from docnmt_fairseq.layers.capture import SourceShares
from docnmt_fairseq.report.elements import as_script, display_text
from docnmt_fairseq.report.inspection import Inspection

MEAN = "mean of all layers"
LINE = 96  # characters of a translation that stand side by side
FIRST = 3  # sentences in a picture
NOTE = (
    "Each column is a word of the translation, or a part of one; in it stands the share of its attention, in per cent, "
    "that goes to each source, and to the sentinel where there is one (the decoder's own state)."
)
APART = (
    "This model attends to each source by itself, without a distribution over them: of each the part is 100 %, or with "
    "CA-ATT what is not v(c)."
)
LESS = "What is missing from 100 is the share of v(c), which the word makes of itself alone (CA-ATT)."


@dataclass(frozen=True)
class Shares:
    """Shares of the sources for every token of a translated document.

    Attributes:
        names: of the K sources, perhaps a sentinel last.
        layers: [tokens, K] of each layer that attends, by its title; first their mean if there are several.
    """

    names: Tuple[str, ...]
    layers: Dict[str, Tensor]

    @property
    def mean(self) -> Tensor:
        """The mean of all layers, [tokens, K]."""
        return next(iter(self.layers.values()))

    @property
    def apart(self) -> bool:
        """Whether there is no distribution over the sources: their shares add up to more than 1."""
        return float(self.mean.sum(1).max()) > 1.01


def shares_of(model: nn.Module, inspection: Inspection) -> Optional[Shares]:
    """The shares of all pieces together; None of a model with one source and no sentinel."""
    tokens = sum(len(sentence.translation) for sentence in inspection.sentences)
    names: Tuple[str, ...] = ()
    layers: Dict[str, Tensor] = {}
    for name, module in model.named_modules():
        for piece in inspection.pieces:
            for evidence in piece.recording.of(module):
                if isinstance(evidence, SourceShares) and len(evidence.names) > 1:
                    names = evidence.names
                    shares = layers.setdefault(_title(name), torch.zeros(tokens, len(names)))
                    shares[torch.from_numpy(piece.target.tokens)] = evidence.shares.float()
    if not layers:
        return None
    if len(layers) > 1:
        layers = {MEAN: torch.stack(list(layers.values())).mean(0), **layers}
    return Shares(names, layers)


def _title(name: str) -> str:
    number = next((int(step) + 1 for step in name.split(".") if step.isdigit()), None)
    return "decoder" if number is None else f"decoder layer {number}"


def section(shares: Shares, inspection: Inspection) -> str:
    """The heat maps of all sentences, by default of the mean; a script shows other layers."""
    notes = [NOTE]
    if shares.apart:
        notes.append(APART)
    elif any(float(of_layer.sum(1).min()) < 0.99 for of_layer in shares.layers.values()):
        notes.append(LESS)
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
    """Shares [tokens, K] in per cent."""
    return shares.mul(100).round().int().tolist()


def wrap_tokens(tokens: Sequence[str]) -> Iterator[List[str]]:
    """Yields the tokens of a sentence in parts that fit side by side."""
    line: List[str] = []
    width = 0
    for token in tokens:
        size = max(len(token), 3) + 2
        if line and width + size > LINE:
            yield line
            line, width = [], 0
        line.append(token)
        width += size
    yield line


def _heat_map(names: Sequence[str], tokens: Sequence[str], shares: Tensor, first: int) -> str:
    """A table with a column a token and a row a source.

    Args:
        names: of the sources.
        tokens: as people read them.
        shares: [tokens, K].
        first: number of the first token in the document.
    """
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
    """Writes a picture of the mean over layers.

    Args:
        path: the PNG file.
        shares: of the document.
        inspection: the document.
        sentence: its number from 1; None: the first few.

    Raises:
        InputError: there is nothing to draw, no such sentence, or the file cannot be written.
    """
    if shares is None:
        raise InputError("--source-weights: the model attends to one source alone, without a sentinel")
    count = len(inspection.sentences)
    if sentence is not None and not 1 <= sentence <= count:
        raise InputError(f"--sentence {sentence}: the document has sentences 1 to {count}")
    tokens = [[display_text(token) for token in sentence.translation] for sentence in inspection.sentences]
    chosen = slice(0, FIRST) if sentence is None else slice(sentence - 1, sentence)
    of_sentences = shares.mean.split([len(of_sentence) for of_sentence in tokens])
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        plot_source_weights(shares.names, tokens[chosen], [part.numpy() for part in of_sentences[chosen]], path)
    except OSError as error:
        raise InputError(f"--source-weights {path}: cannot be written: {error.strerror}") from error
