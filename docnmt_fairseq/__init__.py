"""Document-level neural machine translation for fairseq.

``fairseq-train --user-dir docnmt_fairseq`` imports this package, then every file of ``tasks/`` and ``models/``, which
register themselves. A script that imports the package calls :func:`register` instead. This file imports nothing heavy,
so that ``docnmt --help`` responds at once.
"""

__version__ = "0.1.0"


def register() -> None:
    """Registers tasks, models and architectures with fairseq, as ``--user-dir`` does."""
    import importlib
    import pkgutil

    for folder in ("tasks", "models"):
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
