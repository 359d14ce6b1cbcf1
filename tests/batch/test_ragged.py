"""Grouping of rows of similar length."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.batch.ragged import attention_groups, cheapest_groups, computed_on

lengths = st.lists(st.integers(1, 30), min_size=1, max_size=9).map(np.array)


def cost(groups, row_lengths, area, price):
    return sum(len(group) * area[row_lengths[group].max()] + price for group in groups)


@given(lengths, st.sampled_from([0.5, 10, 100, 1000]), st.sampled_from([1, 2]))
def test_groups_have_the_lowest_cost(row_lengths, price, power):
    area = np.arange(31.0) ** power
    groups = cheapest_groups(row_lengths, area, price)
    assert sorted(np.concatenate(groups)) == list(range(len(row_lengths)))
    order, places = np.argsort(row_lengths), range(1, len(row_lengths))
    cuts = itertools.chain.from_iterable(itertools.combinations(places, n) for n in range(len(row_lengths)))
    least = min(cost(np.split(order, cut), row_lengths, area, price) for cut in map(list, cuts))
    assert cost(groups, row_lengths, area, price) == pytest.approx(least)


@given(lengths, st.data())
def test_every_row_is_in_one_group(queries, data):
    keys = data.draw(st.lists(st.integers(1, 30), min_size=len(queries), max_size=len(queries)).map(np.array))
    groups = attention_groups(queries, keys)
    assert sorted(np.concatenate(groups)) == list(range(len(queries)))


@pytest.mark.parametrize(("tokens", "real", "most"), [(4_000, 0.9, 32), (100_000, 0.75, 48)])
def test_realistic_lengths_need_few_groups_and_little_padding(tokens, real, most, production_price):
    rng = np.random.default_rng(1)
    source = np.clip(rng.lognormal(3.2, 0.6, tokens // 28), 1, 200).astype(int)
    target = np.maximum(1, (source * rng.lognormal(0.05, 0.2, len(source))).astype(int))
    for queries, keys in ((source, None), (target, source)):
        groups = attention_groups(queries, keys)
        keys = queries if keys is None else keys
        computed = sum(len(group) * queries[group].max() * keys[group].max() for group in groups)
        assert (queries * keys).sum() >= real * computed
        assert len(groups) <= most


def test_fewer_groups_on_a_gpu(production_price):
    lengths = np.clip(np.random.default_rng(1).lognormal(3.1, 0.5, 600), 2, 90).astype(int)
    for_cpu = len(attention_groups(lengths, 3 * lengths))
    with computed_on(torch.device("cuda")), computed_on(torch.device("cpu")):
        assert len(attention_groups(lengths, 3 * lengths)) <= 6 < for_cpu
    assert len(attention_groups(lengths, 3 * lengths)) == for_cpu
