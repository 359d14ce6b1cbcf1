"""Options that fairseq evaluates: plain values as they were, and nothing is executed by any road."""

import re
import sys
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
import torch

from docnmt_fairseq import compat  # noqa: F401  (gives fairseq our evaluation)
from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.expressions import NoPlainValue, evaluate
from tests.support import toy

PLAIN = [
    "(0.9, 0.98)", "1e-6", "-1", "None", "True", " [1, 2]", "'text'", "{'main': ('src', 'tgt')}", "[(512, 3)] * 20",
    "[(512, 10, 5)] + [(512, 3, 2)] * 4 + 2*[(512, 2, 2)]", "(128 * 4, 'a' + 'b')", "[]", "10000,20000",
]  # fmt: skip
MORE = [
    "open('x')", "x", "().__class__", "[1 for _ in 'ab']", "lambda: 1", "f'{1}'", "2 ** 9", "[0] * 10 ** 9",
    "[0] * 10001", "10001 * 'a'", "'a' + 1", "[1, 2", "", "[] * 0.5", "(" * 500 + ")" * 500, "x := 1", "a.b * 2",
]  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("expression", PLAIN)
def test_plain_values_are_what_they_were(expression):
    assert evaluate(expression) == eval(expression.strip())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("expression", MORE)
def test_more_than_a_value_is_refused(expression):
    with pytest.raises(NoPlainValue, match="where fairseq wants a plain value") as error:
        evaluate(expression)
    assert len(str(error.value)) < 300


def test_no_module_of_fairseq_evaluates_otherwise():
    root = Path(fairseq.__file__).parent
    files = [path.relative_to(root) for path in root.rglob("*.py")]
    evaluating = [
        "fairseq." + ".".join(file.with_suffix("").parts)
        for file in files
        if file.parts[0] != "examples" and re.search(r"(?<![\w.])eval\(", (root / file).read_text(encoding="utf-8"))
    ]
    assert "fairseq.utils" in evaluating and len(evaluating) > 10
    assert all(vars(sys.modules[name])["eval"] is evaluate for name in evaluating)


def executing(folder):
    """An expression that makes a file."""
    return f"__import__('pathlib').Path({str(folder / 'made')!r}).touch() or [5]"


def with_option(checkpoint, folder, **options):
    """A copy of a checkpoint with other options of its model."""
    state = torch.load(checkpoint, weights_only=True)
    if isinstance(state["cfg"]["model"], Namespace):
        vars(state["cfg"]["model"]).update(options)
    else:
        state["cfg"]["model"].update(options)
    torch.save(state, folder / "harmful.pt")
    return folder / "harmful.pt"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["adaptive_softmax_cutoff", "encoder_xformers_att_config"])
def test_a_checkpoint_of_fairseqs_transformer_executes_nothing(data_bin, tmp_path, name):
    task = dict(task="translation", arch="transformer")
    trained = toy.train(data_bin, tmp_path, "--max-update", "1", "--source-lang", "src", "--target-lang", "tgt", **task)
    harmful = with_option(trained, tmp_path, **{name: executing(tmp_path)})
    with pytest.raises(InputError, match=r"--path \S*harmful.pt: refused: an option is \"__import__"):
        load_ensemble(harmful, data=data_bin)
    with pytest.raises(InputError, match="could execute something"):
        toy.generate(data_bin, harmful, task="translation")
    assert not (tmp_path / "made").exists()


def test_a_checkpoint_of_ours_executes_nothing(data_bin, tmp_path):
    """The options that fairseq would evaluate are not looked at."""
    trained = toy.train(data_bin, tmp_path, "--max-update", "1")
    options = dict.fromkeys(["adaptive_softmax_cutoff", "encoder_xformers_att_config"], executing(tmp_path))
    harmful = with_option(trained, tmp_path, **options)
    assert toy.generate(data_bin, harmful).hypotheses == toy.generate(data_bin, trained).hypotheses
    assert not (tmp_path / "made").exists()
