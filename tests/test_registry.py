"""Registries and declared options."""

import math
import subprocess
import sys
from dataclasses import dataclass

import pytest

from docnmt_fairseq.options import option, problems_of


def test_importing_a_contract_does_not_import_the_models():
    """Packages may import base classes first and register mechanisms before the models are defined."""
    parts = ["context", "multisource", "recurrent", "layers.base", "layers.sentence_encoders"]
    parts += ["corpus.readers", "translate.formats", "evaluation.metrics", "evaluation.register_rules", "hub.formats"]
    parts += ["hub.families"]
    script = [f"import docnmt_fairseq.{part}" for part in parts]
    script += ["import sys", "sys.exit(any(name.startswith('docnmt_fairseq.models') for name in sys.modules))"]
    assert subprocess.run([sys.executable, "-c", "\n".join(script)]).returncode == 0


def test_the_package_imports_nothing_heavy():
    script = "import sys, docnmt_fairseq; sys.exit(bool({'torch', 'fairseq', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


@dataclass
class Shares:
    share: float = option(0.5, "a share", minimum=0, maximum=1)
    count: int = option(1, "a count", minimum=1)


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ((0.0, 1), []),
        ((1.0, 7), []),
        ((1.5, 1), ["--share"]),
        ((-1.0, 0), ["--share", "--count"]),
        ((math.nan, 1), ["--share", "--share"]),
    ],
)
def test_numbers_out_of_range_are_named(values, flags):
    assert [text.split()[0] for text in problems_of(Shares(*values), Shares)] == flags
