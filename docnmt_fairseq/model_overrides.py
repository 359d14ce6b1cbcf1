"""``--model-overrides``: options of a checkpoint that a command changes; what it cannot change so is refused or told.

fairseq puts whatever it is given over a checkpoint's configuration, and builds the model of that, in validation the
criterion, too. A name that nothing has is left out, options of the task are those of the command line all the same, and
nothing looks at values.
"""

import ast
import logging
import os
from contextlib import contextmanager
from textwrap import shorten
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple
from unittest import mock

from docnmt_fairseq.errors import InputError, first_line, refuse
from docnmt_fairseq.options import flag_of, plain, problems_of

FLAG = "--model-overrides"
READ = ("model", "criterion")  # parts of a checkpoint's configuration that commands build something of

logger = logging.getLogger(__name__)


def parse_overrides(expression: Optional[str]) -> Optional[Dict[str, Any]]:
    """The options by name that such an argument holds; None where it is no dictionary of some."""
    try:
        found = ast.literal_eval(expression or "{}")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else None


@contextmanager
def checked(filenames: Sequence[str], asked: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block, in which checkpoints are loaded, what is asked to be changed of their options is looked at.

    Args:
        filenames: of the checkpoints.
        asked: the command's overrides.

    Raises:
        InputError: no checkpoint has an option of that name, one of the task has no such value, or a model cannot be
            loaded with it.
    """
    from fairseq import checkpoint_utils

    overwrite = checkpoint_utils.overwrite_args_by_name
    lacking: List[Tuple[Set[str], Set[str]]] = []  # of each checkpoint: what it does not have, and what nothing reads

    def compared(cfg: Any, overrides: Dict[str, Any]) -> None:
        named = _by_name(asked)
        refuse([*_problems_of_parts(cfg, asked), *_problems_of_task(cfg, named)])
        parts = {name: _names(cfg[name]) for name in cfg if cfg[name] is not None}
        read = set(parts).union(*(parts.get(name, ()) for name in READ))
        lacking.append((set(named) - read.union(*parts.values()), set(named) - read))
        overwrite(cfg, overrides)

    try:
        with mock.patch.object(checkpoint_utils, "overwrite_args_by_name", compared):
            yield
    except Exception as error:  # whatever another configuration happens to cause
        if isinstance(error, InputError) or not asked:
            raise
        reason = shorten(str(error), 200) or type(error).__name__
        raise InputError(
            f"{FLAG} {dict(asked)}: {os.pathsep.join(filenames)} cannot be loaded with that: {reason}; leave out what "
            "parameters depend on, such as sizes and layers, and give values of the options' types"
        ) from error
    if len(lacking) == len(filenames):  # not one of before fairseq 0.10, which takes any name
        _tell(filenames, *(set.intersection(*several) for several in zip(*lacking)))


def _tell(filenames: Sequence[str], unknown: Set[str], unread: Set[str]) -> None:
    """Refuses what no checkpoint has, and warns of what changes nothing."""
    if unknown:
        raise InputError(
            f"{FLAG}: {os.pathsep.join(filenames)} has no option {', '.join(sorted(unknown))}; name those of the "
            "model, and give those of the task without it"
        )
    if unread:
        flags = " ".join(map(flag_of, sorted(unread)))
        logger.warning(f"{FLAG}: no model reads {', '.join(sorted(unread))}, so it changes nothing; give {flags}")


def _problems_of_parts(cfg: Any, asked: Mapping[str, Any]) -> Iterator[str]:
    """Parts of a checkpoint's configuration that are to be what is no options, which fairseq would leave out."""
    for name, value in asked.items():
        part = cfg.get(name)
        if isinstance(part, Mapping) and not isinstance(value, Mapping) and part.get("_name") != value:
            example = {name: {"_name": value if isinstance(value, str) else part.get("_name")}}
            yield f"{FLAG} {name}: {value!r} is no dictionary of its options by name, such as {example}"


def _problems_of_task(cfg: Any, asked: Mapping[str, Any]) -> Iterator[str]:
    """Why options of a checkpoint's task, with which its model may have been trained, cannot be these."""
    from fairseq.tasks import TASK_DATACLASS_REGISTRY
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    declared = TASK_DATACLASS_REGISTRY.get(getattr(cfg.task, "_name", None))
    if declared is None:
        return
    options = OmegaConf.structured(declared)
    for name, value in asked.items():
        if name not in options:
            continue
        try:
            options[name] = value
        except OmegaConfBaseException as error:
            yield f"{FLAG} {name}: {first_line(error)}"
            continue
        if plain(options[name]) != value:
            yield f"{FLAG} {name}: {value!r} is not of the option's type; give {plain(options[name])!r}"
        yield from (f"{FLAG}: {problem}" for problem in problems_of(options, declared, [name]))


def _by_name(asked: Mapping[str, Any]) -> Dict[str, Any]:
    """What is asked, option by option, also where it is for model or task: ``{'model': {'dropout': 0.1}}``.

    For another part, such as ``{'criterion': {'_name': ...}}``, it may be one of other options.
    """
    found: Dict[Any, Any] = {}
    for name, value in asked.items():
        of_part = name in ("model", "task") and isinstance(value, Mapping)
        found.update(value if of_part else {name: value})
    return {str(name): value for name, value in found.items()}


def _names(part: Any) -> Set[str]:
    """The options of a part of a configuration; those of models without declared options are a plain namespace."""
    return set(part if isinstance(part, Mapping) else getattr(part, "__dict__", ()))
