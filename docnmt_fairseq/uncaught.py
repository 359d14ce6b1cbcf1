"""fairseq's commands end with one line where input or an option is wrong, as ``docnmt`` does, not with a traceback.

So do errors of fairseq's own that name an option by its flag, options that another one needs, and text of another
encoding.
"""

import re
import sys
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, Optional, Type

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

COMMANDS = "fairseq_cli."  # the modules of fairseq's commands
FLAG = re.compile(r"(?<!\S)--[a-z][a-z-]+")


def patch_fairseq() -> None:
    """Lets fairseq's commands end so in this process; other programs show where they fail, as before."""
    show = sys.excepthook

    def told(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        if not _tell(error, traceback):
            show(kind, error, traceback)

    sys.excepthook = told
    _let_hydra_end_so()


def _let_hydra_end_so() -> None:
    """hydra takes what ``fairseq-hydra-train`` raises, to show it with a traceback when its value is asked for."""
    from hydra.core.utils import JobReturn

    value = getattr(JobReturn, "return_value", None)
    if not isinstance(value, property) or value.fget is None:  # of hydra 1.0, which lets errors pass
        return
    get = value.fget

    def told(job: JobReturn) -> Any:
        found = job._return_value
        if isinstance(found, BaseException) and _tell(found, found.__traceback__):
            sys.exit(1)
        return get(job)

    JobReturn.return_value = property(told, value.fset)  # type: ignore[assignment, method-assign]


def _tell(error: BaseException, traceback: Optional[TracebackType]) -> bool:
    """Prints the line for an error; whether there is one."""
    text = _told(error)
    if text is None or not _in_a_command(traceback):
        return False
    print(f"{Path(sys.argv[0]).name}: error: {text}", file=sys.stderr)
    return True


def _told(error: BaseException) -> Optional[str]:
    """What is said of an error about input or an option; None: it is about something else."""
    from omegaconf import MissingMandatoryValue

    if isinstance(error, InputError) or (isinstance(error, (AssertionError, ValueError)) and FLAG.search(str(error))):
        return str(error)
    if isinstance(error, UnicodeDecodeError):  # of fairseq-interactive
        wrong = error.object[error.start : error.start + 1].hex()
        return f"the input is no {error.encoding.upper()} (byte 0x{wrong}); convert it, e.g. with iconv"
    if isinstance(error, MissingMandatoryValue) and error.full_key:
        return f"{flag_of(error.full_key.rpartition('.')[2])}: not given"
    return None


def _in_a_command(traceback: Optional[TracebackType]) -> bool:
    specs = (frame.f_globals.get("__spec__") for frame, _ in walk_tb(traceback))
    return any(spec is not None and spec.name.startswith(COMMANDS) for spec in specs)
