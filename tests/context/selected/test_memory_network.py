"""Memory network against the loop reference."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.selected.memory_network import MemoryNetwork
from tests.reference import memory as reference
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts, make_layout
from tests.support.marks import slow_except
from tests.support.mechanisms import build_mechanism


def build(dtype=torch.float64, **options):
    torch.manual_seed(0)
    return build_mechanism(MemoryNetwork, embed_dim=6, heads=2, head_dim=3, ffn_dim=5, **options).to(dtype)


def states(layout, dtype=torch.float64, seed=0):
    """Returns x and the embeddings."""
    generator = torch.Generator().manual_seed(seed)
    shape = (2, layout.tokens.total, 6)
    return (part.requires_grad_() for part in torch.randn(shape, dtype=dtype, generator=generator))


def addressed(mechanism, layout, scope="own"):
    """Returns the groups of context sentences that each row sees, within a scope."""
    contexts = mechanism.select(layout)
    of_row = [tuple(part.tolist()) for part in np.split(contexts.sentences, contexts.first[1:])]
    groups = []
    for row in range(layout.tokens.rows):
        if scope == "own":
            groups.append([of_row[row]])
            continue
        rows = reference.document_of(layout, row) if scope == "document" else range(layout.tokens.rows)
        found = [of_row[r] for r in rows if of_row[r]]
        if not mechanism.key.joined:
            found = [(s,) for s in sorted({s for group in found for s in group})]
        groups.append(found)
    return groups


def assert_equals_reference(mechanism, layout, scope, dtype, tolerance):
    x, embeddings = states(layout, dtype)
    slow = reference.memory_network(mechanism, x, embeddings, layout, addressed(mechanism, layout, scope))
    fast = mechanism(x, layout, embeddings)
    if slow.requires_grad:
        assert_same(fast, slow, [x, embeddings, *mechanism.parameters()], tolerance)
    else:
        assert torch.equal(fast, slow)
    expected = [bool(groups and groups[0]) for groups in addressed(mechanism, layout, scope)]
    assert mechanism.has_context(layout).tolist() == np.repeat(expected, layout.tokens.lengths).tolist()


VARIANTS = {
    "previous": {},
    "lstm": {"memory_rnn": "lstm"},
    "ca-cnn": {"memory_rnn": "ca-cnn", "context_sentences": 2},
    "joined": {"context_sentences": 3},
    "parallel": {"context_sentences": 3, "memory_combination": "parallel"},
    "next": {"context_sentences": 2, "context_selection": "next", "memory_combination": "parallel"},
    "random": {"context_sentences": 2, "context_selection": "random"},
    "without-rnn": {"memory_without_rnn": True, "context_sentences": 2},
    "without-attention": {"memory_without_attention": True, "context_sentences": 2, "memory_combination": "parallel"},
    "without-attention-joined": {"memory_without_attention": True, "context_sentences": 2},
    "without-both": {
        "memory_without_rnn": True,
        "memory_without_attention": True,
        "context_sentences": 2,
        "memory_combination": "parallel",
    },
    "without-both-joined": {"memory_without_rnn": True, "memory_without_attention": True, "context_sentences": 2},
}


@PRECISIONS
@pytest.mark.parametrize("variant", slow_except({"joined", "parallel", "ca-cnn", "without-attention"}, VARIANTS))
@settings(max_examples=4)
@given(layout=layouts(max_sentences=4, max_words=4))
def test_equals_loop_reference(variant, dtype, tolerance, layout):
    assert_equals_reference(build(dtype, **VARIANTS[variant]), layout, "own", dtype, tolerance)


@PRECISIONS
@pytest.mark.parametrize("scope", ["document", "batch"])
@pytest.mark.parametrize("variant", slow_except({"joined", "parallel"}, ["joined", "parallel", "without-attention"]))
@settings(max_examples=3)
@given(layout=layouts(max_documents=2, max_sentences=4, max_words=4))
def test_wider_scopes_equal_loop_reference(variant, scope, dtype, tolerance, layout):
    mechanism = build(dtype, memory_scope=scope, **VARIANTS[variant])
    assert_equals_reference(mechanism.train(), layout, scope, dtype, tolerance)


@PRECISIONS
@pytest.mark.parametrize("variant", slow_except({"parallel"}, ["joined", "parallel", "without-both"]))
@settings(max_examples=3)
@given(layout=layouts(max_documents=2, max_sentences=3, max_words=4), data=st.data())
def test_training_set_context_equals_loop_reference(variant, dtype, tolerance, layout, data):
    """[M] sec. 6.2: "we select the context sentence randomly from the training set"."""
    rows, others = layout.tokens.rows, data.draw(st.integers(1, 3))
    table = [data.draw(st.lists(st.integers(rows, rows + others - 1), min_size=2, max_size=2)) for _ in range(rows)]
    drawn = np.array([*table, *[[-1, -1]] * others])
    layout = make_layout(
        [*layout.tokens.lengths, *[3] * others], [*layout.sentences.lengths, *[1] * others], drawn=drawn
    )
    mechanism = build(dtype, **{**VARIANTS[variant], "context_selection": "training-set", "context_sentences": 2})
    assert_equals_reference(mechanism, layout, "own", dtype, tolerance)
    groups = addressed(mechanism, layout)
    assert [list(group[0]) for group in groups] == [*table, *[[]] * others]


def test_batch_without_context_has_zero_gradients():
    layout = make_layout([3, 1], [1, 1])
    mechanism, (x, embeddings) = build(context_sentences=2), states(layout)
    out = mechanism(x, layout, embeddings)
    out.sum().backward()
    assert (out == 0).all() and not mechanism.has_context(layout).any()
    assert all((parameter.grad == 0).all() for parameter in mechanism.parameters())


def test_each_context_sentence_is_encoded_once():
    layout = make_layout([2, 3, 1, 2], [4])
    mechanism = build(context_sentences=3, memory_combination="parallel")
    read = []
    mechanism.rnn.register_forward_hook(lambda module, inputs, output: read.append(len(inputs[0].data)))
    mechanism(*(lambda x, e: (x, layout, e))(*states(layout)))
    assert read == [8]


def test_batch_scope_applies_in_training_only():
    layout = make_layout([2, 3, 1, 2], [2, 2])
    x, embeddings = states(layout)
    own, batch = build(), build(memory_scope="batch")
    assert not torch.allclose(batch.train()(x, layout, embeddings), own(x, layout, embeddings))
    assert torch.equal(batch.eval()(x, layout, embeddings), own(x, layout, embeddings))


@pytest.mark.parametrize("training", [True, False])
def test_all_plans_are_made_in_advance(training):
    layout = make_layout([2, 3, 1, 2], [2, 2])
    x, embeddings = states(layout)
    mechanism = build(memory_scope="batch").train(training)
    made = set(layout.with_plans(mechanism.plans())._plans)
    mechanism(x, layout, embeddings)
    assert set(layout._plans) == made
