"""Where trainings go on in their data."""

import re

import pytest
import torch
from fairseq.data import iterators
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq import compat, resuming
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.resuming import ResumableBatchIterator
from tests.support import toy

assert compat  # which lets fairseq use what is tested here


class Numbers(torch.utils.data.Dataset):
    def __getitem__(self, number):
        return number

    def __len__(self):
        return 100


def processes(number, batches, state=None, **options):
    """The iterators of some processes, which go on where others were."""
    own = [
        iterators.EpochBatchIterator(
            Numbers(), list, [[one] for one in range(batches)], num_shards=number, shard_id=shard, **options
        )
        for shard in range(number)
    ]
    for one in own:
        if state is not None:
            one.load_state_dict(state)
    return own


def train(own, steps):
    """All numbers that processes see in steps of an epoch, step by step; fewer if it ends before."""
    epoch = [one.next_epoch_itr() for one in own]
    seen = []
    while steps and epoch[0].has_next():
        seen.append(sorted(number for one in epoch for number in next(one)))
        steps -= 1
    return seen


def flat(seen):
    return [number for step in seen for number in step]


COUNTS = st.integers(1, 5)


@given(
    batches=st.integers(1, 23),
    runs=st.lists(st.tuples(COUNTS, st.integers(0, 7)), min_size=1, max_size=4),
    grouped=st.booleans(),
)
def test_every_batch_is_seen_once_however_processes_change(batches, runs, grouped):
    seen, state = [], None
    for number, steps in [*runs, (2, 99)]:
        own = processes(number, batches, state, grouped_shuffling=grouped)
        seen += flat(train(own, steps))
        state = own[0].state_dict()
        assert all(one.state_dict() == state for one in own)
        if state["epoch"] > 1:
            break
    assert len(seen) == len(set(seen))
    if not grouped:  # which leaves out what makes no whole group
        assert sorted(seen) == list(range(batches))
    assert state["epoch"] == 2 and state["iterations_in_epoch"] == 0
    later = processes(3, batches, state)
    assert later[0].next_epoch_idx == 2 and sorted(flat(train(later, 99))) == list(range(batches))


def test_the_same_processes_go_on_as_fairseq_lets_them():
    (whole,) = (train(processes(3, 20), 99),)
    first = processes(3, 20)
    before = train(first, 4)
    state = first[0].state_dict()
    assert before + train(processes(3, 20, state), 99) == whole
    old = {
        name: value for name, value in state.items() if name in ("version", "epoch", "iterations_in_epoch", "shuffle")
    }
    assert before + train(processes(3, 20, old), 99) == whole, "a checkpoint of fairseq's"


def test_the_order_is_that_of_one_process():
    one = flat(train(processes(1, 20), 99))
    four = processes(4, 20)
    begun = train(four, 2)
    rest = train(processes(2, 20, four[0].state_dict()), 99)
    assert [set(step) for step in begun] == [set(one[:4]), set(one[4:8])]
    assert [set(step) for step in rest] == [set(one[place : place + 2]) for place in range(8, 20, 2)]


@pytest.mark.parametrize(("before", "steps", "after"), [(1, 2, 2), (2, 3, 3), (4, 2, 2), (4, 3, 6)])
def test_whole_groups_go_on_in_the_order_of_those_who_began(before, steps, after):
    """Where what was had is whole steps of the present processes, too, their own groups would be others."""
    begun = processes(before, 24, grouped_shuffling=True)
    seen = flat(train(begun, steps))
    rest = flat(train(processes(after, 24, begun[0].state_dict(), grouped_shuffling=True), 99))
    assert sorted(seen + rest) == list(range(24))


def test_an_epoch_of_other_batches_is_told(data_bin, tmp_path, caplog):
    """Where it is shorter than what was had there is no place to go on from; else what is left is something else."""
    options = ["--batch-size", "1", "--lr", "0.001"]
    toy.train(data_bin, tmp_path, *options, "--max-update", "10")
    with pytest.raises(
        InputError, match=r"epoch 1, of which it has had 10 batches; here that has 9 in all; .*--reset-da"
    ):
        toy.train(data_bin, tmp_path, "--batch-size", "2", "--max-update", "12")
    toy.train(data_bin, tmp_path, *options, "--max-update", "11")
    assert "in all" not in caplog.text
    toy.train(data_bin, tmp_path, *options, "--max-update", "12", "--max-document-sentences", "1")
    assert re.search("has had 11 batches of 18; here that has [0-9]+ in all: what is left of it is other", caplog.text)
    toy.train(data_bin, tmp_path, "--batch-size", "2", "--max-update", "14", "--reset-dataloader")


def test_fairseq_uses_it():
    assert iterators.EpochBatchIterator is ResumableBatchIterator


def updates_of(checkpoint):
    return torch.load(checkpoint)["optimizer_history"][-1]["num_updates"]


def test_a_training_that_had_all_its_updates_is_not_trained_further(data_bin, tmp_path, monkeypatch):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "2")
    trained = checkpoint.read_bytes()
    said = []
    monkeypatch.setattr(resuming.logger, "info", said.append)
    toy.train(data_bin, tmp_path, "--max-update", "2")
    assert checkpoint.read_bytes() == trained
    assert said == ["nothing to do: 2 updates were trained, --max-update is 2"]
    toy.train(data_bin, tmp_path, "--max-update", "3")
    assert updates_of(checkpoint) == 3
    toy.train(data_bin, tmp_path, "--max-update", "2", "--reset-optimizer")
    assert updates_of(checkpoint) == 2
