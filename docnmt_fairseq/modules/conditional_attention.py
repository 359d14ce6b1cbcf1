"""Context mechanism ``conditional``: attention over the words of the t most relevant sentences ([T] eq. 3-7)."""

import math
from typing import Callable, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, ContextMechanism
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.keep_schedule import KeepSchedule
from docnmt_fairseq.modules.kernels import SelectionKernel, kernel_for
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.recording import WORDS, Observe, Relevance, Weights, observer
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS
from docnmt_fairseq.modules.sentence_selection import Selection, keep_own

Choose = Callable[[SelectionKernel, Optional[np.ndarray]], Tensor]  # (kernel, documents) to chosen rows [M, H, t]


def attend_to_all(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    layout: DocumentLayout,
    plan: AttentionPlan,
    dropout: float,
) -> Tensor:
    """Returns conditional attention where every sentence is kept: plain attention, since the two scores add up.

    q kᵀ + q_s k_sᵀ = [q; q_s] [k; k_s]ᵀ, so any attention kernel serves, and none need build the N×N matrix.
    """
    d = q.size(-1)
    queries = torch.cat([q, q_s], dim=-1)
    keys = torch.cat([k, k_s.index_select(0, layout.token_sentence)], dim=-1)
    values = F.pad(v, (0, d))  # the CPU's fast kernel wants values as wide as keys
    return ragged_attention(queries, keys, values, plan, dropout, scale=1 / math.sqrt(d))[..., :d]


def kept_relevance(q_s: Tensor, k_s: Tensor, layout: DocumentLayout, selection: Optional[Selection] = None) -> Tensor:
    """Returns R of the kept sentences, −∞ elsewhere, as the dense tensor that nothing else needs: [N, R, H].

    Args:
        q_s, k_s, layout: see :func:`conditional_attention`.
        selection: of the words that do not keep all sentences of their document.
    """
    other = layout.token_document[:, None] != layout.sentences.item_row  # [N, R]
    relevance = torch.einsum("nhd,rhd->nrh", q_s, k_s) / math.sqrt(q_s.size(-1))
    relevance = relevance.masked_fill(other[..., None], -torch.inf)
    if selection is not None:
        rows = len(k_s)  # a place that holds no sentence is put into one more, which is cut off
        place = torch.where(selection.sentence < 0, rows, selection.sentence)
        of_kept = relevance.new_full((*place.shape[:2], rows + 1), -torch.inf)
        of_kept = of_kept.scatter(2, place, selection.scores.to(of_kept.dtype))[..., :rows].transpose(1, 2)
        relevance = relevance.index_copy(0, selection.items, of_kept)
    return relevance.detach()


def observe_conditional(observe: Observe, q: Tensor, k: Tensor, relevance: Tensor, layout: DocumentLayout) -> None:
    """Reports relevance [N, R, H] and the weights that follow from it, softmax_w(q k_wᵀ/√d_k + R) ([T] eq. 7)."""
    observe(Relevance(relevance))
    scores = torch.einsum("nhd,whd->nwh", q, k) / math.sqrt(q.size(-1))
    scores = scores + relevance.index_select(1, layout.token_sentence)
    observe(Weights("attention", WORDS, scores.softmax(1).detach()))


