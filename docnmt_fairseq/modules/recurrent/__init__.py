"""Recurrent cells, over whole sequences and step by step, and what is built from them, one idea a file.

Importing the folder registers the cells in it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
