"""Selection loss: equation, gradients, and phases."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional import selection_loss
from docnmt_fairseq.context.conditional.attention import ConditionalAttention
from docnmt_fairseq.context.conditional.selection import Selection, TopT
from docnmt_fairseq.context.conditional.selection_loss import DivergenceTokens, selection_divergence
from docnmt_fairseq.context.conditional.tree_attention import TreeAttention
from docnmt_fairseq.layers.auxiliary_losses import collect, recomputed
from docnmt_fairseq.layers.precision import stable_top_k
from tests.reference import divergence as reference
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

HEADS, D = 2, 3


def layout_of(documents):
    """Returns the layout of documents with these sentence lengths."""
    return make_layout([m for lengths in documents for m in lengths], [len(lengths) for lengths in documents])


def states(layout, dtype=torch.double, scale=1.0):
    torch.manual_seed(0)
    n, rows = layout.tokens.total, layout.tokens.rows
    q, k, q_s = (scale * torch.randn(n, HEADS, D, dtype=dtype) for _ in range(3))
    return q, k, q_s.requires_grad_(), (scale * torch.randn(rows, HEADS, D, dtype=dtype)).requires_grad_()


def chosen(q_s, k_s, layout, plan, t):
    """Returns the t best of every token that selects, also as sets of rows for the reference."""
    sentence = torch.full((len(plan.items), HEADS, t), -1)
    sets = {}
    for place, i in enumerate(plan.items.tolist()):
        first, last = layout.sentences.offsets[layout.token_document[i] :][:2]
        scores = torch.einsum("hd,rhd->hr", q_s[i], k_s[first:last])
        rows = stable_top_k(scores, t)[1] + first
        sentence[place] = rows
        sets[i] = [set(of_head) for of_head in rows.tolist()]
    return sentence, sets


@settings(max_examples=12)
@given(
    layouts(max_sentences=7, max_words=3), st.integers(1, 4), st.sampled_from([0.5, 1.0]), st.booleans(), st.booleans()
)
def test_equals_loop_reference(layout, t, temperature, selects, chunks):
    q, k, q_s, k_s = states(layout)
    key = TopT(t)
    selecting, selection, sets = layout.plan(key), None, None
    if selects and len(selecting.items):
        sentence, sets = chosen(q_s, k_s, layout, selecting, t)
        selection = Selection(key, selecting.items, sentence, sentence.double())
    plan = layout.plan(DivergenceTokens(key))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_loss, "CHUNK", 8 if chunks else 2**19)
        loss, *masses = selection_divergence(q, k, q_s, k_s, plan, t, temperature, selection)
    tokens = selecting.items.tolist()
    assert plan.tokens == len(tokens)
    expected, *found = reference.selection_divergence(q, k, q_s, k_s, layout, tokens, t, temperature, sets)
    assert float(loss) == pytest.approx(float(expected), abs=1e-9)
    assert [float(mass) for mass in masses] == pytest.approx(found, abs=1e-9)
    if tokens:
        of_fast = torch.autograd.grad(3 * loss, (q_s, k_s))
        of_slow = torch.autograd.grad(3 * expected, (q_s, k_s))
        torch.testing.assert_close(of_fast, of_slow, atol=1e-9, rtol=1e-9)


def test_documents_that_do_not_select_yet(production_price):
    """During annealing, documents with at most the current t sentences do not select, but have the loss."""
    layout = layout_of([[2, 3, 1, 2, 2], [1, 4, 2]])
    q, k, q_s, k_s = states(layout)
    plan, key = layout.plan(DivergenceTokens(TopT(2))), TopT(3)
    selecting, tokens = layout.plan(key), range(layout.tokens.total)
    assert len(plan.real) == 1 and not plan.real[0].all()
    assert len(selecting.items) < plan.tokens == len(tokens)
    sentence, sets = chosen(q_s, k_s, layout, selecting, 3)
    selection = Selection(key, selecting.items, sentence, sentence.double())
    loss, *masses = selection_divergence(q, k, q_s, k_s, plan, 2, selection=selection)
    sets = {i: sets.get(i, [range(layout.tokens.rows)] * HEADS) for i in tokens}
    expected, *found = reference.selection_divergence(q, k, q_s, k_s, layout, tokens, 2, 0.5, sets)
    assert [float(x) for x in (loss, *masses)] == pytest.approx([float(expected), *found], abs=1e-9)
    of_fast, of_slow = (torch.autograd.grad(of, (q_s, k_s)) for of in (loss, expected))
    torch.testing.assert_close(of_fast, of_slow, atol=1e-9, rtol=1e-9)


def test_half_types_and_autocast_are_computed_in_float32():
    layout = layout_of([[2, 3, 1, 2, 2]])
    plan = layout.plan(DivergenceTokens(TopT(2)))
    halves = [x.detach().bfloat16() for x in states(layout)]
    expected, *_ = selection_divergence(*(x.float() for x in halves), plan, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, *_ = selection_divergence(*halves, plan, 2)
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)


def mechanism(kind=ConditionalAttention, **options):
    torch.manual_seed(0)
    built = build_mechanism(
        kind, embed_dim=6, heads=2, head_dim=3, **{"context_top_t": 2, "selection_loss": 1.0, **options}
    )
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return built.double()


def handed_in(built, update, layout=None, x=None):
    layout = layout or layout_of([[2, 3, 1, 2, 2], [1, 4]])
    x = torch.randn(layout.tokens.total, 6, dtype=torch.double) if x is None else x
    built.schedule.set_num_updates(update)
    with collect() as collected:
        built(x, layout)
    return collected


@pytest.mark.parametrize("kind", [ConditionalAttention, TreeAttention])
@pytest.mark.parametrize("update", [5, 20])
def test_gradients_reach_only_selection_and_sentence_encoder(kind, update):
    built = mechanism(kind, context_top_t_anneal_start=10, selection_loss_phase="always")
    layout = layout_of([[2, 3, 1, 2, 2], [1, 4]])
    x = torch.randn(layout.tokens.total, 6, dtype=torch.double, requires_grad=True)
    loss = handed_in(built, update, layout, x).weighted()
    names, parameters = zip(*built.named_parameters())
    of_x, *gradients = torch.autograd.grad(loss, (x, *parameters), allow_unused=True)
    assert of_x is None
    reached = {name for name, gradient in zip(names, gradients) if gradient is not None and gradient.abs().sum() > 0}
    # The bias of a key is equal for all sentences and cancels in the softmax, but not along the paths of a tree.
    expected = {name for name in names if name.startswith(("sentence_", "merge."))}
    assert expected - reached <= {"sentence_k_proj.bias", "sentence_encoder.k_proj.bias", "merge.k_proj.bias"}
    assert reached <= expected


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ({"selection_loss": 0.0}, {0: False, 9: False}),
        ({"selection_loss": 0.0, "context_top_t_anneal_threshold": 0.9}, {9: True}),
        ({"selection_loss_phase": "dense"}, {0: True, 9: True, 10: False}),
        ({"selection_loss_phase": "window"}, {6: False, 7: True, 9: True, 10: False}),
        ({"selection_loss_phase": "always"}, {0: True, 10: True}),
    ],
)
def test_phases(phase, expected):
    built = mechanism(context_top_t_anneal_start=10, selection_loss_updates=3, **phase)
    assert {update: bool(handed_in(built, update).losses) for update in expected} == expected


@pytest.mark.parametrize(("update", "training"), [(9, True), (10, True), (10, False)])
def test_validation_logs_the_loss_in_every_phase(update, training):
    built = mechanism(context_top_t_anneal_start=10).train(training)
    handed = {loss.name for loss in handed_in(built, update).losses}
    assert bool(handed) == (update == 9 or not training)
    assert set(built.hands_in()) == handed


@pytest.mark.parametrize("start", [0, 4])
def test_loss_does_not_depend_on_the_batch(start):
    """Two documents together give the sum of both, also if only one of them selects."""
    built = mechanism(context_top_t_anneal_start=10, context_top_t_start=start)
    together = layout_of([[2, 3, 1, 2, 2], [1, 4, 2]])
    x = torch.randn(together.tokens.total, 6, dtype=torch.double)
    both = handed_in(built, 9, together, x)
    separate = [
        handed_in(built, 9, layout_of([lengths]), part)
        for lengths, part in zip([[2, 3, 1, 2, 2], [1, 4, 2]], x.split([10, 7]))
    ]
    torch.testing.assert_close(both.weighted(), sum(collected.weighted() for collected in separate))
    for name, (total, count) in both.sums().items():
        torch.testing.assert_close(total, sum(collected.sums()[name][0] for collected in separate))
        assert float(count) == pytest.approx(sum(float(collected.sums()[name][1]) for collected in separate))


def test_recomputed_activations_give_the_same_loss_and_gradients():
    built, layout = mechanism(context_top_t_anneal_start=10), layout_of([[2, 3, 1, 2, 2]])
    built.schedule.set_num_updates(9)
    x = torch.randn(layout.tokens.total, 6, dtype=torch.double, requires_grad=True)
    results = []
    for call in (lambda: built(x, layout), lambda: recomputed(built, x, layout)):
        with collect() as collected:
            out = call()
        loss = out.square().sum() + collected.weighted()
        results.append((loss, torch.autograd.grad(loss, list(built.parameters())), len(collected.losses)))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({"context_top_t": 4, "selection_loss": 1.0}, True),
        ({"context_top_t": 4, "selection_loss": 0.0}, False),
        ({"context_top_t": 0, "selection_loss": 1.0}, False),
        ({"context_top_t": 4, "selection_loss": 1.0, "context_top_t_anneal_start": 10}, False),
        ({"context_top_t": 4, "selection_loss": 1.0, "context_top_t_anneal_threshold": 0.9}, False),
        ({"context_top_t": 4, "selection_loss": 1.0, "selection_loss_phase": "always"}, False),
    ],
)
def test_warning_if_the_loss_is_never_active(given, warned):
    for kind in (ConditionalAttention, TreeAttention):
        said = list(kind.remarks(kind.Options(**given)))
        assert bool(said) == warned and all("--context-top-t-anneal-start" in one for one in said)
