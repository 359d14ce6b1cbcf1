"""Checkpoints of fairseq's models and of ours, loaded safely; one clear error where that cannot be."""

from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from torch import nn

import docnmt_fairseq
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.errors import InputError


def read_checkpoint(path: PathLike, overrides: Optional[Mapping[str, object]] = None) -> Dict[str, object]:
    """Returns what a checkpoint holds: configuration, parameters, ….

    Args:
        path: the checkpoint.
        overrides: of its configuration.

    Raises:
        InputError: no such file, or one that is no checkpoint or cannot be loaded safely.
    """
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    docnmt_fairseq.register()
    if not Path(path).is_file():
        raise InputError(f"--path {path}: no such file")
    try:
        state = load_checkpoint_to_cpu(str(path), overrides)
        state["cfg"].task  # noqa: B018  (what every checkpoint of a model has)
    except Exception as error:  # whatever a file that is none happens to cause
        reason = f"not a checkpoint, or one that cannot be loaded safely ({_short(error)})"
        raise InputError(f"--path {path}: {reason}") from None
    return state


def load_ensemble(
    paths: Sequence[PathLike],
    data_bin: Path,
    overrides: Optional[Mapping[str, object]] = None,
    task: Optional[object] = None,
    first: Optional[Dict[str, object]] = None,
) -> Tuple[List[nn.Module], object]:
    """Returns the models of some checkpoints, on the CPU, and their task.

    Args:
        paths: the checkpoints.
        data_bin: with the dictionaries.
        overrides: of the configuration, instead of what the checkpoints say.
        task: the task that they are to serve; None: the one they were trained for.
        first: what the first checkpoint holds, if it was read already.

    Raises:
        InputError: a file that is no checkpoint, or models that do not fit the data.
    """
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    overrides = {"data": str(data_bin), **(overrides or {})}
    # fairseq overrides nothing in a checkpoint that it is given.
    first = read_checkpoint(paths[0], overrides) if first is None else first
    if len(paths) > 1:
        for path in paths[1:]:
            read_checkpoint(path)  # fairseq's own errors do not name the file
        first = None
    names = " ".join(map(str, paths))
    try:
        models, _, task = load_model_ensemble_and_task(list(map(str, paths)), overrides, task, state=first)
    except InputError:
        raise
    except RuntimeError as error:  # PyTorch's, for parameters of another shape
        raise InputError(
            f"--path {names}: does not fit the dictionaries of {data_bin}; give the --data of its training "
            f"({_short(error)})"
        ) from error
    except (OSError, KeyError, AssertionError) as error:
        raise InputError(f"--path {names}: cannot be loaded with --data {data_bin}: {_short(error)}") from error
    return models, task


def _short(error: Exception) -> str:
    """Returns the first line of an error, without PyTorch's advice to load what may execute anything."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    refused = "Weights only load failed"
    return refused if line.startswith(refused) else line
