"""Mechanism ``tree`` against the loop reference."""

from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.tree_attention import TreeAttention
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES
from tests.reference import attention
from tests.reference import tree as reference
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.trees import reference_merge

LAYER = {"embed_dim": 6, "heads": 2, "head_dim": 3}
OPTIONS = TreeAttention.Options(context_top_t=2)


def build(dtype=torch.double, **options):
    torch.manual_seed(0)
    mechanism = build_mechanism(TreeAttention, **{**LAYER, **asdict(OPTIONS), **options})
    for name, parameter in mechanism.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return mechanism.to(dtype)


def reference_output(mechanism, options, x, layout):
    tokens = (mechanism.q_proj, mechanism.k_proj, mechanism.v_proj, mechanism.sentence_q_proj)
    q, k, v, q_s = (proj(x).unflatten(-1, (mechanism.heads, -1)) for proj in tokens)
    encoder = mechanism.sentence_encoder
    encodings = attention.source2token(x, layout, encoder.query, encoder.k_proj, encoder.v_proj, encoder.out_proj)
    out = reference.hierarchical_conditional_attention(
        q,
        k,
        v,
        q_s,
        encodings,
        mechanism.sentence_k_proj,
        reference_merge(options.tree_merge, mechanism.merge),
        layout,
        options.context_top_t,
        options.selection_score,
        options.context_always_keep_own,
    )
    return mechanism.out_proj(out.flatten(1))


def compare(layout, dtype=torch.double, atol=1e-9, **options):
    mechanism = build(dtype, **options)
    x = torch.randn(layout.tokens.total, LAYER["embed_dim"], dtype=dtype, requires_grad=True)
    fast, slow = mechanism(x, layout), reference_output(mechanism, replace(OPTIONS, **options), x, layout)
    torch.testing.assert_close(fast, slow, atol=atol, rtol=atol)
    inputs = {"x": x, **dict(mechanism.named_parameters())}
    weight = torch.linspace(-1, 1, fast.numel(), dtype=dtype).view_as(fast)
    of_fast = torch.autograd.grad((fast * weight).sum(), list(inputs.values()))
    of_slow = torch.autograd.grad((slow * weight).sum(), list(inputs.values()), allow_unused=True)
    for name, a, b in zip(inputs, of_fast, of_slow):
        expected = torch.zeros_like(a) if b is None else b
        torch.testing.assert_close(a, expected, atol=atol, rtol=atol, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("score", ["level", "cumulative"])
@settings(max_examples=8)
@given(layouts(max_sentences=9, max_words=3), st.sampled_from(TREE_MERGES.names()), st.integers(1, 11), st.booleans())
def test_equals_loop_reference(score, layout, merge, t, own):
    compare(layout, tree_merge=merge, context_top_t=t, selection_score=score, context_always_keep_own=own)


def test_level_and_cumulative_scores_select_differently():
    layout = make_layout([2] * 30, [30])
    x = torch.randn(60, 6, dtype=torch.double)
    assert not torch.allclose(build(selection_score="level")(x, layout), build(selection_score="cumulative")(x, layout))
