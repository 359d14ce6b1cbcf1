"""Document-level neural machine translation for fairseq.

``fairseq-train --user-dir docnmt_fairseq`` imports this package; fairseq then imports every file of ``tasks/`` and
``models/`` itself, which registers them. A script that does not go through ``--user-dir`` calls :func:`register`.
Nothing heavy is imported here, so that ``docnmt --help`` answers at once.
"""

__version__ = "0.1.0"


def register() -> None:
    """Registers the tasks, models and architectures with fairseq, as ``--user-dir`` does."""
    import importlib

    for module in ("tasks", "models"):
        importlib.import_module(f"{__name__}.{module}")
