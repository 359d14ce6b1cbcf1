"""The decoder of ``document_rnn``: in training over packed target words, group by group; in a search step by step."""

from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from docnmt_fairseq.buckets import cheapest_groups
from docnmt_fairseq.layout import DocumentLayout, Ragged
from docnmt_fairseq.models.combination_config import attended_names
from docnmt_fairseq.models.recurrent_config import DocumentRNNConfig, combination_config
from docnmt_fairseq.modules.attention_combination.contract import ATTENTION_COMBINATIONS
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.recording import SourceShares, joined, observer
from docnmt_fairseq.modules.recurrent.attentive import attentive_cell, plain_cell
from docnmt_fairseq.modules.recurrent.contract import RECURRENT_CELLS, State
from docnmt_fairseq.modules.recurrent.deep_output import DeepOutput
from docnmt_fairseq.modules.recurrent.layers import summary
from docnmt_fairseq.modules.recurrent.steps import StepOrder
from docnmt_fairseq.modules.source_states import SourceStates

STEP_PRICE = 1000.0  # of a step of one more group, in pairs of a target word and a source state

Attended = Tuple[Tensor, Tensor, Tensor]  # s_i [·, d], c_i [·, d_c] and shares [·, K] of the layer that attends


def decoding_groups(targets: np.ndarray, keys: np.ndarray) -> List[np.ndarray]:
    """Returns rows that go through the steps together: similar numbers of keys, which are padded; no target is.

    Args:
        targets: [S] target words of each row.
        keys: [S] source states that each row sees.
    """
    pairs = np.arange(int(keys.max(initial=0)) + 1) * float(targets.mean())
    return cheapest_groups(keys, pairs, STEP_PRICE * float(targets.max()))


