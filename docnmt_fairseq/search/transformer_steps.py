"""Step decoder of ``document_transformer``: sentences join at any time, reordering copies no states."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.context.base import DecoderContextMechanism
from docnmt_fairseq.layers.lora import weight_of
from docnmt_fairseq.layers.packed_linear import FLOAT32, pack_linears
from docnmt_fairseq.layers.search_kernels import attend_hypotheses
from docnmt_fairseq.models.base import right_padded_with_layout
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs, PreviousTargets
from docnmt_fairseq.models.transformer.attention import SourceAttention, TargetSelfAttention
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.search.sequential_decoding import project
from docnmt_fairseq.search.slots import SlotTensor, StepStates, TokenCache
from docnmt_fairseq.search.steps import Translated

POSITIONS = 64  # initially computed


@dataclass(frozen=True)
class EncodedSources:
    """Encoded batch.

    Attributes:
        sources: encoder outputs.
        histories: by document, the target context of its last translations, [m_t, w] each.
    """

    sources: EncoderOutputs
    histories: Dict[int, List[Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedSentences:
    """Projected states that the hypotheses of sentences of a batch attend to.

    Attributes:
        batch: encoded batch.
        documents: [k] document of each sentence.
        parts: by attention module, tensors [k, ...].
    """

    batch: EncodedSources
    documents: np.ndarray
    parts: Dict[nn.Module, List[Tensor]]


class SlotView:
    """``DecoderInput`` of the hypotheses of the sentences in slots, with x [S, beam, d].

    Args:
        steps: step decoder.
    """

    def __init__(self, steps: "TransformerSteps"):
        self.steps = steps

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """Implements ``DecoderInput``."""
        cache = self.steps.cache
        q, k, v = self.steps.projections[attention](x).unflatten(-1, (3, attention.heads, -1)).unbind(2)
        k, v = cache.write(attention, (k.transpose(1, 2), v.transpose(1, 2)))
        return attention.out_proj(attend_hypotheses(q, k, v, cache.seen))

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """Implements ``DecoderInput``, without weights."""
        return attention.attend_hypotheses(x, [part.seen() for part in self.steps.parts[attention]])

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """Implements ``DecoderInput``."""
        projected, mask = self.steps.documents.of(mechanism)
        return mechanism.attend_masked(x.flatten(0, 1), projected, mask.repeat_interleave(x.size(1), 0)).view_as(x)


class SlotDocuments:
    """Documents of the sentences in slots, for context mechanisms of the decoder."""

    def __init__(self) -> None:
        self.owners: List[Tuple[EncodedSources, int]] = []  # batch and document of each slot
        self.found: Dict[nn.Module, Tuple[Tensor, Tensor]] = {}

    def put(self, prepared: PreparedSentences, places: np.ndarray, slots: np.ndarray) -> None:
        """Puts sentences into slots."""
        self.owners += [(prepared.batch, -1)] * (int(slots.max()) + 1 - len(self.owners))
        for place, slot in zip(places, slots):
            self.owners[slot] = (prepared.batch, int(prepared.documents[place]))
        self.found = {}

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        self.owners, self.found = [self.owners[slot] for slot in slots], {}

    def of(self, mechanism: DecoderContextMechanism) -> Tuple[Tensor, Tensor]:
        """Returns the projected states of all sentences of the batches, [R, w], and the mask of each slot, [S, R]."""
        if mechanism not in self.found:
            batches = {id(batch): batch for batch, _ in self.owners}
            projected, masks = [], []
            for batch in batches.values():
                sources, layout = batch.sources, batch.sources.layout
                project = partial(mechanism.project, sources.states, layout)
                projected.append(sources.per_batch(mechanism, project))
                documents = layout.index(np.array([of if own is batch else -1 for own, of in self.owners]))
                masks.append(documents[:, None] == layout.sentences.item_row)
            self.found[mechanism] = torch.cat(projected), torch.cat(masks, dim=1)
        return self.found[mechanism]


class TransformerSteps:
    """Implements :class:`~docnmt_fairseq.search.steps.StepDecoder`.

    Args:
        model: model in evaluation mode.
        beam: number of hypotheses per sentence.
        temperature: divisor of the logits.
        device: device of the model.
        precision: precision of linear layers on a CPU, see :mod:`docnmt_fairseq.layers.packed_linear`.
    """

    refills = True

    def __init__(
        self,
        model: DocumentTransformer,
        beam: int,
        temperature: float,
        device: torch.device,
        precision: str = FLOAT32,
    ):
        self.model, self.decoder, self.temperature, self.device = model, model.decoder, temperature, device
        self.target_context = self.decoder.target_context
        self.looks_back = self.target_context is not None
        attentions = [layer.self_attn for layer in self.decoder.layers]
        self.projections = {attention: fused(attention) for attention in attentions}
        for projection in self.projections.values():
            pack_linears(projection, precision)
        self.positions = torch.empty(0)
        self.beam, self.view = beam, SlotView(self)
        self.begin()

    def begin(self) -> None:
        """Starts or ends a search: drops all slots."""
        dtype = self.decoder.embed_tokens.weight.dtype
        self.cache, self.documents = TokenCache(self.beam, self.device, dtype), SlotDocuments()
        self.states = StepStates()
        self.parts: Dict[nn.Module, List[SlotTensor]] = {}

    def encode(self, sample: Dict[str, Any]) -> EncodedSources:
        """Encodes a batch."""
        net_input, encoder = sample["net_input"], self.model.encoder
        src_tokens, layout = net_input["src_tokens"], net_input.get("layout")
        src_tokens, layout = right_padded_with_layout(src_tokens, layout, encoder.padding_idx, encoder.plans)
        return EncodedSources(encoder.encode(src_tokens, layout, net_input.get("extra_sources", ())))

    def prepare(self, encoded: EncodedSources, sentences: np.ndarray) -> PreparedSentences:
        """Computes what hypotheses attend to."""
        sources = encoded.sources.taking(sentences)
        parts = {layer.encoder_attn: layer.encoder_attn.project_sources(sources) for layer in self.decoder.layers}
        documents = sources.layout.decoded_document[sentences]
        if self.target_context is not None:
            parts[self.target_context] = self._previous([encoded.histories.get(int(n), []) for n in documents])
        return PreparedSentences(encoded, documents, parts)

    def _previous(self, histories: List[List[Tensor]]) -> List[Tensor]:
        """Returns the target context of sentences, [k, J, L, w], and its mask, [k, J, L, 1]."""
        assert self.target_context is not None
        if any(histories):
            previous = PreviousTargets.of_sentences(histories)
            return [previous.projected, ~previous.padding[..., None]]
        width = self.decoder.embed_tokens.embedding_dim
        nothing = self.decoder.embed_tokens.weight.new_zeros(len(histories), 1, 1, width)
        projected = self.target_context.mechanism.project_targets(nothing)
        return [torch.zeros_like(projected), projected.new_zeros(*projected.shape[:-1], 1, dtype=torch.bool)]

    def join(self, prepared: PreparedSentences, places: np.ndarray, slots: np.ndarray) -> None:
        """Puts prepared sentences into slots."""
        self.cache.clear(slots)
        self.documents.put(prepared, places, slots)
        index = torch.from_numpy(places).to(self.device)
        for owner, parts in prepared.parts.items():
            held = self.parts.setdefault(owner, [SlotTensor() for _ in parts])
            for part, values in zip(held, parts):
                part.put(values[index], slots)

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Returns logits of the next tokens, [S, beam, V]."""
        last = torch.from_numpy(tokens[np.arange(len(steps)), :, steps]).to(self.device)
        self.cache.begin_step()
        x, _ = self.decoder.through_layers(self.decoder.embed(last, self._positions(steps)), self.view)
        if self.target_context is not None:
            self.states.write(x, steps)
            projected, seen = (part.seen() for part in self.parts[self.target_context])
            x = self.target_context.look_back(x, PreviousTargets(projected, ~seen.squeeze(-1)))
        logits: Tensor = self.decoder.output_layer(x)
        return logits if self.temperature == 1 else logits / self.temperature

    def _positions(self, steps: np.ndarray) -> Optional[Tensor]:
        """Returns the position embeddings, [S, 1, d]."""
        embed = self.decoder.embed_positions
        if embed is None:
            return None
        needed, there = int(steps.max()) + 1, len(self.positions)
        if needed > there:
            most = min(max(2 * there, needed, POSITIONS), max(needed, self.decoder.max_positions()))
            words = torch.full((1, most), self.decoder.dictionary.eos(), device=self.device)
            self.positions = embed(words)[0].contiguous()
        return self.positions[torch.from_numpy(steps).to(self.device), None]

    def reorder(self, parents: np.ndarray) -> None:
        """Makes the hypotheses of the next step continue ``parents`` [S, beam]."""
        self.cache.reorder(torch.from_numpy(parents).to(self.device))

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        self.cache.keep(slots)
        self.documents.keep(slots)
        self.states.keep(slots)
        for parts in self.parts.values():
            for part in parts:
                part.keep(slots)

    def remember(self, encoded: EncodedSources, sentences: Sequence[int], translated: List[Translated]) -> None:
        """Stores translations as target context."""
        assert self.target_context is not None
        states = [self.states.of(one.slot, one.hypotheses) for one in translated]
        projected = self.target_context.mechanism.project_targets(torch.cat(states)[None])[0]
        self._append(encoded, sentences, projected.split([len(one) for one in states]))

    def remember_given(self, encoded: EncodedSources, sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """Stores given translations as target context."""
        sources = encoded.sources.taking(np.array(sentences))
        self._append(encoded, sentences, project(self.decoder, [one.to(self.device) for one in tokens], sources))

    def _append(self, encoded: EncodedSources, sentences: Sequence[int], projected: Sequence[Tensor]) -> None:
        """Adds projected sentences [m_t, w] to the target context of their documents."""
        assert self.target_context is not None
        contexts = self.target_context.mechanism.contexts
        for document, of_sentence in zip(encoded.sources.layout.decoded_document[list(sentences)].tolist(), projected):
            encoded.histories[document] = [*encoded.histories.get(document, []), of_sentence][-contexts:]


def fused(attention: TargetSelfAttention) -> nn.Linear:
    """Returns one linear layer for queries, keys and values, [..., 3 · d]."""
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    linear = nn.Linear(attention.q_proj.in_features, 3 * attention.q_proj.out_features, device="meta")
    linear.weight = nn.Parameter(torch.cat([weight_of(part) for part in parts]), requires_grad=False)
    linear.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]), requires_grad=False)
    return linear
