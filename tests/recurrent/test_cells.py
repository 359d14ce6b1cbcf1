"""Recurrent cells, layers and decoder cells."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.recurrent import ca_rnn
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, StepOrder
from docnmt_fairseq.recurrent.layers import (
    ATTENDING_STATES,
    CONDITIONAL_GRU,
    DEEP_OUTPUTS,
    BidirectionalLayers,
    DeepOutput,
    attentive_cell,
    summary,
)
from tests.reference import recurrent as reference
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts

CELLS = RECURRENT_CELLS.names()
every_cell = pytest.mark.parametrize("name", CELLS)
ROWS = Ragged(np.array([3, 1, 5, 2, 5, 1]))


def random(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def build(name, dtype=torch.float64, input_dim=4, state_dim=3):
    torch.manual_seed(0)
    return RECURRENT_CELLS[name](input_dim, state_dim).to(dtype)


def initial_of(cell, rows, dtype=torch.float64):
    return tuple(random(rows, cell.state_dim, dtype=dtype, seed=part + 1) for part in range(cell.parts))


@PRECISIONS
@every_cell
@pytest.mark.parametrize("reverse", [False, True])
@settings(max_examples=5)
@given(layout=layouts(max_documents=2))
def test_sequence_equals_steps(name, reverse, dtype, tolerance, layout):
    cell, x = build(name, dtype), random(layout.tokens.total, 4, dtype=dtype)
    state = initial_of(cell, layout.tokens.rows, dtype)
    fast = cell.sequence(x, StepOrder(layout.tokens, reverse=reverse), state)
    slow = reference.sequence(cell, x, layout.tokens.lengths, state, reverse)
    assert_same(fast, slow, [x, *state, *cell.parameters()], tolerance)


@PRECISIONS
@every_cell
def test_step_equals_its_equation(name, dtype, tolerance):
    cell, x = build(name, dtype), random(5, 4, dtype=dtype)
    state = initial_of(cell, 5, dtype)
    step, module = reference.step_of(cell)
    slow = [torch.cat(step(module, x[row], tuple(part[row] for part in state))) for row in range(5)]
    fast = torch.cat(cell.step(x, state), dim=1)
    assert_same(fast, torch.stack(slow), [x, *state, *cell.parameters()], tolerance)


def test_gradients_of_ca_rnn():
    cell = build("ca-rnn")
    x, state, order = random(ROWS.total, 4), initial_of(cell, ROWS.rows), StepOrder(ROWS)
    weights = [parameter.detach().requires_grad_() for parameter in cell.parameters()]
    names = [name for name, _ in cell.named_parameters()]

    def outputs(x, *tensors):
        given = dict(zip(names, tensors[len(state) :]))
        return torch.func.functional_call(cell, given, (x, order, tensors[: len(state)]))

    cell.forward = cell.sequence
    assert torch.autograd.gradcheck(outputs, (x, *state, *weights))


@settings(max_examples=20)
@given(layout=layouts(max_documents=2))
def test_step_order(layout):
    rows = layout.tokens
    for among in (None, np.arange(rows.rows)[::2]):
        for reverse in (False, True):
            order = StepOrder(rows, among, reverse)
            taken = order.items.tolist()
            chosen = range(rows.rows) if among is None else among.tolist()
            assert sorted(taken) == [i for row in chosen for i in range(rows.offsets[row], rows.offsets[row + 1])]
            assert order.places[order.items].tolist() == [*range(len(taken))]
            assert sum(order.sizes) == len(taken) and order.sizes == sorted(order.sizes, reverse=True)
            step = -1 if reverse else 1
            later = order.items[order.sizes[0] :]
            assert torch.equal(order.items[order.before] + step, later)
            assert sum(s.stop - s.start for s in ca_rnn.step_slices(order)) == len(taken)


@PRECISIONS
@every_cell
@settings(max_examples=3)
@given(layout=layouts(max_documents=2, max_sentences=3, max_words=4))
def test_bidirectional_layers(name, dtype, tolerance, layout):
    torch.manual_seed(0)
    layers, x = BidirectionalLayers(name, 4, 3, layers=2).to(dtype), random(layout.tokens.total, 4, dtype=dtype)
    fast, slow = layers(x, layout), reference.bidirectional(layers, x, layout.tokens.lengths)
    assert_same(fast, slow, [x, *layers.parameters()], tolerance)


def test_summary():
    states = random(ROWS.total, 6)
    of_rows = states.split(ROWS.lengths.tolist())
    torch.testing.assert_close(summary(states, ROWS, "mean"), torch.stack([row.mean(0) for row in of_rows]))
    assert torch.equal(summary(states, ROWS, "last-backward"), torch.stack([row[0, 3:] for row in of_rows]))


PLACES = [(name, "previous", "output") for name in [*CELLS, CONDITIONAL_GRU]]
PLACES += [(name, "updated", "output") for name in CELLS]
PLACES += [(name, place, "cell") for name in ("lstm", "ca-rnn") for place in ATTENDING_STATES]


@PRECISIONS
@pytest.mark.parametrize(("name", "place", "query"), PLACES)
def test_decoder_cells(name, place, query, dtype, tolerance):
    torch.manual_seed(0)
    cell = attentive_cell(name, 4, 2, 3, place, query).to(dtype)
    attend = torch.nn.Linear(3, 2).to(dtype)
    y = random(5, 4, dtype=dtype)
    state = tuple(random(5, width, dtype=dtype, seed=part) for part, width in enumerate(cell.widths, start=1))
    found, context, shares = cell(y, state, lambda s: (attend(s), s[:, :1]))
    step = reference.DECODER_STEPS[type(cell).__name__]
    slow = [step(cell, y[row], tuple(part[row] for part in state), attend) for row in range(5)]
    slow = torch.stack([torch.cat([*of_row, c]) for of_row, c in slow])
    wanted = [y, *state, *cell.parameters(), *attend.parameters()]
    assert_same(torch.cat([*found, context], dim=1), slow, wanted, tolerance)
    assert shares.shape == (5, 1)


@PRECISIONS
@pytest.mark.parametrize("kind", DEEP_OUTPUTS)
def test_deep_output_equals_its_equation(kind, dtype, tolerance):
    torch.manual_seed(0)
    module = DeepOutput(3, 4, 2, 5, kind).to(dtype)
    s, y, c = (random(6, width, dtype=dtype, seed=width) for width in (3, 4, 2))
    slow = torch.stack([reference.deep_output(module, *row) for row in zip(s, y, c)])
    wanted = [s] if kind == "state" else [s, y, c, *module.parameters()]
    assert_same(module(s, y, c), slow, wanted, tolerance)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@every_cell
def test_cells_run_under_autocast(name, kind):
    cell, x = build(name, torch.float32), random(ROWS.total, 4, dtype=kind)
    state = initial_of(cell, ROWS.rows, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        cast = cell.sequence(x, StepOrder(ROWS), state)
    whole = cell.sequence(x.float(), StepOrder(ROWS), state)
    torch.testing.assert_close(cast.float(), whole, atol=0.03, rtol=0.03)
    wanted = [x, *state, *cell.parameters()]
    gradients = (torch.autograd.grad(output.float().sum(), wanted) for output in (cast, whole))
    for of_cast, of_whole in zip(*gradients):
        torch.testing.assert_close(of_cast, of_whole, atol=0.1, rtol=0.05)
