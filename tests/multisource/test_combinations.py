"""Attention to several sources against loops from the equations, padded and packed, with empty sources."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import docnmt_fairseq.multisource  # noqa: F401  (registers all)
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES, masked_softmax
from tests.reference.combination import COMBINATIONS
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.marks import slow_except
from tests.support.sources import Seen, combine_packed, projected_sources
from tests.support.sources import build_combination as build

WIDTH, EVIDENCE, SOURCE_WIDTHS = 6, 5, (4, 7, 6)


def config_of(attention, share, sentinel, sources=3, output_dim=WIDTH, contexts="projected"):
    evidence = EVIDENCE if sentinel else 0
    widths = SOURCE_WIDTHS[:sources]
    return CombinationConfig(WIDTH, widths, output_dim, attention, 3, 2, 0.0, share, sentinel, evidence, contexts)


def is_supported(name, config):
    try:
        ATTENTION_COMBINATIONS[name](config)
    except InputError:
        return False
    return not (
        name == "flat" and config.attention_sentinel and ATTENTION_SCORES[config.combination_attention].context_free
    )


ALL = [
    (name, attention, share, sentinel)
    for name, attention, share, sentinel in itertools.product(
        ATTENTION_COMBINATIONS.names(), ATTENTION_SCORES.names(), (False, True), (False, True)
    )
    if is_supported(name, config_of(attention, share, sentinel))
]
QUICK = [("bahdanau", False, True), ("dot-product", False, False), ("ca-att", False, False), ("luong", True, False)]
every = pytest.mark.parametrize(
    ("name", "attention", "share", "sentinel"),
    [pytest.param(*case, marks=[] if case[1:] in QUICK else [pytest.mark.slow]) for case in ALL],
)


@st.composite
def ragged_sources(draw, sources=3, most=3):
    """Target lengths [S], and of every source how many states each sentence sees, and which."""
    rows = draw(st.integers(1, 4))
    targets = draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows))
    lengths = [draw(st.lists(st.integers(0, most), min_size=rows, max_size=rows)) for _ in range(sources)]
    seen_twice = draw(st.booleans())
    return np.array(targets), [np.array(of_source) for of_source in lengths], seen_twice


def random_inputs(batch, dtype=torch.float64, widths=SOURCE_WIDTHS):
    targets, lengths, seen_twice = batch
    generator = torch.Generator().manual_seed(1)

    def states(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()

    sources = []
    for width, of_source in zip(widths, lengths):
        total, items = int(of_source.sum()), None
        if seen_twice:  # fewer states than are seen
            items = np.arange(total)[::-1] // 2
        sources.append(Seen(states(total if items is None else (total + 1) // 2, width), of_source, items))
    return states(int(targets.sum()), WIDTH), states(int(targets.sum()), EVIDENCE), Ragged(targets), sources


def seen(source):
    """Returns the states of each sentence, one by one."""
    items = np.arange(int(source.lengths.sum())) if source.items is None else source.items
    return [[source.states[i] for i in part] for part in np.split(items, np.cumsum(source.lengths)[:-1])]


def by_loops(name, combination, x, evidence, targets, sources):
    of_rows, contexts, shares = [seen(source) for source in sources], [], []
    for token, row in enumerate(targets.item_row.tolist()):
        proof = evidence[token] if getattr(combination, "sentinel", None) is not None else None
        context, share = COMBINATIONS[name](combination, x[token], [source[row] for source in of_rows], proof)
        contexts.append(context)
        shares.append(torch.stack(list(share)))
    return torch.stack(contexts), torch.stack(shares)


@every
@PRECISIONS
@settings(max_examples=6)
@given(batch=ragged_sources())
def test_combination_equals_its_equation(name, attention, share, sentinel, dtype, tolerance, batch):
    combination = build(name, config_of(attention, share, sentinel), dtype)
    x, evidence, targets, sources = random_inputs(batch, dtype)
    slow, slow_shares = by_loops(name, combination, x, evidence, targets, sources)
    proof = evidence if sentinel else None
    fast, shares = combine_packed(combination, x, targets, sources, proof)
    torch.testing.assert_close(shares, slow_shares, atol=tolerance, rtol=tolerance)
    assert_same(fast, slow, [x, *(source.states for source in sources), *combination.parameters()], tolerance)
    projected, paddings = zip(*(s.padded() for s in projected_sources(combination, sources)))
    proof = targets.pad(evidence) if sentinel else None
    padded, _ = combination(targets.pad(x), list(projected), list(paddings), proof)
    torch.testing.assert_close(targets.pack(padded), fast, atol=tolerance, rtol=tolerance)


@every
def test_absent_source_has_no_share(name, attention, share, sentinel):
    combination = build(name, config_of(attention, share, sentinel))
    x, evidence, targets, sources = random_inputs(
        (np.array([2, 1]), [np.array(n) for n in ([2, 3], [0, 0], [1, 2])], False)
    )
    projected, paddings = (list(y) for y in zip(*(s.padded() for s in projected_sources(combination, sources))))
    assert paddings[1].all()
    results = []
    for filling in (0.0, 1e3):
        projected[1] = torch.full_like(projected[1], filling)
        results.append(combination(targets.pad(x), projected, paddings, targets.pad(evidence) if sentinel else None))
    (context, shares), (other, _) = results
    assert torch.equal(context, other)
    assert (shares[..., 1] == 0).all() and (shares[..., 0] > 0).all()
    if combination.divides and not ATTENTION_SCORES[attention].context_free:
        torch.testing.assert_close(shares.sum(-1), torch.ones_like(shares[..., 0]))


def one_source():
    return random_inputs((np.array([2, 3, 1]), [np.array([3, 1, 2])], False), widths=SOURCE_WIDTHS[:1])


def test_dot_product_equals_multi_head_attention():
    x, _, targets, sources = one_source()
    combination = build("parallel", config_of("dot-product", False, False, 1))
    stock = torch.nn.MultiheadAttention(WIDTH, 2, kdim=4, vdim=4, batch_first=True).double()
    attend, state = combination.attentions[0], stock.state_dict()
    for name, linear in zip("qkv", (attend.score.query, attend.score.keys[0], attend.values)):
        state[f"{name}_proj_weight"] = linear.weight
    state["in_proj_bias"] = torch.cat([attend.score.query.bias, attend.score.keys[0].bias, attend.values.bias])
    state["out_proj.weight"], state["out_proj.bias"] = attend.project.weight, attend.project.bias
    stock.load_state_dict(state)
    states, padding = sources[0].padded()
    expected, _ = stock(targets.pad(x), states, states, key_padding_mask=padding)
    torch.testing.assert_close(combine_packed(combination, x, targets, sources)[0], targets.pack(expected))


def test_padding_per_query():
    x, projected, hidden = torch.randn(1, 3, WIDTH).double(), torch.randn(1, 4, 4).double(), torch.rand(1, 3, 4) < 0.5
    hidden[0, 0], hidden[0, 1, 0] = True, False
    for attention in ATTENTION_SCORES.names():
        for name in ATTENTION_COMBINATIONS.names():
            combination = build(name, config_of(attention, False, False, 1))
            memory = combination.project_sources([projected])
            together, shares = combination(x, memory, [hidden])
            for query in range(3):
                alone, share = combination(x[:, query : query + 1], memory, [hidden[:, query]])
                torch.testing.assert_close(together[:, query], alone[:, 0])
                torch.testing.assert_close(shares[:, query], share[:, 0])


@pytest.mark.parametrize("name", ATTENTION_COMBINATIONS.names())
@pytest.mark.parametrize("attention", slow_except({"dot-product", "ca-att"}, ATTENTION_SCORES.names()))
def test_gradient_in_float64(name, attention):
    sentinel = (name, attention, False, True) in ALL
    combination = build(name, config_of(attention, False, sentinel))
    lengths = [np.array(n) for n in ([2, 1], [0, 2], [1, 0])]
    x, evidence, targets, sources = random_inputs((np.array([1, 2]), lengths, False))

    def combine(x, evidence, *states):
        seen = [source.with_states(given) for source, given in zip(sources, states)]
        return combine_packed(combination, x, targets, seen, evidence if sentinel else None)[0]

    inputs = (x, evidence, *(source.states for source in sources))
    assert torch.autograd.gradcheck(combine, inputs, fast_mode=True)


@pytest.mark.parametrize(
    ("name", "attention", "options"),
    [
        ("parallel", "bahdanau", {"attention_sentinel": True}),
        ("serial", "bahdanau", {"share_combination_projections": True}),
        ("flat", "ca-att", {"share_combination_projections": True}),
        ("flat", "luong", {"share_combination_projections": True, "output_dim": 8}),
        ("hierarchical", "ca-att-luong", {"share_combination_projections": True, "output_dim": 8}),
        ("flat", "bahdanau", {"chi_dim": 2}),
    ],
)
def test_unsupported_combinations_of_options(name, attention, options):
    sizes = {"query_dim": 6, "source_dims": (4,), "output_dim": 6, "combination_attention": attention}
    with pytest.raises(InputError):
        ATTENTION_COMBINATIONS[name](CombinationConfig(**{**sizes, **options}))


def test_dropout_of_ca_att():
    config = CombinationConfig(WIDTH, (4,), WIDTH, "ca-att", dropout=0.5)
    combination = build("parallel", config).train()
    x, h = torch.randn(1, 1, WIDTH).double(), torch.randn(1, 1, 4).double()
    attend, hidden = combination.attentions[0], torch.zeros(1, 1, dtype=torch.bool)
    seen_in_training = set()
    whole, _ = attend.eval().parts(x, attend.project_source(h), hidden)
    for seed in range(20):
        torch.manual_seed(seed)
        dropped, _ = attend.train().parts(x, attend.project_source(h), hidden)
        seen_in_training.add(bool((dropped == 0).all()))
        assert (dropped == 0).all() or torch.allclose(dropped, 2 * whole)
    assert seen_in_training == {False, True}


@pytest.mark.parametrize("attention", ATTENTION_SCORES.names())
def test_large_float16_states(attention):
    """Products of width 64 of such states are not."""
    score = ATTENTION_SCORES[attention](64, (64,), 16, 4)
    generator = torch.Generator().manual_seed(1)
    x, states = ((300 * torch.randn(2, 5, 64, generator=generator)).half().requires_grad_() for _ in range(2))
    energies = score.half()(x, score.key(states, 0))
    weights = masked_softmax(energies, torch.zeros(2, 5, dtype=torch.bool))
    assert energies.isfinite().all() and weights.isfinite().all() and weights.dtype == torch.float32
