"""Contract of context mechanisms, checked for every registered one.

One mechanism: ``python -m pytest tests/context -k NAME -m ""``. A mechanism of another package is registered by
``-p PACKAGE.MODULE``, which imports its module. ``docs/extending.md`` lists what is checked.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import docnmt_fairseq.context  # noqa: F401  (registers all)
from docnmt_fairseq.batch.layout import OfTargets, TargetsToSentences
from docnmt_fairseq.context.base import ADDED, CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.layers.capture import TOKENS, Weights, capture, observer
from docnmt_fairseq.models.base import accumulate_in_fp32
from docnmt_fairseq.models.encoder_outputs import PreviousTargets
from tests.support.comparison import PRECISIONS, run, stirred
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.summed import Narrowed, Summed

WIDTH, SOURCE_WIDTH = 8, 6
EXACT = {"atol": 1e-12, "rtol": 1e-12}
NAMES = CONTEXT_MECHANISMS.names()
every_mechanism = pytest.mark.parametrize("name", NAMES)
every_decoder_mechanism = pytest.mark.parametrize("name", DECODER_MECHANISMS.names())
every_target_mechanism = pytest.mark.parametrize("name", TARGET_MECHANISMS.names())
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def build(name, width=WIDTH, heads=2, **options):
    torch.manual_seed(0)
    sizes = {"embed_dim": width, "heads": heads, "head_dim": width // heads, "context_top_t": 2}
    return build_mechanism(name, **{**sizes, **options}).double()


def build_for_decoder(name, **options):
    return build(name, source_dim=SOURCE_WIDTH, source_heads=2, **options)


def random(rows, width=WIDTH, seed=0):
    return torch.randn(rows, width, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def random_states(layout, seed=0):
    return random(layout.tokens.total, seed=seed)


def parts_of(layout):
    """Returns the sentence lengths of each document."""
    return np.split(layout.tokens.lengths, layout.sentences.offsets[1:-1])


@every_mechanism
@settings(max_examples=8)
@given(layouts(max_documents=4), st.randoms(use_true_random=False))
def test_documents_are_independent(name, layout, random):
    mechanism, x = build(name), random_states(layout)
    tokens = x.split(layout.document_tokens.lengths.tolist())
    together = run(mechanism, x, layout).split(layout.document_tokens.lengths.tolist())
    order, sentences = list(range(layout.sentences.rows)), parts_of(layout)
    random.shuffle(order)
    shuffled = make_layout(np.concatenate([sentences[d] for d in order]), layout.sentences.lengths[order])
    in_other_order = run(mechanism, torch.cat([tokens[d] for d in order]), shuffled)
    for place, part in enumerate(in_other_order.split(shuffled.document_tokens.lengths.tolist())):
        torch.testing.assert_close(part, together[order[place]], **EXACT)
    for number, lengths in enumerate(sentences):
        alone = run(mechanism, tokens[number], make_layout(lengths, [len(lengths)]))
        torch.testing.assert_close(alone, together[number], **EXACT)


@every_mechanism
def test_no_gradient_crosses_documents(name):
    layout = make_layout([2, 3, 1, 2, 2], [2, 3])
    x = random_states(layout).requires_grad_()
    run(build(name), x, layout)[:5].sin().sum().backward()  # the sum of a layer norm's output is constant
    assert x.grad[:5].abs().sum() > 0
    assert (x.grad[5:] == 0).all()


@every_mechanism
def test_output_depends_on_other_sentences(name):
    layout = make_layout([2, 3, 1], [3])
    x, mechanism = random_states(layout), build(name)
    changed = torch.cat([random_states(layout, seed=1)[:5], x[5:]])
    assert not torch.allclose(run(mechanism, x, layout)[5:], run(mechanism, changed, layout)[5:])


@every_mechanism
def test_smallest_documents_are_finite(name):
    layout = make_layout([1], [1])
    x = random_states(layout).requires_grad_()
    out = run(build(name), x, layout)
    out.sum().backward()
    assert out.isfinite().all() and x.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name in NAMES if CONTEXT_MECHANISMS[name].placements[0] in ADDED])
def test_zero_initialisation_is_zero(name):
    layout = make_layout([2, 3], [2])
    assert (build(name, zero_init=True)(random_states(layout), layout) == 0).all()


@every_mechanism
def test_gradient_in_float64(name):
    layout, mechanism = make_layout([2, 1, 2], [2, 1]), build(name)
    assert torch.autograd.gradcheck(lambda x: run(mechanism, x, layout), random_states(layout).requires_grad_())


@every_mechanism
def test_large_states_do_not_overflow_float16(name):
    """Inner products of such states overflow."""
    layout, mechanism = make_layout([3, 2, 4, 3], [4]), build(name, width=64, heads=4, ffn_dim=64).half()
    x = (300 * random(layout.tokens.total, 64)).half()
    assert float((x.float() @ x.float().t()).max()) > torch.finfo(torch.float16).max
    x.requires_grad_()
    found = run(mechanism, x, layout)
    found.float().sin().sum().backward()
    assert found.isfinite().all() and x.grad.isfinite().all()


@every_mechanism
def test_half_types_are_summed_in_float32(name):
    """Also in the backward pass, e.g. of index_select: rows that are read several times need ``gather_rows``."""
    layout, mechanism = make_layout([2, 1, 2, 3, 2, 2], [4, 2]), stirred(build(name), torch.bfloat16).train()
    accumulate_in_fp32(mechanism)  # as the task does: nn.Embedding and nn.LayerNorm may be used
    x = random_states(layout).bfloat16().requires_grad_()
    with Summed() as summed:
        found = run(mechanism, x, layout)
        summed.backward = True
        found.float().sin().sum().backward()
    # of biases, which PyTorch accumulates in float32; of the few sources of a combination
    assert summed.found <= {("sum", "backward"), ("sum", "combinations.py")}


@every_mechanism
def test_float64_stays_float64(name):
    layout, mechanism = make_layout([2, 1, 2, 3, 2], [4, 1]), build(name).train()
    x = random_states(layout).requires_grad_()
    with Narrowed() as narrowed:
        run(mechanism, x, layout).sin().sum().backward()
    assert narrowed.found == set()


@every_mechanism
def test_tokens_without_context(name):
    """Zeros where context is added, finite where a gate leaves them out; all others depend on their context."""
    layout, mechanism = make_layout([2, 3, 1, 2], [1, 3]), stirred(build(name)).eval()
    out, has_context = run(mechanism, random_states(layout), layout), mechanism.has_context(layout)
    assert out.isfinite().all()
    if has_context is None:
        return
    assert has_context.shape == (len(out),) and has_context.dtype == torch.bool and has_context.any()
    assert (out[has_context] != 0).any(1).all()
    if CONTEXT_MECHANISMS[name].placements[0] in ADDED:
        assert (out[~has_context] == 0).all()


@every_mechanism
def test_sizes_of_the_layer(name):
    """In the placement ``heads``, heads · head_dim is less than embed_dim."""
    layout, head_dim = make_layout([2, 3, 1], [3]), 3 if "heads" in CONTEXT_MECHANISMS[name].placements else 6
    mechanism = build(name, width=12, head_dim=head_dim, ffn_dim=7)
    assert run(mechanism, random(layout.tokens.total, 12), layout).shape == (layout.tokens.total, 12)


@every_mechanism
def test_attention_dropout_in_training_only(name):
    layout = make_layout([2, 3, 1, 2], [4])
    x, mechanism, dropping = random_states(layout), build(name), build(name, dropout=0.5)
    if not any(0.5 in (getattr(module, "dropout", 0), getattr(module, "p", 0)) for module in dropping.modules()):
        pytest.skip("no module has layer.dropout")
    expected = run(mechanism.train(), x, layout)
    assert torch.equal(run(dropping.eval(), x, layout), run(mechanism.eval(), x, layout))
    assert not torch.allclose(run(dropping.train(), x, layout), expected)


@every_mechanism
@settings(max_examples=8)
@given(layouts(max_documents=3))
def test_captured_weights_sum_to_one_within_the_document(name, layout):
    mechanism, x = build(name).eval(), random_states(layout)
    with capture() as captured:
        run(mechanism, x, layout)
    has_context = mechanism.has_context(layout)
    has_context = torch.ones(len(x), dtype=torch.bool) if has_context is None else has_context
    weights = [evidence for evidence in captured.of(mechanism) if isinstance(evidence, Weights)]
    assert weights or not has_context.any()
    other = layout.token_document[:, None] != layout.sentences.item_row
    for evidence in weights:
        assert evidence.weights.shape[0] == len(x) and (evidence.weights >= 0).all()
        of_sentences = evidence.weights
        if evidence.over == TOKENS:
            of_sentences = evidence.weights.new_zeros(len(x), layout.tokens.rows, evidence.weights.size(2))
            of_sentences.index_add_(1, layout.token_sentence, evidence.weights[:, : len(x)])
        assert (of_sentences[other] == 0).all()
        if evidence.name != "attention inside each sentence":
            expected = has_context[:, None].expand(-1, evidence.weights.size(2)).double()
            torch.testing.assert_close(evidence.weights.sum(1), expected)


@every_mechanism
def test_capture_changes_no_output(name):
    layout, mechanism = make_layout([2, 3, 1, 2], [4]), build(name).eval()
    x = random_states(layout)
    silent = run(mechanism, x, layout)
    with capture():
        assert torch.equal(run(mechanism, x, layout), silent)
    assert observer(mechanism) is None


@on_gpu
@every_mechanism
def test_gpu_equals_cpu(name):
    layout, mechanism = make_layout([7, 1, 12, 30, 4, 9, 2, 5, 3], [6, 3]), build(name)
    x, results = random_states(layout), []
    for device in (torch.device("cpu"), torch.device("cuda")):
        moved = x.to(device).requires_grad_()
        out = run(mechanism.to(device), moved, layout.to(device))
        results.append([out.cpu(), torch.autograd.grad(out.sin().sum(), moved)[0].cpu()])
    torch.testing.assert_close(*results, atol=1e-9, rtol=1e-9)


def with_targets(layout, lengths):
    return make_layout(layout.tokens.lengths, layout.sentences.lengths, target_lengths=lengths)


def random_source(layout):
    return random(layout.tokens.total, SOURCE_WIDTH)


def random_targets(layout):
    return random(layout.targets.total, seed=2)


def mask_of(layout):
    """Returns a mask of the sentences that each target token sees, [M, R]."""
    return torch.from_numpy(layout.decoded_document)[layout.targets.item_row][:, None] == layout.sentences.item_row


def both_ways(layout):
    """Returns the names of the methods that attend in training and in a search, and which sentences tokens see."""
    return (("attend", layout.plan(TargetsToSentences())), ("attend_masked", mask_of(layout)))


@every_decoder_mechanism
@settings(max_examples=8)
@given(layouts(max_documents=4), st.data())
def test_target_tokens_see_their_own_document_only(name, layout, data):
    rows = layout.tokens.rows
    lengths = np.array(data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows)))
    layout = with_targets(layout, lengths)
    mechanism, states, x = build_for_decoder(name), random_source(layout), random_targets(layout)
    projected = mechanism.project(states, layout)
    packed, masked = (getattr(mechanism, attend)(x, projected, seen) for attend, seen in both_ways(layout))
    torch.testing.assert_close(masked, packed, **EXACT)
    sources, targets = parts_of(layout), np.split(lengths, layout.sentences.offsets[1:-1])
    of_targets = [int(part.sum()) for part in targets]
    parts = zip(sources, targets, states.split([int(s.sum()) for s in sources]), x.split(of_targets))
    for (source, target, of_states, of_x), together in zip(parts, packed.split(of_targets)):
        alone = make_layout(source, [len(source)], target_lengths=target)
        found = mechanism.attend(of_x, mechanism.project(of_states, alone), alone.plan(TargetsToSentences()))
        torch.testing.assert_close(found, together, **EXACT)


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
@pytest.mark.parametrize("way", [0, 1], ids=["training", "search"])
def test_gradient_of_decoder_context_in_float64(name, way):
    layout, mechanism = small_batch(), build_for_decoder(name)
    attend, seen = both_ways(layout)[way]
    inputs = (random_targets(layout).requires_grad_(), random_source(layout).requires_grad_())
    assert torch.autograd.gradcheck(
        lambda x, states: getattr(mechanism, attend)(x, mechanism.project(states, layout), seen), inputs
    )


@every_decoder_mechanism
def test_decoder_attention_dropout_in_training_only(name):
    layout, x = small_batch(), random_targets(small_batch())
    mechanism, dropping = build_for_decoder(name), build_for_decoder(name, dropout=0.5)
    for attend, seen in both_ways(layout):

        def attended(built, attend=attend, seen=seen):
            return getattr(built, attend)(x, built.project(random_source(layout), layout), seen)

        assert torch.equal(attended(dropping.eval()), attended(mechanism.eval()))
        assert not torch.allclose(attended(dropping.train()), attended(mechanism.train()))


@every_decoder_mechanism
def test_zero_initialisation_in_the_decoder_is_zero(name):
    layout, mechanism = small_batch(), build_for_decoder(name, zero_init=True)
    projected = mechanism.project(random_source(layout), layout)
    assert (mechanism.attend(random_targets(layout), projected, layout.plan(TargetsToSentences())) == 0).all()


@PRECISIONS
@every_target_mechanism
@settings(max_examples=8)
@given(layout=layouts(max_words=4), contexts=st.integers(1, 4))
def test_incremental_target_context_equals_full(name, dtype, tolerance, layout, contexts):
    mechanism = build(name, context_sentences=contexts).to(dtype)
    x = random_states(layout).to(dtype)
    at_once, has_context = mechanism(x, layout), mechanism.has_context(layout)
    memories = mechanism.project_targets(x).split(layout.tokens.lengths.tolist())
    place = layout.sentence_position.tolist()
    previous = [list(memories[max(row - contexts, row - place[row]) : row]) for row in range(len(memories))]
    assert has_context.tolist() == np.repeat([bool(of_row) for of_row in previous], layout.tokens.lengths).tolist()
    if not any(previous):
        return
    before = PreviousTargets.of_sentences(previous)
    steps = mechanism.look_back(layout.tokens.pad(x), before.projected, before.padding)  # tokens as hypotheses
    assert steps.isfinite().all()
    found = layout.tokens.pack(steps)[has_context]
    torch.testing.assert_close(found, at_once[has_context], atol=tolerance, rtol=tolerance)


def test_layout_of_target_sentences():
    layout = make_layout([1] * 7, [3, 2, 2], decoded=np.array([1, 2, 5, 6]), target_lengths=np.array([4, 1, 2, 3]))
    targets = layout.plan(OfTargets())
    assert targets.tokens.lengths.tolist() == [4, 1, 2, 3] and targets.sentences.lengths.tolist() == [2, 2]
    assert targets.sentence_position.tolist() == [0, 1, 0, 1]
    assert layout.plan(OfTargets()) is targets
    assert layout.with_targets(np.array([1, 1, 1, 5])).plan(OfTargets()).tokens.lengths.tolist() == [1, 1, 1, 5]
