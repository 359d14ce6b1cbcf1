"""The decoder of ``document_rnn``: in training over packed target tokens, group by group; in a search step by step."""

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import cheapest_groups
from docnmt_fairseq.batch.sources import OfSentence, PaddedRows, SourceKey, TargetsAndSources
from docnmt_fairseq.batch.steps import StepOrder, StepsOfTargets
from docnmt_fairseq.layers.capture import SourceShares, joined, observer
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.modules import ModulesOf
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs
from docnmt_fairseq.models.rnn.config import DocumentRNNOptions, combination_config
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.source_states import lookup, padded_sources
from docnmt_fairseq.recurrent.attentive import attentive_cell, plain_cell
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, State
from docnmt_fairseq.recurrent.layers import DeepOutput, summary

STEP_PRICE = 1000.0  # of a step of one more group, in pairs of a target token and a source state

Attended = Tuple[Tensor, Tensor, Tensor]  # s_i [·, d], c_i [·, d_c] and shares [·, K] of the layer that attends
IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


def decoding_groups(targets: np.ndarray, keys: np.ndarray) -> List[np.ndarray]:
    """Rows that go through the steps together: similar numbers of keys, which are padded; no target is.

    Args:
        targets: [S] target tokens of each row.
        keys: [S] source states that each row sees.
    """
    pairs = np.arange(int(keys.max(initial=0)) + 1) * float(targets.mean())
    return cheapest_groups(keys, pairs, STEP_PRICE * float(targets.max()))


@dataclass(frozen=True)
class DecodingPlan:
    """The sentences of a batch in groups that go through the steps together.

    Attributes:
        orders: the steps of each group.
        keys: [groups][sources] which states its sentences see.
        places: [N_t] where every target token is among those of all groups.
    """

    orders: List[StepOrder]
    keys: List[List[PaddedRows]]
    places: Tensor


@dataclass(frozen=True)
class Decoding(TargetsAndSources[DecodingPlan]):
    """How a batch is decoded step by step."""

    def make(self, layout: DocumentLayout) -> DecodingPlan:
        """See :class:`PlanKey`."""
        targets, sources = layout.target_tokens, [layout.plan(source) for source in self.sources]
        groups = decoding_groups(targets.lengths, np.sum([source.lengths for source in sources], axis=0))
        orders = [StepOrder(targets, rows) for rows in groups]
        keys = [[PaddedRows(*map(layout.index, source.block(order.rows))) for source in sources] for order in orders]
        return DecodingPlan(orders, keys, torch.cat([order.items for order in orders]).argsort())


