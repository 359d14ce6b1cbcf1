"""Checkpoints are written atomically and loaded safely."""

import errno
import os
import re
import shutil
import sys
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.fairseq_patches import checkpoints
from docnmt_fairseq.fairseq_patches.checkpoints import evaluate
from tests.support import toy

SAVED = {"model": {"weight": torch.arange(5000.0)}}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(checkpoints, "WRITE_PAUSE", 0)


def fail(monkeypatch, attempts):
    """Makes the first attempts of torch.save write something and fail as on a full disk."""
    real, left = torch.save, [attempts]

    def save(checkpoint, path):
        if not left[0]:
            real(checkpoint, path)
            return
        left[0] -= 1
        Path(path).write_bytes(b"PK\3\4 something")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(torch, "save", save)


def test_a_failed_write_is_retried(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint_last.pt"
    fail(monkeypatch, 1)
    checkpoint_utils.torch_persistent_save(SAVED, str(path))
    assert torch.equal(torch.load(path)["model"]["weight"], SAVED["model"]["weight"])
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_the_previous_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint_last.pt"
    checkpoint_utils.torch_persistent_save(SAVED, str(path))
    before = path.read_bytes()
    fail(monkeypatch, 9)
    with pytest.raises(InputError, match="No space left"):
        checkpoint_utils.torch_persistent_save({}, str(path))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_killed_copy_keeps_the_previous_checkpoint(tmp_path, monkeypatch):
    best, last = tmp_path / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt"
    best.write_bytes(b"new" * 1000)
    last.write_bytes(b"old")

    class Killed(BaseException):
        pass

    def copy_part(source, target):
        Path(target).write_bytes(Path(source).read_bytes()[:5])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", copy_part)
        with pytest.raises(Killed):
            PathManager.copy(str(best), str(last), overwrite=True)
    assert last.read_bytes() == b"old"
    assert PathManager.copy(str(best), str(last), overwrite=True)
    assert last.read_bytes() == best.read_bytes()


LITERALS = [
    "(0.9, 0.98)", "1e-6", "-1", "None", "{'main': ('src', 'tgt')}", "10000,20000",
    "[(512, 10, 5)] + [(512, 3, 2)] * 4 + 2*[(512, 2, 2)]", "(128 * 4, 'a' + 'b')",
]  # fmt: skip
OTHERS = [
    "open('x')", "x", "().__class__", "[1 for _ in 'ab']", "2 ** 9", "'a' + 1", "[1, 2", "",
]  # fmt: skip


@pytest.mark.parametrize("expression", LITERALS)
def test_literals_evaluate_as_in_python(expression):
    assert evaluate(expression) == eval(expression.strip())


@pytest.mark.parametrize("expression", OTHERS, ids=lambda text: text[:20])
def test_other_expressions_are_refused(expression):
    with pytest.raises(InputError, match="literal"):
        evaluate(expression)


def test_eval_is_replaced_in_all_modules_of_fairseq():
    root = Path(fairseq.__file__).parent
    files = [path.relative_to(root) for path in root.rglob("*.py")]
    evaluating = [
        "fairseq." + ".".join(file.with_suffix("").parts)
        for file in files
        if file.parts[0] != "examples" and re.search(r"(?<![\w.])eval\(", (root / file).read_text(encoding="utf-8"))
    ]
    assert "fairseq.utils" in evaluating and len(evaluating) > 10
    assert all(vars(sys.modules[name])["eval"] is evaluate for name in evaluating)


@pytest.fixture(scope="module")
def stock(data_bin, tmp_path_factory):
    """Checkpoint of fairseq's Transformer."""
    options = ["--max-update", "1", "--source-lang", "src", "--target-lang", "tgt"]
    return toy.train(data_bin, tmp_path_factory.mktemp("stock"), *options, task="translation", arch="transformer")


def test_expressions_in_checkpoints_are_not_executed(data_bin, stock, tmp_path):
    state = torch.load(stock)
    model = state["cfg"]["model"]
    options = vars(model) if isinstance(model, Namespace) else model
    options["adaptive_softmax_cutoff"] = f"__import__('pathlib').Path({str(tmp_path / 'made')!r}).touch() or [5]"
    torch.save(state, tmp_path / "harmful.pt")
    with pytest.raises(InputError):
        load_ensemble(tmp_path / "harmful.pt", data=data_bin)
    with pytest.raises(InputError):
        toy.generate(data_bin, tmp_path / "harmful.pt", task="translation")
    assert not (tmp_path / "made").exists()


def test_executable_objects_in_checkpoints_are_refused(data_bin, stock, tmp_path):
    class Malicious:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'made'}",)

    torch.save({**torch.load(stock), "extra": Malicious()}, tmp_path / "bad.pt")
    with pytest.raises(Exception, match="Weights only load failed"):
        toy.generate(data_bin, tmp_path / "bad.pt", task="translation")
    with pytest.raises(InputError):
        load_ensemble(tmp_path / "bad.pt", data=data_bin)
    assert not (tmp_path / "made").exists()
