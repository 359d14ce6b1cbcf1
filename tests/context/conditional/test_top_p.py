"""Selection with ``--context-top-p``."""

import math

import pytest
import torch

from docnmt_fairseq.context.conditional.attention import ConditionalAttention
from docnmt_fairseq.context.conditional.kernels import KERNELS
from docnmt_fairseq.context.conditional.selection import keep_top_p
from docnmt_fairseq.context.conditional.tree_attention import TreeAttention
from docnmt_fairseq.layers.capture import Relevance, capture
from tests.support.documents import make_layout
from tests.support.mechanisms import build_mechanism


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0.0, [-1, 7, -1, -1]),
        (0.6, [-1, 7, -1, -1]),
        (0.61, [3, 7, -1, -1]),
        (0.9, [3, 7, 5, -1]),
        (1.0, [3, 7, 5, -1]),
    ],
)
def test_smallest_set_with_cumulative_share_p(p, expected):
    shares = torch.tensor([[[0.25, 0.6, 0.15, 0.0]]], dtype=torch.double)
    sentence, scores = torch.tensor([[[3, 7, 5, -1]]]), 0.5 * shares.log()
    assert keep_top_p(sentence, scores, p, 0.5).flatten().tolist() == expected


@pytest.mark.parametrize("kind", [ConditionalAttention, TreeAttention])
@pytest.mark.parametrize("kernel", ["torch", "compiled"])
def test_attention_covers_only_the_kept_sentences(kind, kernel):
    if KERNELS[kernel].missing() is not None:
        pytest.skip("not available")
    torch.manual_seed(0)
    built = build_mechanism(
        kind, embed_dim=6, heads=2, head_dim=3, context_top_t=4, context_top_p=0.8, context_kernel=kernel
    ).double()
    layout = make_layout([2, 3, 1, 2, 2, 1, 4], [5, 2])
    x = (3 * torch.randn(layout.tokens.total, 6, dtype=torch.double)).requires_grad_()
    with capture() as captured:
        out = built(x, layout)
    (relevance,) = (evidence for evidence in captured.of(built) if isinstance(evidence, Relevance))
    kept = relevance.scores > -math.inf  # [N, R, H]
    selecting = layout.token_document == 0
    number = kept[selecting].sum(1)
    assert number.min() >= 1 and number.max() <= 4 and len(number.unique()) > 1
    assert (kept[~selecting].sum(1) == 2).all()
    # The same by hand, with R of these sentences.
    q, k, v, q_s = (
        proj(x).unflatten(-1, (2, -1)) for proj in (built.q_proj, built.k_proj, built.v_proj, built.sentence_q_proj)
    )
    k_s, _ = built.sentence_keys(built.sentence_encoder(x, layout.tokens), q_s, built.schedule.current_top_t(), layout)
    relevance_s = torch.einsum("nhd,rhd->nrh", q_s, k_s).masked_fill(~kept, -math.inf) / 3**0.5
    scores = torch.einsum("nhd,whd->nwh", q, k) / 3**0.5 + relevance_s.index_select(1, layout.token_sentence)
    by_hand = built.out_proj(torch.einsum("nwh,whd->nhd", scores.softmax(1), v).flatten(1))
    torch.testing.assert_close(out, by_hand)
    gradients = [torch.autograd.grad(result.square().sum(), x, retain_graph=True) for result in (out, by_hand)]
    torch.testing.assert_close(*gradients)
