"""What fairseq's commands are asked once they have read their options: what those that load a model by ``--path`` would
fail at with a traceback, late or without its reason, is refused.
"""

import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from docnmt_fairseq import model_overrides
from docnmt_fairseq.errors import InputError, first_line, misfit, refuse
from docnmt_fairseq.options import flag_of

LEAST = {
    "beam": 1, "nbest": 1, "num_workers": 0, "max_tokens": 1, "batch_size": 1, "prefix_size": 0, "log_interval": 1,
    "save_interval": 1, "validate_interval": 1,
}  # fmt: skip
MISFIT = "loading state_dict"  # PyTorch's words
FILES = ("input", "lm_path", "bpe_codes", "sentencepiece_model")  # options that name one
NOT_INTERACTIVE = ("lm_path", "prefix_size", "score_reference", "results_path")  # which has them and does not read them
LARGEST = 2**63 - 1  # number that arrays and tensors hold
SEEDS = 2**32  # of NumPy


def patch_fairseq() -> None:
    """Lets fairseq's commands ask so in this process, once they have read their options."""
    from fairseq import checkpoint_utils, options

    parse, load = options.parse_args_and_arch, checkpoint_utils.load_model_ensemble_and_task
    overrides: Dict[str, Any] = {}  # --model-overrides of the command
    language_models: List[str] = []  # --lm-path of the command

    def checked(parser: Any, input_args: Optional[List[str]] = None, *args: Any, **kwargs: Any) -> Any:
        if input_args is None:
            refuse(_problems_of_task(parser))
        parsed = parse(parser, input_args, *args, **kwargs)
        if input_args is None and not isinstance(parsed, tuple):  # a command; programs may load in other ways
            refuse(problems_of(vars(parsed)))
            overrides.clear()
            overrides.update(model_overrides.parse_overrides(getattr(parsed, "model_overrides", None)) or {})
            language_models[:] = [path for path in [getattr(parsed, "lm_path", None)] if path]
        return parsed

    def loaded(filenames: List[str], arg_overrides: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any) -> Any:
        if filenames == language_models:
            return _load_language_model(load, filenames, arg_overrides, *args, **kwargs)
        asked = {name: value for name, value in overrides.items() if name in (arg_overrides or {})}
        try:
            with model_overrides.checked(filenames, asked):
                return load(filenames, arg_overrides, *args, **kwargs)
        except RuntimeError as error:
            if MISFIT not in str(error) or kwargs.get("state") is not None:  # the latter: those who read it tell
                raise
            raise _misfit(filenames, args[0] if args else kwargs.get("task"), error) from error

    options.parse_args_and_arch, checkpoint_utils.load_model_ensemble_and_task = checked, loaded


def _load_language_model(load: Callable[..., Any], filenames: List[str], *args: Any, **kwargs: Any) -> Any:
    """What ``load`` gives of ``--lm-path``.

    Raises:
        InputError: it cannot be loaded.
    """
    try:
        return load(filenames, *args, **kwargs)
    except Exception as error:  # whatever a file that is none, or a data-bin without its dictionary, happens to cause
        reason = first_line(error).removeprefix(f"{filenames[0]}: ")
        raise InputError(
            f"--lm-path {filenames[0]}: cannot be loaded: {reason}; give a language model of fairseq's, "
            "whose dict.txt stands in the data-bin"
        ) from error


def _misfit(filenames: List[str], task: Any, error: RuntimeError) -> InputError:
    """What is told of checkpoints of which one does not fit: their training's task, or that of the data-bin."""
    from fairseq import checkpoint_utils

    given = getattr(getattr(task, "cfg", None), "_name", None)
    for path in filenames:
        trained = checkpoint_utils.load_checkpoint_to_cpu(path)["cfg"].task
        if given not in (None, trained._name):
            return InputError(f"--task {given}: {path} was trained with {trained._name}; give that ({misfit(error)})")
    return InputError(
        f"--path {os.pathsep.join(filenames)}: does not fit the dictionaries of the data-bin; give the one of its "
        f"training ({misfit(error)})"
    )


def problems_of(given: Mapping[str, Any]) -> Iterator[str]:
    """What such a command would fail at with a traceback, or would not read.

    Args:
        given: its options by name; there is nothing to say of those that a command does not have.
    """
    if "path" in given:
        yield from _problems_of_path(given)
    yield from _problems_of_files(given)
    yield from _unread(given)
    if model_overrides.parse_overrides(given.get("model_overrides")) is None:
        example = "\"{'dropout': 0.1}\""
        yield f"--model-overrides {given['model_overrides']}: is no dictionary of options by name, such as {example}"
    yield from problems_of_least(given)
    if (
        "max_tokens" in given
        and not _has_size(given)
        and all(given.get(name) is None for name in ("max_tokens", "batch_size"))
    ):
        yield "--max-tokens: not given; say how large batches are, with that or --batch-size"
    yield from _problems_of_numbers(given)
    yield from problems_of_post_processing("--post-process", given.get("post_process"))
    if given.get("log_file") and not Path(given["log_file"]).absolute().parent.is_dir():
        yield f"--log-file {given['log_file']}: its folder is not there; make it, or give another file"
    if given.get("results_path"):
        yield from _problems_of_results(Path(given["results_path"]))