class RecurrentDecoder(FairseqIncrementalDecoder):
    """Recurrent layers; the first attends to all sources at every step, and the output sees what it attended to.

    Args:
        cfg: of the model.
        dictionary: of the target language.
        embed: the embeddings.
        source_dims: widths of the states of every source, the sentence itself being the first.
    """

    def __init__(self, cfg: DocumentRNNConfig, dictionary: object, embed: nn.Embedding, source_dims: "tuple[int, ...]"):
        super().__init__(dictionary)
        self.embed_tokens = embed
        self.padding_idx = embed.padding_idx
        self.max_target_positions = cfg.max_target_positions
        self.dropout = nn.Dropout(cfg.dropout)
        self.names = attended_names(cfg)
        self.initial_from, self.with_evidence = str(cfg.initial_state), cfg.attention_sentinel
        input_dim, state_dim = cfg.decoder_embed_dim, cfg.decoder_hidden_size
        combination = combination_config(cfg, source_dims)
        self.attention = ATTENTION_COMBINATIONS[cfg.attention_combination](combination)
        self.attending = attentive_cell(cfg.decoder_cell, input_dim, combination.output_dim, state_dim)
        above = RECURRENT_CELLS[plain_cell(cfg.decoder_cell)]
        self.layers = nn.ModuleList(above(state_dim, state_dim) for _ in range(cfg.decoder_layers - 1))
        self.state_parts = [cell.parts for cell in (self.attending.cell, *self.layers)]
        summary_dim = source_dims[0] if self.initial_from == "mean" else source_dims[0] // 2
        self.bridge = projection(summary_dim, sum(self.state_parts) * state_dim, zero_bias=True)
        sizes = (state_dim, input_dim, combination.output_dim, cfg.decoder_out_embed_dim)
        self.deep_output = DeepOutput(*sizes, kind=str(cfg.deep_output))
        self.output_projection = nn.Linear(cfg.decoder_out_embed_dim, len(dictionary), bias=False)
        if cfg.share_all_embeddings or cfg.share_decoder_input_output_embed:
            self.output_projection.weight = embed.weight
        else:
            nn.init.normal_(self.output_projection.weight, 0, cfg.decoder_out_embed_dim**-0.5)

    def embed(self, tokens: Tensor) -> Tensor:
        """Returns the words y_{i−1}, [..., d_y]."""
        return self.dropout(self.embed_tokens(tokens))

    def remember(self, sources: List[SourceStates]) -> Tuple[Tensor, List[SourceStates]]:
        """Returns s_0 = tanh(W h̄ + b) [S, w] of all layers, and the states that are attended to of every source."""
        main = sources[0]
        rows = Ragged(main.lengths, main.states.device)
        initial = torch.tanh(self.bridge(summary(main.states, rows, self.initial_from)))
        memories = self.attention.remember([source.states for source in sources])
        return initial, [source.map(lambda _, memory=memory: memory) for source, memory in zip(sources, memories)]

    def split_state(self, state: Tensor) -> List[State]:
        """Returns the state of each layer from all of them side by side, [B, w]."""
        parts = iter(state.chunk(sum(self.state_parts), dim=1))
        return [tuple(next(parts) for _ in range(count)) for count in self.state_parts]

    def attend_step(
        self, y: Tensor, state: State, memories: List[Tensor], paddings: List[Tensor]
    ) -> Tuple[State, Tensor, Tensor]:
        """Returns s_i, c_i [B, d_c] and its shares [B, K] of the layer that attends.

        Args:
            y: [B, d_y] words, those of a sentence side by side, as many of each.
            state: s_{i−1}.
            memories, paddings: [S, n_k, w_k] and [S, n_k] of every source.
        """
        sentences = len(memories[0])
        evidence = None
        if self.with_evidence:
            evidence = torch.cat([y, state[0]], dim=-1).unflatten(0, (sentences, -1))

        def attend(s: Tensor) -> Tuple[Tensor, Tensor]:
            context, shares = self.attention(s.unflatten(0, (sentences, -1)), memories, paddings, evidence)
            return context.flatten(0, 1), shares.flatten(0, 1)

        return self.attending(y, state, attend)

    def attend_rows(
        self, y: Tensor, sizes: List[int], state: State, memories: List[Tensor], paddings: List[Tensor]
    ) -> Attended:
        """Returns what the layer that attends gives at all steps, in their order.

        Args:
            y: [N_t, d_y] words in the order of steps.
            sizes: how many rows have each step, see :class:`StepOrder`.
            state: s_0 of the rows.
            memories, paddings: see :meth:`attend_step`; one sentence a row.
        """
        outputs = []
        for words in y.split(sizes):
            size = len(words)
            if size < len(state[0]):  # what has ended stands last
                state, memories, paddings = ([part[:size] for part in parts] for parts in (state, memories, paddings))
            state, context, shares = self.attend_step(words, state, memories, paddings)
            outputs.append((state[0], context, shares))
        return tuple(torch.cat(parts) for parts in zip(*outputs))

    def decode_packed(
        self,
        prev_output_tokens: Tensor,
        sources: List[SourceStates],
        layout: DocumentLayout,
        features_only: bool = False,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns packed logits (or features) [target tokens, ...] under teacher forcing, and extras.

        Args:
            prev_output_tokens: right-padded [S, m_t].
            sources: see :meth:`RecurrentEncoder.encode`.
            layout: the batch; ``layout.targets`` must be there.
            features_only: leave out the output projection.
        """
        targets = layout.targets
        y = self.embed(targets.pack(prev_output_tokens))  # [N_t, d_y]
        initial, memories = self.remember(sources)
        first, *above = self.split_state(initial)
        keys = np.sum([memory.lengths for memory in memories], axis=0)
        groups = [StepOrder(targets, rows) for rows in decoding_groups(targets.lengths, keys)]
        places = torch.cat([order.items for order in groups]).argsort()
        outputs = []
        with joined(lambda chi: chi.index_select(0, places)):
            for order in groups:
                state = tuple(part.index_select(0, order.row_index) for part in first)
                blocks = zip(*(memory.block(order.rows) for memory in memories))
                outputs.append(self.attend_rows(y.index_select(0, order.items), order.sizes, state, *map(list, blocks)))
        s, c, shares = (torch.cat(parts).index_select(0, places) for parts in zip(*outputs))
        if self.layers:
            order = layout.shared("targets in steps", lambda: StepOrder(targets))
        for cell, state in zip(self.layers, above):
            s = cell.sequence(self.dropout(s), order, state)
        observe = observer(self)
        if observe is not None:
            observe(SourceShares(self.names, shares.detach()))
        return self.finish(s, y, c, features_only), {"attn": [None], "inner_states": []}

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Dict[str, List[Tensor]],
        incremental_state: Optional[Dict[str, Dict[str, Optional[Tensor]]]] = None,
        features_only: bool = False,
        **unused,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns logits (or features) [B, m_t, ...] of right-padded words [B, m_t] step by step, and extras.

        Args:
            prev_output_tokens: of the hypotheses of every sentence of the encoder's output, as many of each.
            encoder_out: of :class:`RecurrentEncoder`.
            incremental_state: of a search; only the last word is computed then.
            features_only: leave out the output projection.
        """
        rows = len(prev_output_tokens)
        (initial,), memories, paddings = (encoder_out[name] for name in ("initial_state", "memories", "paddings"))
        state = None
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            state = (self.get_incremental_state(incremental_state, "state") or {}).get("state")
        if state is None:
            state = initial.repeat_interleave(rows // len(initial), dim=0)
        y = self.embed(prev_output_tokens)  # [B, m_t, d_y]
        outputs, states = [], self.split_state(state)
        for words in y.unbind(1):
            states[0], context, _ = self.attend_step(words, states[0], memories, paddings)
            for number, cell in enumerate(self.layers, start=1):
                states[number] = cell.step(self.dropout(states[number - 1][0]), states[number])
            outputs.append((states[-1][0], context))
        if incremental_state is not None:
            state = torch.cat([part for of_layer in states for part in of_layer], dim=1)
            self.set_incremental_state(incremental_state, "state", {"state": state})
        s, c = (torch.stack(parts, dim=1) for parts in zip(*outputs))
        return self.finish(s, y, c, features_only), {"attn": [None], "inner_states": []}

    def finish(self, s: Tensor, y: Tensor, c: Tensor, features_only: bool) -> Tensor:
        """Returns features [..., decoder_out_embed_dim], or logits [..., V]."""
        features = self.dropout(self.deep_output(s, y, c))
        return features if features_only else self.output_layer(features)

    def output_layer(self, features: Tensor) -> Tensor:
        """Returns logits [..., V]."""
        return self.output_projection(features)

    def reorder_incremental_state(
        self, incremental_state: Dict[str, Dict[str, Optional[Tensor]]], new_order: Tensor
    ) -> None:
        """Takes over the states of the rows ``new_order``."""
        state = self.get_incremental_state(incremental_state, "state")
        if state is not None:
            moved = {"state": state["state"].index_select(0, new_order)}
            self.set_incremental_state(incremental_state, "state", moved)

    def max_positions(self) -> int:
        """Returns the longest target sentence, in tokens."""
        return self.max_target_positions
