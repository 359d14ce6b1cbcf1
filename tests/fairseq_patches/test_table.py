"""The table of patches: limits on their number and size, and when they are applied."""

import inspect
import subprocess
import sys

import pytest

from docnmt_fairseq.fairseq_patches import PATCHES

REPLACEMENTS = [
    function
    for patch in PATCHES
    for function in [*patch.replacements.values(), *([patch.setup] if patch.setup else [])]
]


def test_patches_are_few():
    assert len(PATCHES) <= 13
    assert all(patch.reason.endswith(".") and patch.removable for patch in PATCHES)


@pytest.mark.parametrize("function", REPLACEMENTS, ids=lambda function: function.__name__)
def test_patches_are_short(function):
    assert len(inspect.getsource(function).splitlines()) <= 40


IMPORTED = "import docnmt_fairseq.tasks.document_translation"
USER_DIR = "import types, fairseq.utils as u; u.import_user_module(types.SimpleNamespace(user_dir='docnmt_fairseq'))"
PATCHED = "import fairseq.trainer as t; print(t.Trainer.train_step.__code__.co_filename)"


@pytest.mark.parametrize(("script", "patched"), [(IMPORTED, False), (USER_DIR, True)])
def test_only_register_and_user_dir_apply_patches(script, patched):
    found = subprocess.run([sys.executable, "-c", f"{script}; {PATCHED}"], capture_output=True, text=True, check=True)
    assert ("fairseq_patches" in found.stdout) is patched
