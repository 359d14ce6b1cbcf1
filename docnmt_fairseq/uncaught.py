"""fairseq's commands end with one line where input or an option is wrong, as ``docnmt`` does, not with a traceback."""

import sys
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Optional, Type

from docnmt_fairseq.errors import InputError

COMMANDS = "fairseq_cli."  # the modules of fairseq's commands


def patch_fairseq() -> None:
    """Lets fairseq's commands end so in this process; other programs show where they fail, as before."""
    show = sys.excepthook

    def told(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        if isinstance(error, InputError) and _in_a_command(traceback):
            print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        else:
            show(kind, error, traceback)

    sys.excepthook = told


def _in_a_command(traceback: Optional[TracebackType]) -> bool:
    specs = (frame.f_globals.get("__spec__") for frame, _ in walk_tb(traceback))
    return any(spec is not None and spec.name.startswith(COMMANDS) for spec in specs)
