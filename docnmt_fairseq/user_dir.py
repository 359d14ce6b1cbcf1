"""``--user-dir``: a package of one's own, which is imported first; what it registers is then known."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from docnmt_fairseq.errors import InputError


def import_user_dir(folder: str) -> None:
    """Imports a package, as fairseq's commands do; one that was imported before stays.

    What fails in the package's own code is raised as it is: whoever wrote it is to see where.

    Args:
        folder: of the package.

    Raises:
        InputError: there is no such folder, it is no package, or another module has its name.
    """
    path = Path(os.path.abspath(folder))
    if not path.is_dir():
        raise InputError(f"--user-dir {folder}: no such folder; give that of a package of yours")
    if not (path / "__init__.py").is_file():
        raise InputError(f"--user-dir {folder}: is no package, as it has no __init__.py; give the folder that has it")
    other = sys.modules.get(path.name)
    if "." in path.name or (other is not None and str(path) not in getattr(other, "__path__", ())):
        why = "Python takes what is before a dot for a package" if other is None else "another module is called so"
        raise InputError(f"--user-dir {folder}: cannot be imported as {path.name}: {why}; rename the folder")
    from fairseq.utils import import_user_module

    import_user_module(SimpleNamespace(user_dir=str(path)))
