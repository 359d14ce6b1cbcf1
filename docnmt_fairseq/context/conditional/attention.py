"""Context mechanism ``conditional``: attention over the tokens of the t most relevant sentences ([T] eq. 3-7)."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism, LayerConfig
from docnmt_fairseq.context.conditional.kernels import KERNELS, SelectionKernel, kernel_for
from docnmt_fairseq.context.conditional.selection import (
    Selection,
    SelectionKey,
    TopT,
    TopTSchedule,
    keep_own,
    keep_top_p,
)
from docnmt_fairseq.context.conditional.selection_loss import (
    SELECTED_MASS,
    SELECTION_LOSS,
    DivergenceTokens,
    SelectionLossOptions,
    selection_divergence,
)
from docnmt_fairseq.layers.attention import ragged_attention
from docnmt_fairseq.layers.auxiliary_losses import AuxiliaryLoss, collector
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.capture import TOKENS, Observe, Relevance, Weights, observer
from docnmt_fairseq.layers.precision import gather_rows
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoderOptions
from docnmt_fairseq.options import Choices, option

Choose = Callable[[SelectionKernel], Tensor]  # returns the chosen rows [M, H, t]


def conditional_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    layout: DocumentLayout,
    key: SelectionKey,
    always_keep_own: bool = False,
    dropout: float = 0.0,
    kernel: str = "auto",
    choose: Optional[Choose] = None,
    top_p: float = 1.0,
    temperature: float = 0.5,
) -> Tuple[Tensor, Optional[Selection]]:
    """Returns softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) · v of all tokens, [N, H, d_k] ([T] eq. 7).

    R_i = KeepTopT(q_s,i k_sᵀ/√d_k, t) over the sentences of the token's document. No N×N matrix is built. Also returns
    the selection of the tokens that do not keep all sentences of their document; None if all do.

    Args:
        q, k, v: [N, H, d_k] packed token states.
        q_s: [N, H, d_k] queries of relevance.
        k_s: [R, H, d_k] keys of the sentence encodings.
        key: t of every document, see :class:`~docnmt_fairseq.context.conditional.selection.TopT`.
        always_keep_own: keep a token's own sentence in addition to the t.
        kernel: name of the kernel, see ``kernels``.
        choose: another choice than the t highest scores; the chosen sentences are still scored by q_s k_s.
        top_p: keep the smallest set of the chosen sentences with this share of softmax(R/τ).
        temperature: τ.
    """
    plan, parts = layout.plan(key), []
    selection: Optional[Selection] = None
    if len(plan.documents):
        computes = kernel_for(kernel, q)
        sentence = computes.choose(q_s, k_s, layout, key) if choose is None else choose(computes)
        if top_p < 1:
            scores = computes.score(q_s.detach(), k_s.detach(), plan.items, sentence)
            sentence = keep_top_p(sentence, scores, top_p, temperature)
        if always_keep_own:
            sentence = keep_own(sentence, layout.token_sentence.index_select(0, plan.items))
        selection = Selection(key, plan.items, sentence, computes.score(q_s, k_s, plan.items, sentence))
        parts.append(computes.attend(q, k, v, layout, selection, dropout))
    if plan.dense is not None:
        # q kᵀ + q_s k_sᵀ = [q; q_s] [k; k_s]ᵀ: plain attention, in every kernel without an N×N matrix.
        d = q.size(-1)
        queries = torch.cat([q, q_s], dim=-1)
        keys = torch.cat([k, gather_rows(k_s, layout.token_sentence)], dim=-1)
        values = F.pad(v, (0, d))  # the fast CPU kernel needs values as wide as keys
        dense = ragged_attention(queries, keys, values, plan.dense, dropout, scale=1 / math.sqrt(d))[..., :d]
        parts.append(dense.to(parts[0].dtype) if parts else dense)  # the types may differ under autocast
    attended = parts[0] if len(parts) == 1 else torch.cat(parts).index_select(0, plan.order)
    return attended, selection


def observe_conditional(
    observe: Observe,
    q: Tensor,
    k: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    layout: DocumentLayout,
    selection: Optional[Selection],
) -> None:
    """Reports R as a dense tensor [N, R, H], −∞ where not kept, and the weights softmax_w(q k_wᵀ/√d_k + R) ([T] eq. 7).

    ``selection`` is that of the tokens that do not keep all sentences of their document.
    """
    other = layout.token_document[:, None] != layout.sentences.item_row  # [N, R]
    relevance = torch.einsum("nhd,rhd->nrh", q_s, k_s) / math.sqrt(q_s.size(-1))
    relevance = relevance.masked_fill(other[..., None], -torch.inf)
    if selection is not None:
        rows = len(k_s)  # empty places go to one more row, which is cut off
        place = torch.where(selection.sentence < 0, rows, selection.sentence)
        kept = relevance.new_full((*place.shape[:2], rows + 1), -torch.inf)
        kept = kept.scatter(2, place, selection.scores.to(kept.dtype))[..., :rows].transpose(1, 2)
        relevance = relevance.index_copy(0, selection.items, kept)
    observe(Relevance(relevance.detach()))
    scores = torch.einsum("nhd,whd->nwh", q, k) / math.sqrt(q.size(-1))
    scores = scores + relevance.index_select(1, layout.token_sentence)
    observe(Weights("attention", TOKENS, scores.softmax(1).detach()))


@dataclass(frozen=True)
class SelectionOptions(SelectionLossOptions, SentenceEncoderOptions):
    """Options of mechanisms that select sentences."""

    context_top_t: int = option(
        4, "sentences that every head and token keeps at the end of the schedule; 0: all", minimum=0
    )
    context_top_t_start: int = option(0, "sentences kept before annealing begins; 0: all of the document", minimum=0)
    context_top_t_anneal_start: int = option(
        0, "update at which the number of kept sentences begins to decrease", minimum=0
    )
    context_top_t_anneal_updates: int = option(
        0, "updates from the start value down to --context-top-t; 0: at once", minimum=0
    )
    context_top_p: float = option(
        1.0, "smallest set of selected sentences with this cumulative share of softmax(R/τ), τ that of the selection "
        "loss; 1: all", minimum=0, maximum=1,
    )  # fmt: skip
    context_top_t_anneal_threshold: float = option(
        0.0, "annealing waits until the sentences that would be selected have this share of the largest attention mass "
        "that as many sentences can have; 0: it does not wait", minimum=0, maximum=1,
    )  # fmt: skip
    context_always_keep_own: bool = option(False, "keep a token's own sentence in addition to the selected ones")
    context_tie_qk_init: bool = option(
        False, "initialise key projections with the query weights, so that attention starts content-similar; presets "
        "that select have it",
    )  # fmt: skip
    context_kernel: str = option(
        "auto", "kernel of attention to selected sentences; torch disables compiled code",
        names=Choices(sorted(KERNELS)), also=("auto",),
    )  # fmt: skip


class SelectingAttention(ContextMechanism):
    """Multi-head attention to the tokens of sentences that every head and token selects for itself.

    Token projections are named as in fairseq's multi-head attention: in the ``replace`` placement they load those of a
    sentence-level model, and a document of one sentence gives exactly that model's self-attention (R is then constant).
    Subclasses define relevance: :meth:`sentence_keys`.
    """

    Options = SelectionOptions
    placements = ("block", "heads", "replace")

    def __init__(self, layer: LayerConfig, options: SelectionOptions):
        super().__init__()
        width, d = layer.heads * layer.head_dim, layer.embed_dim
        self.heads = layer.heads
        self.dropout = layer.dropout
        self.options = options
        self.schedule = TopTSchedule(
            options.context_top_t,
            options.context_top_t_start,
            options.context_top_t_anneal_start,
            options.context_top_t_anneal_updates,
            options.context_top_t_anneal_threshold,
        )
        self.sentence_encoder = SENTENCE_ENCODERS[options.sentence_encoder](d, d // layer.head_dim)
        self.q_proj = projection(d, width, gain=2**-0.5)  # W^{Qx}
        self.k_proj = projection(d, width, gain=2**-0.5)  # W^{Kx}
        if options.context_tie_qk_init:
            self.k_proj.weight.data.copy_(self.q_proj.weight)
        self.v_proj = projection(d, width, gain=2**-0.5)  # W^{Vx}
        self.sentence_q_proj = projection(d, width, gain=2**-0.5)  # W^{Qs}
        self.sentence_k_proj = projection(d, width, gain=2**-0.5)  # W^{Ks}
        self.out_proj = projection(width, d, zero_bias=True, zero=layer.zero_init)

    @classmethod
    def problems(cls, options: SelectionOptions) -> Iterator[str]:
        start, end = options.context_top_t_start, options.context_top_t
        if start > 0 and not 0 < end <= start:
            yield f"--context-top-t-start {start}: must not be below --context-top-t"

    @classmethod
    def remarks(cls, options: SelectionOptions) -> Iterator[str]:
        anneals = options.context_top_t_anneal_start or options.context_top_t_anneal_threshold
        always = options.selection_loss_phase == "always"
        if options.context_top_t and options.selection_loss and not (always or anneals):
            yield (
                f"--selection-loss {options.selection_loss:g}: never active, because --context-top-t "
                f"{options.context_top_t} applies from the first update; give --context-top-t-anneal-start UPDATE, for "
                "example three quarters of the training"
            )

    @classmethod
    def preset(cls, given: Mapping[str, Any]) -> Dict[str, Any]:
        return {"selection_loss": 1.0, "context_tie_qk_init": True}

    @abstractmethod
    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, key: SelectionKey, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns the keys of relevance, [R, H, d_k], and the choice of sentences (None: the t highest scores).

        Args:
            encodings: S, [R, d].
            q_s: [N, H, d_k] queries of relevance.
        """

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        token_projections = (self.q_proj, self.k_proj, self.v_proj, self.sentence_q_proj)
        q, k, v, q_s = (proj(x).unflatten(-1, (self.heads, -1)) for proj in token_projections)
        key, dropout = self.schedule.current_top_t(), self.dropout if self.training else 0.0
        k_s, choose = self.sentence_keys(self.sentence_encoder(x, layout.tokens), q_s, key, layout)
        chosen = self.options
        attended, selection = conditional_attention(
            q, k, v, q_s, k_s, layout, key, chosen.context_always_keep_own, dropout, chosen.context_kernel, choose,
            chosen.context_top_p, chosen.selection_loss_temperature,
        )  # fmt: skip
        observe = observer(self)
        if observe is not None:
            observe_conditional(observe, q, k, q_s, k_s, layout, selection)
        if self.hands_in():
            self.hand_in_loss(x.detach(), q, k, layout, selection)
        return self.out_proj(attended.flatten(1))

    def hands_in(self) -> Tuple[str, ...]:
        """Returns the names of the losses and figures that a call hands in at this point of the schedule.

        The loss is active if there is something to select, and always logged in validation.
        """
        options, schedule = self.options, self.schedule
        needed = options.selection_loss > 0 or schedule.anneal_threshold > 0
        in_window = schedule.update >= schedule.anneal_start - options.selection_loss_updates
        in_phase = not self.training or options.selection_loss_phase == "always" or (
            schedule.before_annealing() and (options.selection_loss_phase == "dense" or in_window)
        )  # fmt: skip
        return (SELECTION_LOSS, SELECTED_MASS) if schedule.top_t and needed and in_phase else ()

    def hand_in_loss(
        self, x: Tensor, q: Tensor, k: Tensor, layout: DocumentLayout, selection: Optional[Selection]
    ) -> None:
        """Hands in the loss, and the mass on the t highest R as a share of the largest possible mass.

        Args:
            x: states, without gradient.
            selection: current selection; None: every sentence is kept.
        """
        hand_in = collector()
        if hand_in is None:
            return
        top_t, key = self.schedule.top_t, TopT(self.schedule.top_t)
        q_s = self.sentence_q_proj(x).unflatten(-1, (self.heads, -1))
        k_s, _ = self.sentence_keys(self.sentence_encoder(x, layout.tokens), q_s, key, layout)
        plan, temperature = layout.plan(DivergenceTokens(key)), self.options.selection_loss_temperature
        loss, mass, largest = selection_divergence(q, k, q_s, k_s, plan, top_t, temperature, selection)
        hand_in(AuxiliaryLoss(SELECTION_LOSS, loss, plan.tokens, self.options.selection_loss))
        hand_in(AuxiliaryLoss(SELECTED_MASS, mass, largest))

    def walk(self, key: SelectionKey) -> Optional[SelectionKey]:
        """Returns the key for the nodes of a height that a tree walk keeps on its way to t; None without a tree."""
        return None

    def plans(self) -> Iterator[PlanKey[Any]]:
        key = self.schedule.current_top_t()
        if key.progress in (0.0, 1.0):  # during annealing t changes with every update
            yield key
            kernel = kernel_for(self.options.context_kernel, self.out_proj.weight)
            yield from kernel.plans(key, self.options.context_always_keep_own, self.walk(key))
            if self.hands_in():
                yield DivergenceTokens(TopT(self.schedule.top_t))


@CONTEXT_MECHANISMS.register("conditional")
class ConditionalAttention(SelectingAttention):
    """Flat selection: the t sentences of the document with the most relevant encodings."""

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, key: SelectionKey, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns S W^{Ks}; see :class:`SelectingAttention`."""
        return self.sentence_k_proj(encodings).unflatten(-1, (self.heads, -1)), None
