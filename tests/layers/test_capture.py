"""Captured evidence is what mechanisms compute with; without a capture nothing is kept."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import docnmt_fairseq.context  # noqa: F401  (registers all)
from docnmt_fairseq.context.conditional.kernels import kernel_for
from docnmt_fairseq.context.conditional.tree import SentenceTrees
from docnmt_fairseq.layers.base import ContextGate
from docnmt_fairseq.layers.capture import (
    SENTENCES,
    TOKENS,
    ContextShare,
    NodeRelevance,
    Relevance,
    Weights,
    capture,
)
from tests.reference.attention import keep_top_t, sentences_of, words_of
from tests.support.comparison import run
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

WIDTH = 8


def build(name, **options):
    torch.manual_seed(0)
    layer = {"embed_dim": WIDTH, "heads": 2, "head_dim": WIDTH // 2}
    return build_mechanism(name, **layer, context_top_t=2, **options).double().eval()


def random_states(layout):
    return torch.randn(layout.tokens.total, WIDTH, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def evidence_of(mechanism, x, layout):
    with capture() as captured:
        run(mechanism, x, layout)
    return captured.of(mechanism)


def one(evidence, kind, over=None):
    (found,) = (e for e in evidence if isinstance(e, kind) and (over is None or e.over == over))
    return found


@pytest.mark.parametrize("name", ["conditional", "tree"])
def test_relevance_is_that_of_the_kernel(name, monkeypatch):
    layout, mechanism, seen = make_layout([2, 3, 1, 2, 2, 4], [5, 1]), build(name), []
    kernel = kernel_for("auto", torch.zeros(1, dtype=torch.double))
    attend = kernel.attend
    monkeypatch.setattr(kernel, "attend", lambda *args: seen.append(args[4]) or attend(*args))
    relevance = one(evidence_of(mechanism, random_states(layout), layout), Relevance).scores
    (selection,) = seen
    for item, sentences, scores in zip(selection.items, selection.sentence, selection.scores):
        for head in range(2):
            kept = {int(row): float(score) for row, score in zip(sentences[head], scores[head]) if row >= 0}
            finite = relevance[item, :, head].isfinite().nonzero().flatten()
            assert finite.tolist() == sorted(kept)
            for row in kept:
                assert float(relevance[item, row, head]) == pytest.approx(kept[row], abs=1e-12)


@settings(max_examples=8)
@given(layouts())
def test_conditional_attention_equals_its_equations(layout):
    mechanism, x = build("conditional"), random_states(layout)
    evidence = evidence_of(mechanism, x, layout)
    relevance, weights = one(evidence, Relevance).scores, one(evidence, Weights).weights
    encodings, d_k = mechanism.sentence_encoder(x, layout.tokens), WIDTH // 2
    for i in range(len(x)):
        document = sentences_of(layout, int(layout.token_document[i]))
        for head in range(2):
            cut = slice(head * d_k, (head + 1) * d_k)
            query = mechanism.sentence_q_proj(x[i])[cut]
            scores = [query @ mechanism.sentence_k_proj(encodings[row])[cut] / math.sqrt(d_k) for row in document]
            kept = {document[place]: scores[place] for place in keep_top_t(scores, 2)}
            tokens = [token for row in kept for token in words_of(layout, row)]
            sums = [
                mechanism.q_proj(x[i])[cut] @ mechanism.k_proj(x[token])[cut] / math.sqrt(d_k)
                + kept[int(layout.token_sentence[token])]
                for token in tokens
            ]
            expected = torch.zeros(len(x), dtype=torch.double)
            expected[tokens] = torch.softmax(torch.stack(sums), 0)
            torch.testing.assert_close(weights[i, :, head], expected, atol=1e-9, rtol=1e-9)
            for row in range(layout.tokens.rows):
                wanted = float(kept[row]) if row in kept else -math.inf
                assert float(relevance[i, row, head]) == pytest.approx(wanted, abs=1e-9)


def test_tree_relevance_is_the_sum_over_the_path():
    layout = make_layout([2, 3, 1, 2, 2], [5])
    x, trees = random_states(layout), SentenceTrees(layout.sentences)
    evidence = evidence_of(build("tree"), x, layout)
    nodes, relevance = one(evidence, NodeRelevance), one(evidence, Relevance).scores
    assert nodes.scores.shape == (len(x), sum(trees.sizes), 2) and not nodes.cumulative
    for row in range(5):
        path = [trees.first[height, 0] + row // 2**height for height in range(len(trees.sizes))]
        kept = relevance[:, row].isfinite()
        assert kept.any()
        torch.testing.assert_close(relevance[:, row][kept], nodes.scores[:, path].sum(1)[kept])


@pytest.mark.parametrize("contexts, combination", [(1, "concatenate"), (3, "parallel"), (2, "concatenate")])
def test_memory_weights_reproduce_its_output(contexts, combination):
    layout = make_layout([2, 3, 1, 2, 2], [3, 2])
    mechanism = build("memory", context_sentences=contexts, memory_combination=combination)
    x, seen = random_states(layout), []
    mechanism.feed_forward.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    mechanism.context_attention.out_proj.register_forward_hook(lambda module, args, output: seen.append(output))
    evidence = evidence_of(mechanism, x, layout)
    c, a = seen
    weights, plan = one(evidence, Weights, TOKENS).weights.squeeze(-1), mechanism.plan(layout)
    if plan.items is None:  # sequences are the sentences: c' of the batch's tokens, each once
        torch.testing.assert_close(weights[plan.has_context][:, : len(x)] @ c, a, atol=1e-12, rtol=1e-12)
        beta = one(evidence, Weights, SENTENCES).weights
        torch.testing.assert_close(beta.sum(1).squeeze(-1), plan.has_context.double())
        masses = weights[:, : len(x)].new_zeros(len(x), 5).index_add(1, layout.token_sentence, weights[:, : len(x)])
        torch.testing.assert_close(masses, beta.squeeze(-1))
    else:
        assert (weights[plan.has_context, -1] > 0).any()  # breaks get attention, too
        torch.testing.assert_close(weights.sum(1), plan.has_context.double())


def test_context_share_of_a_gate():
    torch.manual_seed(0)
    gate = ContextGate(WIDTH).double()
    source, context = torch.randn(2, 3, WIDTH, dtype=torch.double)
    with capture() as captured:
        mixed = gate(source, context, torch.tensor([True, False, True]))
    (share,) = (e.share for e in captured.of(gate) if isinstance(e, ContextShare))
    assert share[1].isnan().all()
    torch.testing.assert_close(mixed[[0, 2]], (source + share * (context - source))[[0, 2]])
    assert np.isclose(mixed[1].detach(), source[1]).all()
