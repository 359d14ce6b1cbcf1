"""Document-level neural machine translation for fairseq.

``fairseq-train --user-dir docnmt_fairseq`` imports this package; fairseq then imports every file of ``tasks/`` and
``models/`` itself, which registers them. A script that imports this package by itself calls :func:`register`: fairseq
leaves alone what is imported already.
Nothing heavy is imported here, so that ``docnmt --help`` answers at once.
"""

from docnmt_fairseq import aliases

aliases.install()

__version__ = "0.1.0"


def register() -> None:
    """Registers the tasks, models and architectures with fairseq, as ``--user-dir`` does."""
    import importlib
    import pkgutil

    for folder in ("tasks", "models"):
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
