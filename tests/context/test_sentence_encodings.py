"""Attention to sentence encodings against loops over tokens."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.batch.layout import TargetsToSentences
from docnmt_fairseq.context.sentence_encodings import SentenceEncodingAttention
from tests.reference import attention as reference
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism


def build(dtype, **options):
    torch.manual_seed(0)
    return build_mechanism(SentenceEncodingAttention, embed_dim=6, heads=2, head_dim=3, **options).to(dtype)


@PRECISIONS
@settings(max_examples=8)
@given(layout=layouts())
def test_tokens_equal_loop_reference(dtype, tolerance, layout):
    mechanism = build(dtype)
    x = torch.randn(layout.tokens.total, 6, dtype=dtype, requires_grad=True)
    s = mechanism.sentence_encoder(x, layout.tokens)
    expected = []
    for document in range(layout.sentences.rows):
        sentences = reference.sentences_of(layout, document)
        tokens = [x[w] for sentence in sentences for w in reference.words_of(layout, sentence)]
        expected += reference.sentence_attention(mechanism, tokens, [s[j] for j in sentences])
    assert_same(mechanism(x, layout), torch.stack(expected), [x, *mechanism.parameters()], tolerance)


@st.composite
def decoded_layouts(draw):
    """Layouts with target tokens and context-only rows, possibly all rows of a document."""
    layout = draw(layouts())
    rows = layout.tokens.rows
    decoded = np.array(sorted(draw(st.sets(st.integers(0, rows - 1), min_size=1))))
    targets = draw(st.lists(st.integers(1, 4), min_size=len(decoded), max_size=len(decoded)))
    options = {"decoded": None if len(decoded) == rows else decoded, "target_lengths": np.array(targets)}
    return make_layout(layout.tokens.lengths, layout.sentences.lengths, **options)


@PRECISIONS
@settings(max_examples=12)
@given(layout=decoded_layouts())
def test_target_tokens_equal_loop_reference(dtype, tolerance, layout):
    mechanism = build(dtype, source_dim=4, source_heads=2)
    states = torch.randn(layout.tokens.total, 4, dtype=dtype, requires_grad=True)
    x = torch.randn(layout.targets.total, 6, dtype=dtype, requires_grad=True)
    s = mechanism.sentence_encoder(states, layout.tokens)
    decoded = list(range(layout.tokens.rows)) if layout.decoded is None else layout.decoded.tolist()
    expected, document_of_token = [], []
    tokens = iter(x)
    for row, length in zip(decoded, layout.targets.lengths):
        (document,) = [d for d in range(layout.sentences.rows) if row in reference.sentences_of(layout, d)]
        queries = [next(tokens) for _ in range(length)]
        document_of_token += [document] * length
        encodings = [s[j] for j in reference.sentences_of(layout, document)]
        expected += reference.sentence_attention(mechanism, queries, encodings)
    projected = mechanism.project(states, layout)
    assert len(projected) == layout.tokens.rows
    mask = torch.tensor(document_of_token)[:, None] == layout.sentences.item_row
    plan = layout.plan(TargetsToSentences())
    fast = [mechanism.attend(x, projected, plan), mechanism.attend_masked(x, projected, mask)]
    slow = torch.stack(expected)
    assert_same(torch.stack(fast), torch.stack([slow, slow]), [x, states, *mechanism.parameters()], tolerance)
