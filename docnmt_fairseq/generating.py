"""What fairseq's commands that load a model by ``--path`` are asked before they begin: what they fail at is refused."""

import ast
from typing import Any, Iterator, List, Mapping, Optional

from docnmt_fairseq.errors import refuse


def patch_fairseq() -> None:
    """Lets fairseq's commands ask so in this process, once they have read their options."""
    from fairseq import options

    parse = options.parse_args_and_arch

    def checked(parser: Any, input_args: Optional[List[str]] = None, *args: Any, **kwargs: Any) -> Any:
        parsed = parse(parser, input_args, *args, **kwargs)
        if input_args is None and not isinstance(parsed, tuple):  # a command; programs may load in other ways
            refuse(problems_of(vars(parsed)))
        return parsed

    options.parse_args_and_arch = checked


def problems_of(given: Mapping[str, Any]) -> Iterator[str]:
    """What such a command would fail at with a traceback.

    Args:
        given: its options by name; there is nothing to say of those that a command does not have.
    """
    if "path" in given:
        yield from _problems_of_path(given)
    if not _is_dictionary(given.get("model_overrides") or "{}"):
        example = "\"{'dropout': 0.1}\""
        yield f"--model-overrides {given['model_overrides']}: is no dictionary of options by name, such as {example}"
    for name in ("beam", "nbest"):
        if given.get(name) is not None and given[name] < 1:
            yield f"--{name} {given[name]}: must be at least 1"


def _is_dictionary(expression: str) -> bool:
    try:
        return isinstance(ast.literal_eval(expression), dict)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _problems_of_path(given: Mapping[str, Any]) -> Iterator[str]:
    """No checkpoint, or one that is not there; those in parts have names that fairseq makes of the path."""
    from fairseq.file_io import PathManager
    from fairseq.utils import split_paths

    if not given["path"]:
        yield "--path: not given; name the checkpoint"
    elif not given.get("checkpoint_suffix") and given.get("checkpoint_shard_count", 1) == 1:
        for path in split_paths(given["path"]):
            if not PathManager.exists(path):
                yield f"--path {path}: no such file; name the checkpoint"
