"""Sentence-level Transformers, fairseq's and ours, for engines without document context.

A document model contains one if context is only added to the output of its layers: without these parts it computes what
it would if they returned zero.
"""

from typing import Iterable, Iterator, List, Optional

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModel, TransformerModelBase
from torch import nn
from tqdm import tqdm

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.layout import ACTIVATIONS, SIDES
from docnmt_fairseq.layers.positions import ADDED_LEVELS, FAIRSEQ, StructuralPositions
from docnmt_fairseq.models.transformer.model import DocumentTransformer

PLAIN = (TransformerModel, TransformerModelBase, DocumentTransformer)  # without subclasses
MAX_SINUSOIDS = 4096  # positions of exported sinusoids
SEPARABLE = ("context sub-layers in the encoder", "context sub-layers in the decoder", "target context")


class SentenceTransformer:
    """Transformer that translates one sentence at a time; records which parameters are exported.

    Args:
        model: model of a class of ``PLAIN``, in float32 on the CPU.

    Attributes:
        parameters: parameters by name; a shared one has several names.
        decoder_start: first input symbol of the decoder.
    """

    def __init__(self, model: BaseFairseqModel):
        self.model, self.cfg = model, model.cfg
        self.parameters = dict(model.named_parameters(remove_duplicate=False))
        self.decoder_start = int(getattr(model.decoder, "start", model.decoder.dictionary.eos()))
        context = model.context_state_keys() if isinstance(model, DocumentTransformer) else ()
        self._taken = {id(value) for name, value in self.parameters.items() if name in context}
        total = len(set(map(id, self.parameters.values())) - self._taken)
        self._progress = tqdm(total=total, desc="export", unit=" parameters", disable=None)

    @classmethod
    def of(cls, ensemble: Ensemble, engine: str, without_context: bool = False) -> "SentenceTransformer":
        """Returns a model, or the sentence-level part of a document model.

        Raises:
            InputError: another model, or one that uses context, which the engine does not support.
        """
        model, task = ensemble.model, ensemble.task
        problems = list(_problems(model, without_context))
        if max(getattr(task, "window", (1, 1))) > 1:
            problems.append("reads windows of several sentences")
        if problems:
            separable = all(problem.removeprefix("has ") in SEPARABLE for problem in problems)
            remedy = "; use --without-context to export its sentence-level part" if separable else ""
            raise InputError(
                f"--path {ensemble.paths[0]}: {', '.join(problems)}, which {engine} does not support{remedy}"
            )
        return cls(model)

    @property
    def position_kind(self) -> str:
        """Returns the formula of the sinusoids, "learned", or a description of other positions."""
        kinds = {_position_kind(getattr(self.model, side).embed_positions) for side in SIDES}
        return kinds.pop() if len(kinds) == 1 else "positions of two kinds"

    def array(self, *names: str) -> np.ndarray:
        """Returns a copy of a parameter, or of several concatenated."""
        self._take(self.parameters[name] for name in names)
        return np.concatenate([self.parameters[name].detach().numpy() for name in names])

    def has(self, name: str) -> bool:
        """Returns whether a parameter exists."""
        return name in self.parameters

    def layers(self, side: str) -> List[str]:
        """Returns the names of the layers of one side."""
        return [f"{side}.layers.{number}" for number in range(len(getattr(self.model, side).layers))]

    def feed_forward(self, layer: str) -> str:
        """Returns the name of the module with ``fc1`` and ``fc2`` of a layer."""
        return f"{layer}.feed_forward" if self.has(f"{layer}.feed_forward.fc1.weight") else layer

    @torch.no_grad()
    def positions(self, side: str) -> np.ndarray:
        """Returns the embeddings of all positions of a side [positions, d]; zeros without positions."""
        part = getattr(self.model, side)
        embed, number = part.embed_positions, part.max_positions()
        learned = [] if embed is None else list(embed.parameters())
        self._take(learned)
        number = number if learned else min(number, MAX_SINUSOIDS)
        if isinstance(embed, StructuralPositions):
            found = None if embed.word is None else embed.word(torch.arange(number))
        else:
            found = None if embed is None else embed(torch.full((1, number), part.padding_idx + 1))[0]
        return (torch.zeros(number, part.embed_tokens.embedding_dim) if found is None else found).numpy().copy()

    def _take(self, parameters: Iterable[nn.Parameter]) -> None:
        new = set(map(id, parameters)) - self._taken
        self._taken |= new
        self._progress.update(len(new))

    def check_all_taken(self, engine: str) -> None:
        """Raises :class:`InputError` if a parameter has not been exported."""
        self._progress.close()
        left = [name for name, parameter in self.parameters.items() if id(parameter) not in self._taken]
        if left:
            raise InputError(f"--path: {engine} does not support {len(left)} parameters of the model: {left[0]}, …")


def _position_kind(embed: Optional[nn.Module]) -> str:
    embed = embed.word if isinstance(embed, StructuralPositions) else embed
    if embed is None:
        return "no positions"
    return "learned" if list(embed.parameters()) else str(getattr(embed, "formula", FAIRSEQ))


def _problems(model: BaseFairseqModel, without_context: bool) -> Iterator[str]:
    """Yields the reasons why a model is not, or does not contain, a sentence-level Transformer."""
    if type(model) not in PLAIN:
        yield f"is a {type(model).__name__}"
        return
    if isinstance(model, DocumentTransformer):
        parts = [part for part, keys in model.context_parts().items() if keys]
        yield from (f"has {part}" for part in parts if not (without_context and part in SEPARABLE))
        if without_context and any(layer.placement == "replace" for layer in model.encoder.layers):
            yield "has context in place of self-attention (--context-placement replace)"
        positions = model.encoder.embed_positions
        if positions.word is not None and positions.word_scope == "document":
            yield "counts words from the start of the document (--word-positions-from)"
        for level in ADDED_LEVELS:
            table = getattr(positions, level)
            if table is not None and not list(table.parameters()):  # learned tables are in context_parts
                yield f"has {level} positions"
    if model.cfg.activation_fn not in (*ACTIVATIONS.values(), "gelu_fast"):
        yield f"has --activation-fn {model.cfg.activation_fn}"
    if model.decoder.adaptive_softmax is not None:
        yield "has an adaptive softmax (--adaptive-softmax-cutoff)"
    if getattr(model.decoder, "cross_self_attention", False):
        yield "has one attention to both sides (--cross-self-attention)"
