"""Context-free indicator χ of the tokens of a document, by χ-gated layer."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import Dict, List

import numpy as np
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ReportsChi
from docnmt_fairseq.layers.capture import ContextFreeIndicator
from docnmt_fairseq.layers.sentence_encoders import SentenceEncoder
from docnmt_fairseq.report.html import display_text, table
from docnmt_fairseq.report.inspection import Inspection, Side

NOTE = (
    "χ is 1 for context-free words by the formula χ·v + (1 − χ)·w′ of a layer. In a feed-forward or convolution the "
    "word is then transformed by the layer, and for χ = 0 replaced by a value shared by all words. In a bag of words "
    "(ca-bsfe) χ = 1 replaces the word by the shared value. For attention (ca-att) χ is the mean over the attended "
    "positions, and 1 if the vector depends on the word alone; for a recurrent cell (ca-rnn) it is the gate f."
)
# Display names of the parts of a module name.
NAMES = {
    **{"feed_forward": "feed-forward", "encoder_attn": "attention", "cell": "recurrent cell"},
    **dict.fromkeys(("layers", "combination", "attentions", "state_sum"), ""),
}


@dataclass
class Indicators:
    """χ of one layer."""

    name: str  # module, such as encoder.layers.3.feed_forward
    side: str  # of its tokens, "source" or "target"
    chi: Dict[int, float] = field(default_factory=dict)  # by token of the document

    @property
    def title(self) -> str:
        """Position in the model, for display."""
        part, *path = self.name.split(".")
        number = next((step for step in path if step.isdigit()), None) if path[0] == "layers" else None
        if number is not None:
            path.remove(number)
            part = f"{part} layer {int(number) + 1}"
        steps = [str(int(step) + 1) if step.isdigit() else NAMES.get(step, step.replace("_", " ")) for step in path]
        what = " ".join(step for step in steps if step)
        return f"{part}: {what}" if what else part


def indicators_of(model: nn.Module, inspection: Inspection) -> List[Indicators]:
    """χ of every layer over the tokens of the document, in the order of the model."""
    found = []
    for name, module in model.named_modules():
        if not isinstance(module, ReportsChi) or name.startswith("encoder.extra_sources."):
            continue
        # Decoder layers with context encode source sentences.
        source = name.startswith("encoder.") or isinstance(module, SentenceEncoder)
        of_layer = Indicators(name, "source" if source else "target")
        for chunk in inspection.chunks:
            side = getattr(chunk, of_layer.side)
            for evidence in chunk.capture.of(module):
                if isinstance(evidence, ContextFreeIndicator):
                    of_layer.chi.update(_by_token(evidence.chi, side))
        if of_layer.chi:
            found.append(of_layer)
    return found


def _by_token(chi: Tensor, side: Side) -> Dict[int, float]:
    """χ by token of the document, from χ of all tokens of a chunk or of its decoded tokens."""
    tokens = side.tokens if len(chi) == side.rows.total else side.tokens[side.decoded]
    if len(chi) != len(tokens):
        return {}
    decoded = side.decoded if len(chi) == side.rows.total else np.ones(len(tokens), dtype=bool)
    numbers = zip(tokens.tolist(), decoded.tolist(), chi.tolist())
    return {token: value for token, is_decoded, value in numbers if is_decoded and value == value}  # NaN: undefined


def section(layers: List[Indicators], inspection: Inspection) -> str:
    """Table of mean χ by token type and layer for each side, most context-free first."""
    tables = []
    for side, name in (("source", "source"), ("target", "translation")):
        of_side = [layer for layer in layers if layer.side == side]
        tokens = [token for sentence in inspection.sentences for token in getattr(sentence, name)]
        places: Dict[str, List[int]] = defaultdict(list)
        for number, token in enumerate(tokens):
            places[token].append(number)
        rows = []
        for token, numbers in places.items():
            of_layers = [[layer.chi[number] for number in numbers if number in layer.chi] for layer in of_side]
            means = [fmean(values) if values else None for values in of_layers]
            known = [mean for mean in means if mean is not None]
            if known:
                rows.append((fmean(known), token, len(numbers), means))
        rows.sort(key=lambda row: (-row[0], row[1]))
        cells = [
            [display_text(token), str(times), *("" if chi is None else f"{chi:.3f}" for chi in (mean, *means))]
            for mean, token, times, means in rows
        ]
        if of_side:
            header = ["word", "count", "mean χ", *[layer.title for layer in of_side]]
            tables.append(table(header, cells, f"{name}: mean χ by word type, most context-free first"))
    return f"<p>{NOTE}</p>{''.join(tables)}"
