"""Registries and declared options refuse what breaks their contracts."""

from argparse import Namespace
from dataclasses import dataclass

import pytest

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism
from docnmt_fairseq.context.selected.han import HierarchicalAttention
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option, options_of, problems_of


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="context mechanism 'han' is registered already"):
        CONTEXT_MECHANISMS.register("han")(HierarchicalAttention)


@pytest.mark.parametrize("places", [(), ("replase",), ("block", "under")])
def test_a_mechanism_stands_where_layers_have_a_place(places):
    class Somewhere(ContextMechanism):
        placements = places

    with pytest.raises(ValueError, match=r"context mechanism 'somewhere': placements .*: must be some of block, heads"):
        CONTEXT_MECHANISMS.register("somewhere")(Somewhere)
    assert "somewhere" not in CONTEXT_MECHANISMS


def test_options_that_were_declared_too_late_are_named():
    with pytest.raises(InputError, match=r"--share: .* before docnmt_fairseq\.register\(\)"):
        options_of(Namespace(count=2), Shares)


@dataclass
class Shares:
    share: float = option(0.5, "a share", minimum=0, maximum=1)
    count: int = option(1, "a count", minimum=1)


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ((0.0, 1), []),
        ((1.0, 7), []),
        ((1.5, 1), ["--share 1.5: must be at most 1"]),
        ((-1.0, 0), ["--share -1: must not be negative", "--count 0: must be at least 1"]),
    ],
)
def test_numbers_out_of_range_are_named(values, problems):
    assert [text.replace("-1.0", "-1") for text in problems_of(Shares(*values), Shares)] == problems
