"""One-line errors of fairseq's commands, and the hub interface."""

import sys
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, Callable, Optional, Type

from torch import Tensor

from docnmt_fairseq.errors import InputError


def print_one_line(excepthook: Callable[..., Any]) -> Callable[..., None]:
    """Prints an :class:`InputError` of a fairseq command without a traceback."""

    def wrapper(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        if not _print(error):
            excepthook(kind, error, traceback)

    return wrapper


def exit_after_one_line(return_value: property) -> property:
    """Does the same for ``fairseq-hydra-train``: hydra stores the error of a job and raises it on access."""

    def value(job: Any) -> Any:
        if isinstance(job._return_value, InputError) and _print(job._return_value):
            sys.exit(1)
        return return_value.fget(job)  # type: ignore[misc]

    return property(value, return_value.fset)


def _print(error: BaseException) -> bool:
    """Prints an InputError that a fairseq command raised; returns whether it was one."""
    specs = (frame.f_globals.get("__spec__") for frame, _ in walk_tb(error.__traceback__))
    in_command = any(spec is not None and spec.name.startswith("fairseq_cli.") for spec in specs)
    if not in_command or not isinstance(error, InputError):
        return False
    print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
    return True


def encode_by_task(encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Encodes lines as ``fairseq-interactive`` does, by the task."""

    def wrapper(self: Any, sentence: str) -> Tensor:
        (tokens,), _ = self.task.get_interactive_tokens_and_lengths(
            [sentence], lambda line: self.apply_bpe(self.tokenize(line))
        )
        return tokens

    return wrapper
