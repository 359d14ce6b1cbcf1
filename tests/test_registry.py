"""Registries and declared options refuse what breaks their contracts."""

import math
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass

import pytest

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism, NoOptions
from docnmt_fairseq.context.selected.han import HierarchicalAttention
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option, options_of, problems_of, take_old_names
from docnmt_fairseq.registry import Registry


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="context mechanism 'han' is registered already"):
        CONTEXT_MECHANISMS.register("han")(HierarchicalAttention)


def test_a_former_name_stands_for_that_of_today():
    kinds = Registry("kind")
    kind = kinds.register("short", old="long_one")(type("Short", (), {}))
    assert "long_one" in kinds and kinds["long_one"] is kinds["short"] is kind
    assert kinds.names() == ["short"] and kinds.current_name("long_one") == "short"
    with pytest.raises(ValueError, match="no kind 'longer'; there are: short"):
        kinds["longer"]


@pytest.mark.parametrize("places", [(), ("replase",), ("block", "under")])
def test_a_mechanism_stands_where_layers_have_a_place(places):
    class Somewhere(ContextMechanism):
        placements = places

    with pytest.raises(ValueError, match=r"context mechanism 'somewhere': placements .*: must be some of block, heads"):
        CONTEXT_MECHANISMS.register("somewhere")(Somewhere)
    assert "somewhere" not in CONTEXT_MECHANISMS


def test_a_mechanism_that_comes_after_the_models_is_refused_where_they_lack_its_options():
    import docnmt_fairseq.models.transformer.config  # noqa: F401

    class Late(ContextMechanism):
        @dataclass(frozen=True)
        class Options(NoOptions):
            late_by: int = option(1, "updates")

        placements = ("block",)

    with pytest.raises(ValueError, match=r"'late': the models were made without --late-by; import it first, before"):
        CONTEXT_MECHANISMS.register("late")(Late)
    assert "late" not in CONTEXT_MECHANISMS


def test_what_is_extended_leaves_the_models_for_later():
    """A package that imports contracts, or classes to derive from, may still register mechanisms."""
    parts = ["context", "multisource", "recurrent", "layers.feed_forward", "layers.sentence_encoders"]
    parts += ["corpus.readers", "translate.formats", "evaluation.metrics", "evaluation.register", "export.formats"]
    parts += ["pretrained.families", "pretrained.multilingual"]
    script = [f"import docnmt_fairseq.{part}" for part in parts]
    script += ["import sys", "sys.exit(any(name.startswith('docnmt_fairseq.models') for name in sys.modules))"]
    assert subprocess.run([sys.executable, "-c", "\n".join(script)]).returncode == 0


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
        ((math.nan, 1), ["--share nan: must not be negative", "--share nan: must be at most 1"]),
    ],
)
def test_numbers_out_of_range_are_named(values, problems):
    assert [text.replace("-1.0", "-1") for text in problems_of(Shares(*values), Shares)] == problems


@dataclass
class Renamed:
    share: float = option(0.5, "a share", old="portion")
    shared: bool = option(False, "whether it is", old="in_common")


def test_what_is_given_under_a_former_name_is_moved_once():
    cfg = Namespace(share=0.5, portion=0.2, shared=True, in_common=False)
    take_old_names(cfg, Renamed)
    assert vars(cfg) == {"share": 0.2, "portion": None, "shared": True, "in_common": False}
    cfg.share, cfg.shared, cfg.in_common = 0.3, False, True
    take_old_names(cfg, Renamed)
    assert vars(cfg) == {"share": 0.3, "portion": None, "shared": True, "in_common": False}
