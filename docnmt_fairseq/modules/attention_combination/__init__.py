"""How a decoder attends to several sources: scores of one source, and ways to combine them, one a file.

Source: ``[L]`` J. Libovický and J. Helcl, Attention Strategies for Multi-Source Sequence-to-Sequence Learning,
ACL 2017. Importing the folder registers what is in it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
