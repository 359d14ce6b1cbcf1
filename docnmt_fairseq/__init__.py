"""Document-level neural machine translation for fairseq.

``fairseq-train --user-dir docnmt_fairseq`` calls :func:`register`; a script that imports the package calls it itself.
This file imports nothing heavy, so that ``docnmt --help`` responds at once.
"""

__version__ = "0.1.0"


PLUGINS = "docnmt_fairseq.plugins"  # group of entry points


def load_plugins() -> None:
    """Imports the modules of installed packages that extend this one, so that what they register is available.

    Raises:
        InputError: a module cannot be imported.
    """
    from importlib.metadata import entry_points

    from docnmt_fairseq.errors import InputError

    for plugin in entry_points(group=PLUGINS):
        try:
            plugin.load()
        except (ImportError, AttributeError) as error:
            raise InputError(f"plugin {plugin.name} = {plugin.value}: {error}; repair or uninstall it") from error


def register() -> None:
    """Patches fairseq and registers tasks, models, architectures, criterions and optimizers with it."""
    import importlib
    import pkgutil

    from docnmt_fairseq import fairseq_patches

    load_plugins()
    fairseq_patches.apply()
    for folder in ("tasks", "models", "criterions", "optim"):
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