def conditional_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    layout: DocumentLayout,
    kept: np.ndarray,
    always_keep_own: bool = False,
    dropout: float = 0.0,
    kernel: str = "auto",
    choose: Optional[Choose] = None,
    observe: Optional[Observe] = None,
) -> Tensor:
    """Returns out_i = softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) · v of all words, [N, H, d_k] ([T] eq. 7).

    R_i = KeepTopT(q_s,i k_sᵀ/√d_k, t) over the sentences of the word's document. No N×N matrix is built.

    Args:
        q, k, v: [N, H, d_k] packed word states.
        q_s: [N, H, d_k] queries for relevance.
        k_s: [R, H, d_k] keys of the sentence encodings.
        layout: the batch.
        kept: [D] t of every document, at least 1.
        always_keep_own: keep a word's own sentence besides the t.
        dropout: probability of dropping an attention weight.
        kernel: who computes it, see ``modules/kernels``.
        choose: another way to choose than the t largest scores; the chosen still score q_s k_s.
        observe: who wants to see relevance and weights.
    """
    all_kept = kept >= layout.sentences.lengths
    if all_kept.all():
        if observe is not None:
            observe_conditional(observe, q, k, kept_relevance(q_s, k_s, layout), layout)
        plan = layout.plan("document>document", layout.document_words, layout.document_words)
        return attend_to_all(q, k, v, q_s, k_s, layout, plan, dropout)
    computes, documents = kernel_for(kernel, q), None if not all_kept.any() else np.flatnonzero(~all_kept)
    if choose is None:
        sentence = computes.choose(q_s, k_s, layout, kept, documents)
    else:
        sentence = choose(computes, documents)
    items = layout.words_of_documents(documents)
    if always_keep_own:
        sentence = keep_own(sentence, layout.token_sentence.index_select(0, items))
    selection = Selection(items, sentence, computes.score(q_s, k_s, items, sentence), documents)
    if observe is not None:
        observe_conditional(observe, q, k, kept_relevance(q_s, k_s, layout, selection), layout)
    selected = computes.attend(q, k, v, selection, layout, dropout)
    if documents is None:
        return selected
    rows = np.flatnonzero(all_kept)
    plan = layout.plan(
        f"document>document {rows.tobytes().hex()}", layout.document_words, layout.document_words, rows=rows
    )
    of_all = attend_to_all(q, k, v, q_s, k_s, layout, plan, dropout)
    items = torch.cat([items, plan.items])
    both = torch.cat([selected, of_all.to(selected.dtype)])  # autocast may leave them in different types
    return torch.empty_like(both).index_copy(0, items, both)


class SelectingAttention(ContextMechanism):
    """Multi-head attention to the words of sentences that every head and word selects for itself.

    Word projections are named as fairseq's multi-head attention's: placed as ``replace``, they load a sentence-level
    model's, and a document of one sentence gives exactly that model's self-attention (R is then one constant).
    Subclasses say how relevance is found: :meth:`sentence_keys`.
    """

    placements = ("block", "heads", "replace")

    def __init__(self, config: ContextConfig):
        super().__init__()
        width = config.heads * config.head_dim
        self.heads = config.heads
        self.dropout = config.dropout
        self.always_keep_own = config.always_keep_own
        self.kernel = config.kernel
        self.schedule = KeepSchedule(
            config.kept_sentences, config.kept_start, config.narrow_from, config.narrow_updates
        )
        encoder_heads = config.embed_dim // config.head_dim
        self.sentence_encoder = SENTENCE_ENCODERS[config.sentence_encoder](config.embed_dim, encoder_heads)
        self.q_proj = projection(config.embed_dim, width, gain=2**-0.5)  # W^{Qx}
        self.k_proj = projection(config.embed_dim, width, gain=2**-0.5)  # W^{Kx}
        self.v_proj = projection(config.embed_dim, width, gain=2**-0.5)  # W^{Vx}
        self.sentence_q_proj = projection(config.embed_dim, width, gain=2**-0.5)  # W^{Qs}
        self.sentence_k_proj = projection(config.embed_dim, width, gain=2**-0.5)  # W^{Ks}
        self.out_proj = projection(width, config.embed_dim, zero_bias=True, zero=config.zero_init)

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, kept: np.ndarray, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns what relevance is taken with, [R, H, d_k], and how sentences are chosen (None: the t largest).

        Args:
            encodings: S, [R, d].
            q_s: [N, H, d_k] queries for relevance.
            kept: [D] t of every document.
            layout: the batch.
        """
        raise NotImplementedError

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        word_projections = (self.q_proj, self.k_proj, self.v_proj, self.sentence_q_proj)
        q, k, v, q_s = (proj(x).unflatten(-1, (self.heads, -1)) for proj in word_projections)
        kept = self.schedule.kept(layout.sentences.lengths)
        k_s, choose = self.sentence_keys(self.sentence_encoder(x, layout.words), q_s, kept, layout)
        dropout = self.dropout if self.training else 0.0
        attended = conditional_attention(
            q, k, v, q_s, k_s, layout, kept, self.always_keep_own, dropout, self.kernel, choose, observer(self)
        )
        return self.out_proj(attended.flatten(1))


@CONTEXT_MECHANISMS.register("conditional")
class ConditionalAttention(SelectingAttention):
    """Flat selection: the t sentences of the document whose encodings score highest."""

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, kept: np.ndarray, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns S W^{Ks}; see :class:`SelectingAttention`."""
        return self.sentence_k_proj(encodings).unflatten(-1, (self.heads, -1)), None
