"""How context-free the χ-gated layers of a model found the words of a document."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict, List

from torch import nn

from docnmt_fairseq.modules.context_aware_layers.chi_gated import ChiGated
from docnmt_fairseq.modules.recording import ContextFreeIndicator
from docnmt_fairseq.modules.sentence_encoders import SentenceEncoder
from docnmt_fairseq.report.inspection import Inspection
from docnmt_fairseq.report.page import shown, table

NOTE = (
    "χ is 1 where a word is free of context by a layer's formula χ·v + (1 − χ)·w′. In a feed-forward or convolution "
    "it then passes as the layer maps it, and at 0 a value that is the same for all words stands for it. In a bag of "
    "words (ca-bsfe) it is 1 where what all words share stands for the word."
)


@dataclass
class Indicators:
    """χ of one layer.

    Attributes:
        name: of the module, such as ``encoder.layers.3.fc1``.
        side: whose words it saw, ``source`` or ``target``.
        chi: by word of the document.
    """

    name: str
    side: str
    chi: Dict[int, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Where it stands, for people."""
        part, _, number, *path = self.name.split(".")
        what = "feed-forward" if path[0] == "fc1" else path[-1].replace("_", " ")
        inner = f" {int(path[-1]) + 1}" if path[-1].isdigit() else ""
        return f"{part} layer {int(number) + 1}: {what}{inner}"


def indicators_of(model: nn.Module, inspection: Inspection) -> List[Indicators]:
    """Returns χ of every layer that saw the document's words one by one, in the model's order."""
    found = []
    for name, module in model.named_modules():
        if not isinstance(module, ChiGated):
            continue
        # Decoder layers with context encode source sentences.
        source = name.startswith("encoder.") or isinstance(module, SentenceEncoder)
        of_layer = Indicators(name, "source" if source else "target")
        for piece in inspection.pieces:
            side = getattr(piece, of_layer.side)
            for evidence in piece.recording.of(module):
                if isinstance(evidence, ContextFreeIndicator) and len(evidence.chi) == side.rows.total:
                    numbers = zip(side.words.tolist(), side.decoded.tolist(), evidence.chi.tolist())
                    of_layer.chi.update({word: chi for word, decoded, chi in numbers if decoded})
        if of_layer.chi:
            found.append(of_layer)
    return found


def section(layers: List[Indicators], inspection: Inspection) -> str:
    """Returns a table of mean χ a word type and layer for each side that has any, the most context-free first."""
    tables = []
    for side, name in (("source", "source"), ("target", "translation")):
        of_side = [layer for layer in layers if layer.side == side]
        tokens = [token for sentence in inspection.sentences for token in getattr(sentence, name)]
        places: Dict[str, List[int]] = defaultdict(list)
        for number, token in enumerate(tokens):
            places[token].append(number)
        rows = []
        for token, numbers in places.items():
            means = [sum(layer.chi[number] for number in numbers) / len(numbers) for layer in of_side]
            rows.append((sum(means) / max(1, len(means)), token, len(numbers), means))
        rows.sort(key=lambda row: (-row[0], row[1]))
        cells = [[shown(t), str(n), f"{mean:.3f}", *[f"{m:.3f}" for m in means]] for mean, t, n, means in rows]
        if of_side:
            header = ["word", "times", "mean χ", *[layer.title for layer in of_side]]
            tables.append(table(header, cells, f"{name}: mean χ of every word type, the most context-free first"))
    return f"<p>{NOTE}</p>{''.join(tables)}"
