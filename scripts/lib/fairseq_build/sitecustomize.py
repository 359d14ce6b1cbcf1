"""Limits a build of fairseq to the extensions that translation uses, when this folder is on PYTHONPATH.

The others (balanced assignment, Levenshtein edits, monotonic alignment, CUDA) include all of PyTorch's headers and take
nine tenths of the time. fairseq imports them only in the models that need them.
"""

from typing import Any

import setuptools

USED = ("fairseq.libbleu", "fairseq.data.data_utils_fast", "fairseq.data.token_block_utils_fast")
setup = setuptools.setup


def setup_used(**options: Any) -> Any:
    """Calls setup() with the extensions in USED only."""
    options["ext_modules"] = [module for module in options.get("ext_modules") or [] if module.name in USED]
    return setup(**options)


setuptools.setup = setup_used
