"""Sentence-level Transformers, fairseq's own and ours, as engines without documents take them; others are refused.

A document model holds one where context is only added to what its layers compute, or weighed against it: without those
parts it computes what it would if they gave nothing.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Set

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModel, TransformerModelBase
from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.layers.positions import ADDED_LEVELS, FAIRSEQ, StructuralPositions
from docnmt_fairseq.models.transformer.model import DocumentTransformer

PLAIN = (TransformerModel, TransformerModelBase, DocumentTransformer)  # not their subclasses, which do other things
MOST_POSITIONS = 4096  # of sinusoids, which have no end
SIDES = ("encoder", "decoder")
# The parts that layers compute the same without, but for what these give them (see ``context_parts``).
SEPARABLE = ("context sub-layers in the encoder", "context sub-layers in the decoder", "target context")
WITHOUT = "--without-context"


@dataclass
class SentenceTransformer:
    """A Transformer that sees one sentence at a time.

    Attributes:
        model: of one of ``PLAIN``, in float32 on the CPU.
        taken: the parameters that an engine was given, by ``id``.
    """

    model: BaseFairseqModel
    taken: Set[int] = field(default_factory=set)

    @classmethod
    def of(cls, trained: TrainedModel, engine: str) -> "SentenceTransformer":
        """The model that was trained.

        Args:
            trained: the model.
            engine: that is to translate with it, for messages.

        Raises:
            InputError: it is none of these, or looks across sentences.
        """
        model, task = trained.ensemble.model, trained.ensemble.task
        path = trained.ensemble.paths[0]
        problems = list(_problems(model, trained.without_context))
        if max(getattr(task, "window", (1, 1))) > 1:
            problems.append("reads windows of several sentences")
        if problems:
            separable = all(problem.removeprefix("has ") in SEPARABLE for problem in problems)
            inside = f", or with {WITHOUT} the sentence-level model inside" if separable else ""
            raise InputError(
                f"--path {path}: {', '.join(problems)}, which {engine} does not know; export it with --format fairseq, "
                f"and translate with docnmt translate{inside}"
            )
        found = cls(model)
        if isinstance(model, DocumentTransformer):
            context = model.context_state_keys()
            found.taken |= {id(value) for name, value in found.parameters().items() if name in context}
        return found

    @property
    def cfg(self) -> Any:
        """fairseq's configuration of the model."""
        return self.model.cfg

    def parameters(self) -> Dict[str, nn.Parameter]:
        """The parameters by name; a shared one has several."""
        return dict(self.model.named_parameters(remove_duplicate=False))

    @property
    def sinusoids(self) -> str:
        """Where positions are sinusoids on both sides, their formula; else "learned", or what else they are."""
        kinds = {_positions(getattr(self.model, side).embed_positions) for side in SIDES}
        return kinds.pop() if len(kinds) == 1 else "positions of two kinds"

    @property
    def decoder_start(self) -> int:
        """The number of the symbol that the decoder begins with; fairseq's own begins with an end of sentence."""
        decoder = self.model.decoder
        return int(getattr(decoder, "start", decoder.dictionary.eos()))

    def array(self, *names: str) -> np.ndarray:
        """A copy of a parameter, of several one after another."""
        parameters = self.parameters()
        self.taken |= {id(parameters[name]) for name in names}
        return np.concatenate([parameters[name].detach().numpy() for name in names])

    def has(self, name: str) -> bool:
        """Whether there is a parameter of this name."""
        return name in self.parameters()

    def layers(self, side: str) -> List[str]:
        """The names of the layers of the encoder or the decoder."""
        return [f"{side}.layers.{number}" for number in range(len(getattr(self.model, side).layers))]

    def feed_forward(self, layer: str) -> str:
        """Where the feed-forward of a layer has its parameters: ours inside a module, fairseq's in the layer."""
        return f"{layer}.feed_forward" if self.has(f"{layer}.feed_forward.fc1.weight") else layer

    def positions(self, side: str) -> np.ndarray:
        """The embeddings of all positions of the encoder or the decoder, [positions, d]; zeros if it has none."""
        part = getattr(self.model, side)
        embed = part.embed_positions
        learned = [] if embed is None else list(embed.parameters())
        self.taken |= set(map(id, learned))
        number, width = part.max_positions(), part.embed_tokens.embedding_dim
        number = number if learned else min(number, MOST_POSITIONS)
        with torch.no_grad():
            if isinstance(embed, StructuralPositions):
                embed = embed.word
                found = None if embed is None else embed(torch.arange(number))
            else:
                tokens = torch.full((1, number), part.padding_idx + 1)
                found = None if embed is None else embed(tokens)[0]
        return (torch.zeros(number, width) if found is None else found).numpy().copy()

    def check_all_taken(self, engine: str) -> None:
        """Makes sure that an engine was given the whole model.

        Raises:
            InputError: names the parameters that it was not given.
        """
        left = [name for name, parameter in self.parameters().items() if id(parameter) not in self.taken]
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            raise InputError(f"--path: the model has {left[0]}{more}, for which {engine} has no place")


def _positions(embed: Optional[nn.Module]) -> str:
    """The kind of the positions of tokens on one side."""
    if isinstance(embed, StructuralPositions):
        embed = embed.word
    if embed is None:
        return "no positions"
    formula: str = getattr(embed, "formula", FAIRSEQ)  # of ours; fairseq's own have one
    return "learned" if list(embed.parameters()) else formula


def _problems(model: BaseFairseqModel, without_context: bool) -> Iterator[str]:
    """Why a model is no sentence-level Transformer, or holds none."""
    if type(model) not in PLAIN:
        yield f"is a {type(model).__name__}, not fairseq's transformer or a document_transformer without context"
        return
    if isinstance(model, DocumentTransformer):
        parts = [part for part, keys in model.context_parts().items() if keys]
        yield from (f"has {part}" for part in parts if not (without_context and part in SEPARABLE))
        if without_context and any(layer.placement == "replace" for layer in model.encoder.layers):
            yield "has context in the place of self-attention (--context-placement replace)"
        yield from _structural(model.encoder.embed_positions)
    if model.decoder.adaptive_softmax is not None:
        yield "has an adaptive softmax (--adaptive-softmax-cutoff)"
    if getattr(model.decoder, "cross_self_attention", False):
        yield "has one attention to both sides (--cross-self-attention)"


def _structural(positions: StructuralPositions) -> Iterator[str]:
    if positions.word is not None and positions.word_scope == "document":
        yield "counts words from the start of the document (--word-positions-from)"
    for level in ADDED_LEVELS:
        table = getattr(positions, level)
        if table is not None and not list(table.parameters()):  # a learned one is a part of its own
            yield f"has {level} positions"
