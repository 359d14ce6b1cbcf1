"""Pure PyTorch: one mechanism a file, nothing of fairseq. Importing the folder registers every mechanism in it."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
