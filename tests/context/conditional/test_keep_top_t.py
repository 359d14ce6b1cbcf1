"""KeepTopT without a look at the device: what a CPU keeps, the first of equals first."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional import selection
from docnmt_fairseq.context.conditional.selection import _keep_without_looking, keep_top_t

scores = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, float("inf"), float("-inf")]), min_size=1)


@pytest.mark.parametrize("sorted_up_to", [0, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@given(values=scores, t=st.integers(1, 9))
def test_the_same_is_kept_without_looking(sorted_up_to, dtype, values, t):
    relevance = torch.tensor([[values], [values[::-1]]], dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "SORTED", sorted_up_to)
        found = _keep_without_looking(relevance, min(t, len(values)))
    expected = torch.sort(relevance, dim=-1, descending=True, stable=True)
    assert torch.equal(found[1], expected[1][..., :t]) and torch.equal(found[0], expected[0][..., :t])
    on_cpu = keep_top_t(relevance, t)[1][..., :t]  # in any order of equals
    assert torch.equal(found[1].sort().values, on_cpu.sort().values)
