"""Properties of every registered context mechanism."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import docnmt_fairseq.context  # noqa: F401  (registers all)
from docnmt_fairseq.batch.layout import TargetsToSentences
from docnmt_fairseq.context.base import ADDED, CONTEXT_MECHANISMS, DECODER_MECHANISMS, PLACEMENTS
from tests.support.comparison import run
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

WIDTH = 8


def build(name, **options):
    torch.manual_seed(0)
    sizes = {"embed_dim": WIDTH, "heads": 2, "head_dim": WIDTH // 2}
    return build_mechanism(name, **sizes, context_top_t=2, **options).double()


def random_states(layout, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(layout.tokens.total, WIDTH, dtype=torch.double, generator=generator)


every_mechanism = pytest.mark.parametrize("name", CONTEXT_MECHANISMS.names())


@every_mechanism
def test_placements_are_known(name):
    placements = CONTEXT_MECHANISMS[name].placements
    assert placements and set(placements) <= set(PLACEMENTS)


@every_mechanism
@settings(max_examples=20)
@given(layouts(max_documents=4), st.randoms(use_true_random=False))
def test_documents_are_independent(name, layout, random):
    mechanism, x = build(name), random_states(layout)
    tokens = x.split(layout.document_tokens.lengths.tolist())
    together = run(mechanism, x, layout).split(layout.document_tokens.lengths.tolist())
    order = list(range(layout.sentences.rows))
    random.shuffle(order)
    sentences = np.split(layout.tokens.lengths, layout.sentences.offsets[1:-1])
    shuffled = make_layout(np.concatenate([sentences[d] for d in order]), layout.sentences.lengths[order])
    in_other_order = run(mechanism, torch.cat([tokens[d] for d in order]), shuffled)
    for place, part in enumerate(in_other_order.split(shuffled.document_tokens.lengths.tolist())):
        torch.testing.assert_close(part, together[order[place]], atol=1e-12, rtol=1e-12)
    for number, lengths in enumerate(sentences):
        alone = run(mechanism, tokens[number], make_layout(lengths, [len(lengths)]))
        torch.testing.assert_close(alone, together[number], atol=1e-12, rtol=1e-12)


@every_mechanism
def test_no_gradient_crosses_documents(name):
    layout = make_layout([2, 3, 1, 2, 2], [2, 3])
    x = random_states(layout).requires_grad_()
    mechanism = build(name)
    run(mechanism, x, layout)[:5].sin().sum().backward()  # the sum of a layer norm's output is constant
    assert x.grad[:5].abs().sum() > 0
    assert (x.grad[5:] == 0).all()


@every_mechanism
def test_output_depends_on_other_sentences(name):
    layout = make_layout([2, 3, 1], [3])
    x, mechanism = random_states(layout), build(name)
    changed = x.clone()
    changed[:5] = random_states(layout, seed=1)[:5]
    assert not torch.allclose(run(mechanism, x, layout)[5:], run(mechanism, changed, layout)[5:])


@every_mechanism
def test_smallest_documents_are_finite(name):
    layout, mechanism = make_layout([1], [1]), build(name)
    x = random_states(layout).requires_grad_()
    out = run(mechanism, x, layout)
    out.sum().backward()
    assert out.isfinite().all() and x.grad.isfinite().all()


@pytest.mark.parametrize(
    "name", [n for n in CONTEXT_MECHANISMS.names() if CONTEXT_MECHANISMS[n].placements[0] in ADDED]
)
def test_zero_initialisation_is_zero(name):
    layout = make_layout([2, 3], [2])
    assert (build(name, zero_init=True)(random_states(layout), layout) == 0).all()


@every_mechanism
def test_gradient_in_float64(name):
    layout, mechanism = make_layout([2, 1, 2], [2, 1]), build(name)
    assert torch.autograd.gradcheck(lambda x: run(mechanism, x, layout), random_states(layout).requires_grad_())


@every_mechanism
def test_bfloat16_runs(name):
    layout, mechanism = make_layout([2, 1, 2, 3], [4]), build(name).bfloat16()
    assert run(mechanism, random_states(layout).bfloat16(), layout).isfinite().all()


# Mechanisms with attention weights.
ATTENDING = ("ca-att", "conditional", "context-aware", "han", "memory", "sentence-encodings", "tree")


@pytest.mark.parametrize("name", ATTENDING)
def test_attention_dropout_in_training_only(name):
    layout = make_layout([2, 3, 1, 2], [4])
    x, mechanism, dropping = random_states(layout), build(name), build(name, dropout=0.5)
    expected = run(mechanism.train(), x, layout)
    assert torch.equal(run(dropping.eval(), x, layout), run(mechanism.eval(), x, layout))
    assert not torch.allclose(run(dropping.train(), x, layout), expected)


def test_unknown_name_lists_known_names():
    with pytest.raises(ValueError, match="conditional"):
        CONTEXT_MECHANISMS["condtional"]


every_decoder_mechanism = pytest.mark.parametrize("name", DECODER_MECHANISMS.names())
SOURCE_WIDTH = 6


def build_for_decoder(name, **options):
    return build(name, source_dim=SOURCE_WIDTH, source_heads=2, **options)


def random_source(layout, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(layout.tokens.total, SOURCE_WIDTH, dtype=torch.double, generator=generator)


def random_targets(layout):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(layout.targets.total, WIDTH, dtype=torch.double, generator=generator)


def mask_of(layout):
    """Returns a mask of the sentences that each target token sees, [N_t, R]."""
    return torch.from_numpy(layout.decoded_document)[layout.targets.item_row][:, None] == layout.sentences.item_row


@every_decoder_mechanism
@settings(max_examples=20)
@given(layouts(max_documents=4), st.data())
def test_target_tokens_see_their_own_document_only(name, layout, data):
    rows = layout.tokens.rows
    lengths = np.array(data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows)))
    layout = make_layout(layout.tokens.lengths, layout.sentences.lengths, target_lengths=lengths)
    mechanism, states, x = build_for_decoder(name), random_source(layout), random_targets(layout)
    projected = mechanism.project(states, layout)
    packed = mechanism.attend(x, projected, layout.plan(TargetsToSentences()))
    torch.testing.assert_close(mechanism.attend_masked(x, projected, mask_of(layout)), packed, atol=1e-12, rtol=1e-12)
    sentences = np.split(layout.tokens.lengths, layout.sentences.offsets[1:-1])
    targets = np.split(lengths, layout.sentences.offsets[1:-1])
    parts = [
        tensor.split([sum(n) for n in of]) for tensor, of in ((states, sentences), (x, targets), (packed, targets))
    ]
    for number, (of_source, of_target) in enumerate(zip(sentences, targets)):
        alone = make_layout(of_source, [len(of_source)], target_lengths=of_target)
        projected = mechanism.project(parts[0][number], alone)
        found = mechanism.attend(parts[1][number], projected, alone.plan(TargetsToSentences()))
        torch.testing.assert_close(found, parts[2][number], atol=1e-12, rtol=1e-12)


def small_batch():
    """Returns two documents of two and three sentences; the first sentence of the second is context only."""
    decoded, lengths = np.array([0, 1, 3, 4]), np.array([2, 1, 2, 2])
    return make_layout([2, 3, 1, 2, 2], [2, 3], decoded=decoded, target_lengths=lengths)


@every_decoder_mechanism
def test_no_gradient_reaches_other_source_documents(name):
    layout = small_batch()
    states, mechanism = random_source(layout).requires_grad_(), build_for_decoder(name)
    out = mechanism.attend(random_targets(layout), mechanism.project(states, layout), layout.plan(TargetsToSentences()))
    out[3:].sum().backward()
    assert (states.grad[:5] == 0).all()
    assert (states.grad[5:].abs().sum(1) > 0).all()  # every token of the document, context-only sentences included


@every_decoder_mechanism
def test_gradient_of_decoder_context_in_float64(name):
    layout, mechanism = small_batch(), build_for_decoder(name)
    inputs = (random_targets(layout).requires_grad_(), random_source(layout).requires_grad_())
    for attend, seen in (
        (mechanism.attend, layout.plan(TargetsToSentences())),
        (mechanism.attend_masked, mask_of(layout)),
    ):

        def attended(x, states, attend=attend, seen=seen):
            return attend(x, mechanism.project(states, layout), seen)

        assert torch.autograd.gradcheck(attended, inputs)


@every_decoder_mechanism
def test_decoder_attention_dropout_in_training_only(name):
    layout, x = small_batch(), random_targets(small_batch())
    mechanism, dropping = build_for_decoder(name), build_for_decoder(name, dropout=0.5)
    for attend, seen in (("attend", layout.plan(TargetsToSentences())), ("attend_masked", mask_of(layout))):

        def attended(built, attend=attend, seen=seen):
            return getattr(built, attend)(x, built.project(random_source(layout), layout), seen)

        assert torch.equal(attended(dropping.eval()), attended(mechanism.eval()))
        assert not torch.allclose(attended(dropping.train()), attended(mechanism.train()))


@every_decoder_mechanism
def test_zero_initialisation_in_the_decoder_is_zero(name):
    layout, mechanism = small_batch(), build_for_decoder(name, zero_init=True)
    projected = mechanism.project(random_source(layout), layout)
    assert (mechanism.attend(random_targets(layout), projected, layout.plan(TargetsToSentences())) == 0).all()


@pytest.mark.parametrize("name", CONTEXT_MECHANISMS.names())
def test_large_states_do_not_overflow_float16(name):
    """Inner products of such states overflow."""
    layout = make_layout([3, 2, 4, 3], [4])
    mechanism = build_mechanism(name, embed_dim=64, heads=4, head_dim=16, ffn_dim=64, context_top_t=2).half()
    x = (300 * torch.randn(layout.tokens.total, 64, generator=torch.Generator().manual_seed(1))).half()
    assert float((x.float() @ x.float().t()).max()) > torch.finfo(torch.float16).max
    x.requires_grad_()
    found = run(mechanism, x, layout)
    found.float().sin().sum().backward()
    assert found.isfinite().all() and x.grad.isfinite().all()