def problems_of_least(given: Mapping[str, Any]) -> Iterator[str]:
    """Numbers, by the options' names, that are too small to mean anything."""
    for name, least in LEAST.items():
        if given.get(name) is not None and given[name] < least:
            yield f"{flag_of(name)} {given[name]}: must be at least {least}"


def _has_size(given: Mapping[str, Any]) -> bool:
    """Whether a command has a size of batches: those that translate, or score by a language model, have one."""
    return bool({"beam", "softmax_batch"} & set(given))


def _unread(given: Mapping[str, Any]) -> Iterator[str]:
    """Options that a command has and does not read, or falls over."""
    for name in NOT_INTERACTIVE if "buffer_size" in given else ():
        if given.get(name):
            yield f"{flag_of(name)}: fairseq-interactive does not read it; use fairseq-generate"
    if given.get("num_shards", 1) != 1 and "softmax_batch" not in given:
        yield (
            f"--num-shards {given['num_shards']}: fairseq does not read it here, every shard would have everything; "
            "docnmt translate --workers divides a translation"
        )


def _problems_of_files(given: Mapping[str, Any]) -> Iterator[str]:
    """Files that are not there; fairseq also takes addresses, and ``-`` for standard input."""
    from omegaconf import MISSING

    for name in FILES:
        path = given.get(name)
        if path and path not in ("-", MISSING) and "://" not in path:
            if Path(path).is_dir():
                yield f"{flag_of(name)} {path}: is a folder; name a file"
            elif not Path(path).exists():
                yield f"{flag_of(name)} {path}: no such file"
            elif name == "sentencepiece_model":
                yield from _problems_of_sentencepiece(f"{flag_of(name)} {path}", path)


def _problems_of_sentencepiece(told: str, path: str) -> Iterator[str]:
    from sentencepiece import SentencePieceProcessor

    try:
        SentencePieceProcessor(model_file=path)
    except (RuntimeError, OSError):  # what it raises names lines of its own code
        yield f"{told}: no model of SentencePiece's"


def problems_of_post_processing(flag: str, symbol: Optional[str]) -> Iterator[str]:
    """Why fairseq cannot undo subwords so, which it finds at the first sentence that it has translated.

    Args:
        flag: the option.
        symbol: its value; None: they stay.
    """
    from fairseq.data.data_utils import post_process

    try:
        post_process("", symbol)
    except NotImplementedError:
        yield f"{flag} {symbol}: fairseq knows no such subwords; give e.g. sentencepiece or '@@ ', or leave it out"


def _problems_of_numbers(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        same = name.removesuffix("_valid")  # where it is not given, fairseq takes the one of training
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int) and abs(number) > LARGEST and (same == name or given.get(same) != value):
                yield f"{flag_of(name)} {number}: is too large, {LARGEST} at most"
    if given.get("seed") is not None and not 0 <= given["seed"] < SEEDS:
        yield f"--seed {given['seed']}: must be from 0 to {SEEDS - 1}"


def _problems_of_results(folder: Path) -> Iterator[str]:
    """Why no results can be written to a folder, which need not be there."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        yield f"--results-path {folder}: {there} is a file; give a folder"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"--results-path {folder}: {there} cannot be written; give another folder"


def _problems_of_task(parser: Any) -> Iterator[str]:
    """No task where fairseq has none that is usual: it would look for one of no name."""
    found, _ = parser.parse_known_args()
    if getattr(found, "task", "none is needed") is None:
        yield "--task: not given; name the task of the model's training, e.g. --task document_translation"


def _problems_of_path(given: Mapping[str, Any]) -> Iterator[str]:
    """No checkpoint, or one that is not there; those in parts have names that fairseq makes of the path."""
    from fairseq.file_io import PathManager
    from fairseq.utils import split_paths

    if not given["path"]:
        yield "--path: not given; name the checkpoint"
    elif not given.get("checkpoint_suffix") and given.get("checkpoint_shard_count", 1) == 1:
        # Validation is of one model.
        for path in split_paths(given["path"]) if _has_size(given) else [given["path"]]:
            if not PathManager.exists(path):
                yield f"--path {path}: no such file; name the checkpoint"
            elif Path(path).is_dir():
                yield f"--path {path}: is a folder; name a checkpoint in it"
