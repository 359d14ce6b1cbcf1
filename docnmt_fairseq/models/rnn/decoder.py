"""Decoder of ``document_rnn``: over packed target tokens in training, step by step during decoding."""

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
from docnmt_fairseq.layers.base import ModulesOf, projection
from docnmt_fairseq.layers.capture import SourceShares, joined, observer
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs
from docnmt_fairseq.models.extra_sources import attended_names, attention_combination
from docnmt_fairseq.models.rnn.config import DocumentRNNOptions
from docnmt_fairseq.multisource.packed import lookup, padded_sources
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, State, StepOrder, StepsOfTargets
from docnmt_fairseq.recurrent.layers import DeepOutput, attentive_cell, plain_cell, summary

STEP_PRICE = 1000.0  # cost of a step of an additional group, in (target token, source state) pairs

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


@dataclass(frozen=True)
class DecodingPlan:
    """Groups of sentences that are decoded together.

    Attributes:
        orders: step order of each group.
        keys: [groups][sources] states that its sentences see.
        places: [N_t] position of every target token among those of all groups.
    """

    orders: List[StepOrder]
    keys: List[List[PaddedRows]]
    places: Tensor


@dataclass(frozen=True)
class Decoding(TargetsAndSources[DecodingPlan]):
    """Plan key of step-by-step decoding of a batch."""

    def make(self, layout: DocumentLayout) -> DecodingPlan:
        """The plan: sentences with similar numbers of states are padded together; targets are not padded."""
        targets, sources = layout.target_tokens, [layout.plan(source) for source in self.sources]
        states = np.sum([source.lengths for source in sources], axis=0)  # that each sentence sees
        pairs = np.arange(int(states.max(initial=0)) + 1) * float(targets.lengths.mean())
        groups = cheapest_groups(states, pairs, STEP_PRICE * float(targets.lengths.max()))
        orders = [StepOrder(targets, rows) for rows in groups]
        keys = [[PaddedRows(*map(layout.index, source.block(order.rows))) for source in sources] for order in orders]
        return DecodingPlan(orders, keys, torch.cat([order.items for order in orders]).argsort())


