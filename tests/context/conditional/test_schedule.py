"""Schedule of t."""

import logging

import numpy as np
import pytest
import torch

from docnmt_fairseq.context.conditional.selection import TopTSchedule
from tests.support import toy

N = np.array([1, 3, 16])


@pytest.mark.parametrize(
    ("update", "expected"), [(0, [1, 3, 16]), (10, [1, 3, 16]), (15, [1, 3, 9]), (20, [1, 2, 2]), (99, [1, 2, 2])]
)
def test_linear_annealing_from_all_to_t(update, expected):
    schedule = TopTSchedule(top_t=2, anneal_start=10, anneal_updates=10)
    schedule.set_num_updates(update)
    assert schedule.current_top_t().of(N).tolist() == expected


def test_checkpoint_contains_the_state():
    trained = TopTSchedule(top_t=2, anneal_start=10, anneal_updates=10)
    trained.set_num_updates(15)
    loaded = TopTSchedule(top_t=2, anneal_start=10, anneal_updates=10)
    assert loaded.current_top_t().of(N).tolist() == [1, 3, 16]
    loaded.load_state_dict(trained.state_dict())
    assert loaded.current_top_t().of(N).tolist() == trained.current_top_t().of(N).tolist() == [1, 3, 9]


def waiting(**options):
    return TopTSchedule(top_t=2, anneal_start=3, anneal_threshold=0.95, **options)


def train(schedule, masses, first=0):
    """Returns the updates at which sentences are left out."""
    annealed = []
    for update, mass in enumerate(masses, first):
        schedule.set_num_updates(update)
        if not schedule.before_annealing():
            annealed.append(update)
        schedule.update_selected_mass(mass)
    return annealed


def test_annealing_waits_for_the_selected_mass():
    assert train(waiting(), [1.0] * 6) == [3, 4, 5]
    assert train(waiting(), [0.9] * 20) == []
    # 0.9 + 0.1 (1 − 0.9^k) reaches 0.95 with k = 7: seen in updates 4 to 10, annealed from 11 on.
    assert train(waiting(), [0.9] * 4 + [1.0] * 9) == [11, 12]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_resumed_training_begins_at_the_same_update(dtype):
    """A running mean rounded to float32 would miss the threshold."""
    masses = [0.95 + 1e-9] * 8
    begun, resumed = (waiting().to(dtype) for _ in range(2))
    train(begun, masses[:2])
    resumed.load_state_dict(begun.state_dict())
    assert train(resumed, masses[2:], first=2) == train(waiting(), masses) == [3, 4, 5, 6, 7]


def test_fine_tuning_restarts_the_schedule():
    schedule = waiting()
    train(schedule, [1.0] * 6)
    begun = waiting()
    begun.load_state_dict(schedule.state_dict())
    begun.set_num_updates(0)
    assert begun.before_annealing() and int(begun.start_update) == -1 and float(begun.selected_mass) == 0
    assert train(begun, [0.5] * 5) == []


@pytest.mark.parametrize(("dtype", "updates"), [(torch.float32, 10), (torch.bfloat16, 1000)], ids=str)
def test_t_of_a_checkpoint_in_every_type(dtype, updates):
    """200 − 190 · 0.7 in float32 is above 67."""
    model, loaded = (TopTSchedule(10, top_t_start=200, anneal_updates=updates).to(dtype) for _ in range(2))
    for update in range(0, updates, max(1, updates // 77)):
        model.set_num_updates(update)
        loaded.load_state_dict(model.state_dict())
        assert loaded.current_top_t().of(N * 20).tolist() == model.current_top_t().of(N * 20).tolist()


@pytest.mark.parametrize(
    ("update", "progress"),
    [(9, "0%"), (15, "50%"), (20, None)],
)
def test_warning_for_checkpoints_before_the_end_of_annealing(data_bin, caplog, update, progress):
    options = ["--context-top-t-anneal-start", "10", "--context-top-t-anneal-updates", "10", "--context-layers", "0,1"]
    cfg, _, model = toy.build(data_bin, "--context-attention", "conditional", "--context-top-t", "1", *options)
    model.set_num_updates(update)
    logging.disable(logging.NOTSET)
    with caplog.at_level(logging.WARNING):
        model.eval().prepare_for_inference_(cfg)
    logging.disable(logging.INFO)
    warnings = [record.getMessage() for record in caplog.records if "annealing" in record.getMessage()]
    assert len(warnings) == (progress is not None) and (progress is None or progress in warnings[0])
