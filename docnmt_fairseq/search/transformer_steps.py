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
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs, PreviousTargets
from docnmt_fairseq.models.transformer.decoder import SourceAttention, TargetSelfAttention
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.search.sequential_decoding import project
from docnmt_fairseq.search.slots import SlotTensor, StepStates, TokenCache
from docnmt_fairseq.search.steps import StepDecoder, Translated

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


class TransformerSteps(StepDecoder):
    """Step decoder, and the ``DecoderInput`` of the hypotheses in slots, with x [S, beam, d].

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
        self.projections = {layer.self_attn: fused(layer.self_attn) for layer in self.decoder.layers}
        for projection in self.projections.values():
            pack_linears(projection, precision)
        self.positions = torch.empty(0)
        self.beam = beam
        self.begin()

    def begin(self) -> None:
        self.cache = TokenCache(self.beam, self.device, self.decoder.embed_tokens.weight.dtype)
        self.states = StepStates()
        self.parts: Dict[nn.Module, List[SlotTensor]] = {}
        self.owners: List[Tuple[EncodedSources, int]] = []  # batch and document of each slot
        self.documents: Dict[nn.Module, Tuple[Tensor, Tensor]] = {}  # by context mechanism, for these owners

    def encode(self, sample: Dict[str, Any]) -> EncodedSources:
        net_input, encoder = sample["net_input"], self.model.encoder
        src_tokens, layout = encoder.with_layout(net_input["src_tokens"], net_input.get("layout"))
        return EncodedSources(encoder.encode(src_tokens, layout, net_input.get("extra_sources", ())))

    def prepare(self, encoded: EncodedSources, rows: np.ndarray) -> PreparedSentences:
        sources = encoded.sources.taking(rows)
        parts = {layer.encoder_attn: layer.encoder_attn.project_sources(sources) for layer in self.decoder.layers}
        documents = sources.layout.decoded_document[rows]
        if self.target_context is not None:
            parts[self.target_context] = self._previous([encoded.histories.get(int(n), []) for n in documents])
        return PreparedSentences(encoded, documents, parts)

    def _previous(self, histories: List[List[Tensor]]) -> List[Tensor]:
        """Target context of sentences, [k, J, L, w], and its mask, [k, J, L, 1]."""
        assert self.target_context is not None
        if any(histories):
            previous = PreviousTargets.of_sentences(histories)
            return [previous.projected, ~previous.padding[..., None]]
        width = self.decoder.embed_tokens.embedding_dim
        nothing = self.decoder.embed_tokens.weight.new_zeros(len(histories), 1, 1, width)
        projected = self.target_context.mechanism.project_targets(nothing)
        return [torch.zeros_like(projected), projected.new_zeros(*projected.shape[:-1], 1, dtype=torch.bool)]

    def join(self, prepared: PreparedSentences, places: np.ndarray, slots: np.ndarray) -> None:
        self.cache.clear(slots)
        self.owners += [(prepared.batch, -1)] * (int(slots.max()) + 1 - len(self.owners))
        for place, slot in zip(places, slots):
            self.owners[slot] = (prepared.batch, int(prepared.documents[place]))
        self.documents = {}
        index = torch.from_numpy(places).to(self.device)
        for owner, parts in prepared.parts.items():
            held = self.parts.setdefault(owner, [SlotTensor() for _ in parts])
            for part, values in zip(held, parts):
                part.put(values[index], slots)

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        last = torch.from_numpy(tokens[np.arange(len(steps)), :, steps]).to(self.device)
        self.cache.begin_step()
        x, _ = self.decoder.through_layers(self.decoder.embed(last, self._positions(steps)), self)
        if self.target_context is not None:
            self.states.write(x, steps)
            projected, seen = (part.seen() for part in self.parts[self.target_context])
            x = self.target_context.look_back(x, PreviousTargets(projected, ~seen.squeeze(-1)))
        logits: Tensor = self.decoder.output_layer(x)
        return logits if self.temperature == 1 else logits / self.temperature

    def _positions(self, steps: np.ndarray) -> Optional[Tensor]:
        """Position embeddings, [S, 1, d]."""
        embed = self.decoder.embed_positions
        if embed is None:
            return None
        needed, computed = int(steps.max()) + 1, len(self.positions)
        if needed > computed:
            most = min(max(2 * computed, needed, POSITIONS), max(needed, self.decoder.max_positions()))
            words = torch.full((1, most), self.decoder.dictionary.eos(), device=self.device)
            self.positions = embed(words)[0].contiguous()
        return self.positions[torch.from_numpy(steps).to(self.device), None]

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        q, k, v = self.projections[attention](x).unflatten(-1, (3, attention.heads, -1)).unbind(2)
        k, v = self.cache.write(attention, (k.transpose(1, 2), v.transpose(1, 2)))
        return attention.out_proj(attend_hypotheses(q, k, v, self.cache.seen))

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        return attention.attend_hypotheses(x, [part.seen() for part in self.parts[attention]])

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        if mechanism not in self.documents:
            batches = {id(batch): batch for batch, _ in self.owners}
            projected, masks = [], []
            for batch in batches.values():
                sources, layout = batch.sources, batch.sources.layout
                projected.append(sources.per_batch(mechanism, partial(mechanism.project, sources.states, layout)))
                documents = layout.index(np.array([of if own is batch else -1 for own, of in self.owners]))
                masks.append(documents[:, None] == layout.sentences.item_row)
            self.documents[mechanism] = torch.cat(projected), torch.cat(masks, dim=1)
        states, mask = self.documents[mechanism]  # [R, w] of all batches and [S, R]
        return mechanism.attend_masked(x.flatten(0, 1), states, mask.repeat_interleave(x.size(1), 0)).view_as(x)

    def reorder(self, parents: np.ndarray) -> None:
        self.cache.reorder(torch.from_numpy(parents).to(self.device))

    def keep(self, slots: np.ndarray) -> None:
        self.cache.keep(slots)
        self.states.keep(slots)
        self.owners, self.documents = [self.owners[slot] for slot in slots], {}
        for parts in self.parts.values():
            for part in parts:
                part.keep(slots)

    def remember(self, encoded: EncodedSources, translated: List[Translated]) -> None:
        if self.target_context is None:
            return
        own = [one for one in translated if one.given is None]
        if own:
            states = [self.states.of(one.slot, one.made_by) for one in own]
            projected = self.target_context.mechanism.project_targets(torch.cat(states)[None])[0]
            self._append(encoded, [one.row for one in own], projected.split([len(one) for one in states]))
        given = [(one.row, one.given.to(self.device)) for one in translated if one.given is not None]
        if given:
            rows, tokens = map(list, zip(*given))
            self._append(encoded, rows, project(self.decoder, tokens, encoded.sources.taking(np.array(rows))))

    def _append(self, encoded: EncodedSources, rows: List[int], projected: Sequence[Tensor]) -> None:
        """Adds projected sentences [m_t, w] to the target context of their documents."""
        assert self.target_context is not None
        contexts = self.target_context.mechanism.contexts
        for document, of_sentence in zip(encoded.sources.layout.decoded_document[rows].tolist(), projected):
            encoded.histories[document] = [*encoded.histories.get(document, []), of_sentence][-contexts:]


def fused(attention: TargetSelfAttention) -> nn.Linear:
    """Linear layer for queries, keys and values together, [..., 3 · d]."""
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    linear = nn.Linear(attention.q_proj.in_features, 3 * attention.q_proj.out_features, device="meta")
    linear.weight = nn.Parameter(torch.cat([weight_of(part) for part in parts]), requires_grad=False)
    linear.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]), requires_grad=False)
    return linear