class RecurrentDecoder(FairseqIncrementalDecoder):
    """Recurrent layers; the first attends to all sources at every step, and its context vector enters the output.

    Args:
        cfg: options of the model.
        dictionary: target dictionary.
        embed: target embeddings.
        source_dims: widths of the states of every source, the main one first.
        extra_rows: keys of the plans that map decoded sentences to the states of each extra source.
    """

    def __init__(
        self,
        cfg: DocumentRNNOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        source_dims: Tuple[int, ...],
        extra_rows: List[SourceKey],
    ):
        super().__init__(dictionary)
        self.decoding = Decoding((OfSentence(), *extra_rows))
        self.names = attended_names(cfg, cfg.attention_sentinel)
        self.embed_tokens = embed
        self.padding_idx = embed.padding_idx
        self.max_target_positions = cfg.max_target_positions
        self.dropout = nn.Dropout(cfg.dropout)
        self.initial_from, self.with_evidence = str(cfg.initial_state), cfg.attention_sentinel
        input_dim, state_dim = cfg.decoder_embed_dim, cfg.decoder_hidden_size
        output_dim = cfg.context_vector_dim or source_dims[0]
        self.attention = attention_combination(
            cfg, cfg.attention_combination, input_dim + state_dim,
            query_dim=state_dim, source_dims=source_dims, output_dim=output_dim, score_dim=cfg.attention_dim,
            chi_dim=cfg.chi_embed_dim, concatenated_contexts=str(cfg.concatenated_contexts),
        )  # fmt: skip
        context_dim = self.attention.output_dim
        place = (str(cfg.attend_with), str(cfg.attention_query))
        self.attending = attentive_cell(cfg.decoder_cell, input_dim, context_dim, state_dim, *place)
        above = RECURRENT_CELLS[plain_cell(cfg.decoder_cell)]
        self.layers = ModulesOf(above(state_dim, state_dim) for _ in range(cfg.decoder_layers - 1))
        self.state_widths = [self.attending.widths, *([state_dim] * cell.parts for cell in self.layers)]
        self.source_dim = source_dims[0]  # embeddings for χ may be appended to the states
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
        """Plans that :meth:`decode_packed` uses."""
        yield self.decoding
        if self.layers:
            yield StepsOfTargets()

    def embed(self, tokens: Tensor) -> Tensor:
        """Embedded tokens y_{i−1}, [..., d_y]."""
        return self.dropout(self.embed_tokens(tokens))

    def begin(self, sources: EncoderOutputs) -> Tuple[Tensor, List[Tensor]]:
        """Initial states s_0 = tanh(W h̄ + b) [S, w] of all layers, and projected sources [M_k, w_k]."""
        main = sources.by_source[0]
        of_sentence = summary(main.states[:, : self.source_dim], sources.layout.decoded_tokens, self.initial_from)
        projected = self.attention.project_sources(sources.all_states)
        initial = torch.tanh(self.bridge(of_sentence))
        carried = self.attending.carried
        if carried:  # last part of the state of the first layer, which attends
            place = sum(self.state_widths[0]) - carried
            initial = torch.cat([initial[:, :place], initial.new_zeros(len(initial), carried), initial[:, place:]], 1)
        return initial, projected

    def split_state(self, state: Tensor) -> List[State]:
        """State of each layer, from the concatenated states [B, w] of all layers."""
        parts = iter(state.split([width for of_layer in self.state_widths for width in of_layer], dim=1))
        return [tuple(next(parts) for _ in of_layer) for of_layer in self.state_widths]

    def attend_step(
        self, y: Tensor, state: State, projected: List[Tensor], paddings: List[Tensor]
    ) -> Tuple[State, Tensor, Tensor]:
        """State s_i, context c_i [B, d_c] and its shares [B, K] of the attending layer.

        Args:
            y: [B, d_y] tokens, grouped by sentence, the same number for each.
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
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """States [N_t, d], contexts [N_t, d_c] and shares [N_t, K] of the attending layer at all steps, in step order.

        Args:
            y: [N_t, d_y] tokens in step order.
            sizes: number of rows at each step, see :class:`StepOrder`.
            state: s_0 of the rows.
            projected, paddings: see :meth:`attend_step`; one sentence per row.
        """
        outputs = []
        for tokens in y.split(sizes):
            size = len(tokens)
            if size < len(state[0]):  # finished rows come last
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
            sources: encoder outputs, whose layout has targets.
            features_only: omit the output projection.
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
        return self.finish(s, y, c, features_only)

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
            prev_output_tokens: tokens of the hypotheses, the same number for every sentence.
            encoder_out: output of :class:`RecurrentEncoder`.
            incremental_state: decoding state; only the last token is computed then.
            features_only: omit the output projection.
            unused: arguments of other decoders.
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
        return self.finish(s, y, c, features_only)

    def finish(self, s: Tensor, y: Tensor, c: Tensor, features_only: bool) -> Tuple[Tensor, Dict[str, Any]]:
        """Features [..., decoder_out_embed_dim], or logits [..., V], and extras."""
        features = self.dropout(self.deep_output(s, y, c))
        output = features if features_only else self.output_layer(features)
        return output, {"attn": [None], "inner_states": []}

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits [..., V]."""
        return self.output_projection(features)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Selects the states of the rows ``new_order``."""
        state = self.get_incremental_state(incremental_state, "state")
        if state is not None:
            moved = {"state": state["state"].index_select(0, new_order)}
            self.set_incremental_state(incremental_state, "state", moved)

    def max_positions(self) -> int:
        """Maximum target length, in tokens."""
        return self.max_target_positions