class RecurrentDecoder(FairseqIncrementalDecoder):
    """Recurrent layers; the first attends to all sources at every step, and the output sees what it attended to.

    Args:
        cfg: of the model.
        dictionary: of the target language.
        embed: the embeddings.
        source_dims: widths of the states of every source, the sentence itself being the first.
        extra_rows: of every extra source, which of its states decoded sentences see.
        names: of what attention is divided over: the sources, perhaps a sentinel.
    """

    def __init__(
        self,
        cfg: DocumentRNNOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        source_dims: Tuple[int, ...],
        extra_rows: List[SourceKey],
        names: Tuple[str, ...],
    ):
        super().__init__(dictionary)
        self.decoding, self.names = Decoding((OfSentence(), *extra_rows)), names
        self.embed_tokens = embed
        self.padding_idx = embed.padding_idx
        self.max_target_positions = cfg.max_target_positions
        self.dropout = nn.Dropout(cfg.dropout)
        self.initial_from, self.with_evidence = str(cfg.initial_state), cfg.attention_sentinel
        input_dim, state_dim = cfg.decoder_embed_dim, cfg.decoder_hidden_size
        combination = combination_config(cfg, source_dims)
        self.attention = ATTENTION_COMBINATIONS[cfg.attention_combination](combination)
        context_dim = self.attention.output_dim
        place = (str(cfg.attend_with), str(cfg.attention_query))
        self.attending = attentive_cell(cfg.decoder_cell, input_dim, context_dim, state_dim, *place)
        above = RECURRENT_CELLS[plain_cell(cfg.decoder_cell)]
        self.layers = ModulesOf(above(state_dim, state_dim) for _ in range(cfg.decoder_layers - 1))
        self.state_widths = [self.attending.widths, *([state_dim] * cell.parts for cell in self.layers)]
        self.source_dim = source_dims[0]  # behind it may stand what χ reads
        summary_dim = source_dims[0] if self.initial_from == "mean" else source_dims[0] // 2
        made = sum(map(sum, self.state_widths)) - self.attending.carried
        self.bridge = projection(summary_dim, made, zero_bias=True)
        sizes = (state_dim, input_dim, context_dim, cfg.decoder_out_embed_dim)
        self.deep_output = DeepOutput(*sizes, kind=str(cfg.deep_output))
        self.output_projection = nn.Linear(cfg.decoder_out_embed_dim, len(dictionary), bias=False)
        if cfg.share_all_embeddings or cfg.share_decoder_input_output_embed:
            self.output_projection.weight = embed.weight
        else:
            nn.init.normal_(self.output_projection.weight, 0, cfg.decoder_out_embed_dim**-0.5)

    def plans(self) -> Iterator[PlanKey[Any]]:
        """The plans that :meth:`decode_packed` will ask a layout for."""
        yield self.decoding
        if self.layers:
            yield StepsOfTargets()

    def embed(self, tokens: Tensor) -> Tensor:
        """The tokens y_{i−1}, [..., d_y]."""
        return self.dropout(self.embed_tokens(tokens))

    def begin(self, sources: EncoderOutputs) -> Tuple[Tensor, List[Tensor]]:
        """s_0 = tanh(W h̄ + b) [S, w] of all layers, and what is attended to of every source, [M_k, w_k]."""
        main = sources.by_source[0]
        of_sentence = summary(main.states[:, : self.source_dim], sources.layout.decoded_tokens, self.initial_from)
        projected = self.attention.project_sources(sources.all_states(self.names))
        initial = torch.tanh(self.bridge(of_sentence))
        carried = self.attending.carried
        if carried:  # stands last in the state of the layer that attends, the first
            place = sum(self.state_widths[0]) - carried
            initial = torch.cat([initial[:, :place], initial.new_zeros(len(initial), carried), initial[:, place:]], 1)
        return initial, projected

    def split_state(self, state: Tensor) -> List[State]:
        """The state of each layer from all of them side by side, [B, w]."""
        parts = iter(state.split([width for of_layer in self.state_widths for width in of_layer], dim=1))
        return [tuple(next(parts) for _ in of_layer) for of_layer in self.state_widths]

    def attend_step(
        self, y: Tensor, state: State, projected: List[Tensor], paddings: List[Tensor]
    ) -> Tuple[State, Tensor, Tensor]:
        """s_i, c_i [B, d_c] and its shares [B, K] of the layer that attends.

        Args:
            y: [B, d_y] tokens, those of a sentence side by side, as many of each.
            state: s_{i−1}.
            projected, paddings: [S, n_k, w_k] and [S, n_k] of every source.
        """
        sentences = len(projected[0])
        evidence = None
        if self.with_evidence:
            evidence = torch.cat([y, state[0]], dim=-1).unflatten(0, (sentences, -1))

        def attend(s: Tensor) -> Tuple[Tensor, Tensor]:
            context, shares = self.attention(s.unflatten(0, (sentences, -1)), projected, paddings, evidence)
            return context.flatten(0, 1), shares.flatten(0, 1)

        return self.attending(y, state, attend)

    def attend_rows(
        self, y: Tensor, sizes: List[int], state: State, projected: List[Tensor], paddings: List[Tensor]
    ) -> Attended:
        """What the layer that attends gives at all steps, in their order.

        Args:
            y: [N_t, d_y] tokens in the order of steps.
            sizes: how many rows have each step, see :class:`StepOrder`.
            state: s_0 of the rows.
            projected, paddings: see :meth:`attend_step`; one sentence a row.
        """
        outputs = []
        for tokens in y.split(sizes):
            size = len(tokens)
            if size < len(state[0]):  # what has ended stands last
                state = tuple(part[:size] for part in state)
                projected, paddings = ([part[:size] for part in parts] for parts in (projected, paddings))
            state, context, shares = self.attend_step(tokens, state, projected, paddings)
            outputs.append((state[0], context, shares))
        s, c, shares = (torch.cat(parts) for parts in zip(*outputs))
        return s, c, shares

    def decode_packed(
        self, prev_output_tokens: Tensor, sources: EncoderOutputs, features_only: bool = False
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Packed logits (or features) [target tokens, ...] under teacher forcing, and extras.

        Args:
            prev_output_tokens: right-padded [S, m_t].
            sources: what target tokens may look at; their layout has targets.
            features_only: leave out the output projection.
        """
        plan = sources.layout.plan(self.decoding)
        y = self.embed(sources.layout.target_tokens.pack(prev_output_tokens))  # [N_t, d_y]
        initial, projected = self.begin(sources)
        first, *above = self.split_state(initial)
        outputs = []
        with joined(lambda chi: chi.index_select(0, plan.places)):
            for order, keys in zip(plan.orders, plan.keys):
                state = tuple(part.index_select(0, order.row_index) for part in first)
                seen = [lookup(states, rows.index) for states, rows in zip(projected, keys)]
                paddings = [rows.padding for rows in keys]
                outputs.append(self.attend_rows(y.index_select(0, order.items), order.sizes, state, seen, paddings))
        s, c, shares = (torch.cat(parts).index_select(0, plan.places) for parts in zip(*outputs))
        for cell, of_layer in zip(self.layers, above):
            s = cell.sequence(self.dropout(s), sources.layout.plan(StepsOfTargets()), of_layer)
        observe = observer(self)
        if observe is not None:
            observe(SourceShares(self.names, shares.detach()))
        return self.finish(s, y, c, features_only), {"attn": [None], "inner_states": []}

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: Optional[IncrementalState] = None,
        features_only: bool = False,
        **unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Logits (or features) [B, m_t, ...] of right-padded tokens [B, m_t] step by step, and extras.

        Args:
            prev_output_tokens: of the hypotheses of every sentence of the encoder's output, as many of each.
            encoder_out: of :class:`RecurrentEncoder`.
            incremental_state: of a search; only the last token is computed then.
            features_only: leave out the output projection.
            unused: of other decoders.
        """
        sources = EncoderOutputs.of(encoder_out)

        def make() -> List[Tensor]:
            initial, projected = self.begin(sources)
            padded, paddings = padded_sources(sources.by_source, projected, sources.layout)
            return [initial, *padded, *paddings]

        initial, *parts = sources.per_sentence(self, make)
        projected, paddings = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        state = None
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            state = (self.get_incremental_state(incremental_state, "state") or {}).get("state")
        if state is None:
            state = initial.repeat_interleave(len(prev_output_tokens) // len(initial), dim=0)
        y = self.embed(prev_output_tokens)  # [B, m_t, d_y]
        outputs, states = [], self.split_state(state)
        for tokens in y.unbind(1):
            states[0], context, _ = self.attend_step(tokens, states[0], projected, paddings)
            for number, cell in enumerate(self.layers, start=1):
                states[number] = cell.step(self.dropout(states[number - 1][0]), states[number])
            outputs.append((states[-1][0], context))
        if incremental_state is not None:
            state = torch.cat([part for of_layer in states for part in of_layer], dim=1)
            self.set_incremental_state(incremental_state, "state", {"state": state})
        s, c = (torch.stack(of_steps, dim=1) for of_steps in zip(*outputs))
        return self.finish(s, y, c, features_only), {"attn": [None], "inner_states": []}

    def finish(self, s: Tensor, y: Tensor, c: Tensor, features_only: bool) -> Tensor:
        """Features [..., decoder_out_embed_dim], or logits [..., V]."""
        features = self.dropout(self.deep_output(s, y, c))
        return features if features_only else self.output_layer(features)

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits [..., V]."""
        return self.output_projection(features)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Takes over the states of the rows ``new_order``."""
        state = self.get_incremental_state(incremental_state, "state")
        if state is not None:
            moved = {"state": state["state"].index_select(0, new_order)}
            self.set_incremental_state(incremental_state, "state", moved)

    def max_positions(self) -> int:
        """The longest target sentence, in tokens."""
        return self.max_target_positions
