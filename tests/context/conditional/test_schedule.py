import numpy as np
import pytest

from docnmt_fairseq.context.conditional.schedule import KeepSchedule

N = np.array([1, 3, 16])


@pytest.mark.parametrize(
    ("update", "expected"), [(0, [1, 3, 16]), (10, [1, 3, 16]), (15, [1, 3, 9]), (20, [1, 2, 2]), (99, [1, 2, 2])]
)
def test_narrows_linearly_from_all_to_t(update, expected):
    schedule = KeepSchedule(top_t=2, narrow_from=10, narrow_updates=10)
    schedule.set_num_updates(update)
    assert schedule.kept().of(N).tolist() == expected


def test_starts_at_a_number_if_given():
    schedule = KeepSchedule(top_t=2, top_t_start=6, narrow_from=10, narrow_updates=4)
    schedule.set_num_updates(0)
    assert schedule.kept().of(N).tolist() == [1, 3, 6]
    schedule.set_num_updates(12)
    assert schedule.kept().of(N).tolist() == [1, 3, 4]


def test_without_options_t_holds_from_the_start():
    assert KeepSchedule(top_t=4).kept().of(N).tolist() == [1, 3, 4]
    assert KeepSchedule(top_t=0).kept().of(N).tolist() == [1, 3, 16]


def test_the_state_travels_with_the_checkpoint():
    trained = KeepSchedule(top_t=2, narrow_from=10, narrow_updates=10)
    trained.set_num_updates(15)
    loaded = KeepSchedule(top_t=2, narrow_from=10, narrow_updates=10)
    assert loaded.kept().of(N).tolist() == [1, 3, 16]
    loaded.load_state_dict(trained.state_dict())
    assert loaded.kept().of(N).tolist() == trained.kept().of(N).tolist() == [1, 3, 9]
