"""Stable top-k: of equal values the first ones are kept, on every device."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.layers import precision

values = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, float("inf"), float("-inf")]), min_size=1)


@pytest.mark.parametrize("sorted_up_to", [0, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@settings(max_examples=30)
@given(values=values, k=st.integers(1, 9))
def test_top_k_equals_stable_sort(sorted_up_to, dtype, values, k):
    x = torch.tensor([[values], [values[::-1]]], dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(precision, "SORTED", sorted_up_to)
        found = precision._top_k_asynchronous(x, k)
    expected = torch.sort(x, dim=-1, descending=True, stable=True)
    assert torch.equal(found[1], expected[1][..., :k]) and torch.equal(found[0], expected[0][..., :k])
    on_cpu = precision.stable_top_k(x, k)[1]  # the same set, equal values in any order
    assert torch.equal(found[1].sort().values, on_cpu.sort().values)
