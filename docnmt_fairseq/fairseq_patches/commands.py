"""fairseq's commands: start of processes and of the log, one-line errors, and the hub interface."""

import copy
import functools
import importlib.util
import logging
import os
import sys
import warnings
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

import torch
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError

Hypotheses = List[List[Dict[str, Any]]]  # of each sentence, best first

SLURM = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")  # environment of a job
TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE")  # environment of its processes
WARNINGS = (  # of calls inside fairseq; a user can change nothing about them
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\s*The version_base parameter is not specified",
    r"\s*'\w+' is validated against ConfigStore schema",
    r"\s*The strict flag in the compose API is deprecated",
    r"In '\w+': Usage of deprecated keyword in package header",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
)
LOGGERS = ("fairseq.tasks.fairseq_task", "fairseq.data.data_utils")  # "can_reuse_epoch_itr = False", "loaded …"


def join_torchrun(infer_init_method: Callable[..., None]) -> Callable[..., None]:
    """Makes processes that torchrun started train together, also without a GPU each."""

    @functools.wraps(infer_init_method)
    def wrapper(cfg: Any, force_distributed: bool = False) -> None:
        env = os.environ
        if cfg.distributed_init_method or not all(name in env for name in TORCHRUN) or int(env["WORLD_SIZE"]) == 1:
            _check_processes(cfg)
            infer_init_method(cfg, force_distributed)
            return
        cfg.distributed_init_method = "env://"
        cfg.distributed_world_size = int(env["WORLD_SIZE"])
        cfg.distributed_rank = int(env["RANK"])
        cfg.device_id = int(env["LOCAL_RANK"])
        cfg.distributed_no_spawn = True

    return wrapper


def _check_processes(cfg: Any) -> None:
    """Raises :class:`InputError` if fairseq cannot start the processes that the options ask for."""
    processes, gpus = cfg.distributed_world_size, torch.cuda.device_count()
    slurm = any(name in os.environ for name in SLURM)
    if cfg.distributed_init_method or processes == 1 or cfg.tpu or cfg.pipeline_model_parallel:
        return
    if cfg.distributed_port > 0 and not slurm and "MASTER_ADDR" not in os.environ:
        raise InputError("--distributed-port: only for jobs of Slurm; omit it, or start the processes with torchrun")
    if not slurm and "MASTER_ADDR" not in os.environ and processes > gpus:
        remedy = f"torchrun --nproc-per-node {processes} starts processes without a GPU each"
        raise InputError(f"--distributed-world-size {processes}: the machine has {gpus} GPUs; {remedy}")


def wrap_on_cpu(wrap: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Calls DistributedDataParallel without device ids for models on the CPU."""

    def wrapper(module: nn.Module, device_ids: Any = None, output_device: Any = None, **kwargs: Any) -> nn.Module:
        if not next(module.parameters()).is_cuda:
            device_ids = output_device = None
        return wrap(module=module, device_ids=device_ids, output_device=output_device, **kwargs)

    return wrapper


def train_bf16_on_this_device(call_main: Callable[..., None]) -> Callable[..., None]:
    """Makes ``--bf16`` use the CPU or GPU; with ``torch_xla`` installed it remains an option for TPUs."""

    @functools.wraps(call_main)
    def wrapper(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> None:
        if cfg.common.bf16 and importlib.util.find_spec("torch_xla") is None:
            cfg.common.tpu = cfg.distributed_training.tpu = False
        call_main(cfg, main, **kwargs)

    return wrapper


def shorten_startup_log() -> None:
    """Hides deprecation warnings of fairseq's own calls, and its four lines per set of batches."""
    for message in WARNINGS:
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", message, category)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


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


def keep_every_sentence(generate: Callable[..., Hypotheses]) -> Callable[..., Hypotheses]:
    """Returns a result per sentence, also of skipped ones; a call that fails does not change the open document."""

    @functools.wraps(generate)
    def wrapper(self: Any, tokenized_sentences: Any, beam: int = 5, verbose: bool = False,
                skip_invalid_size_inputs: bool = False, **options: Any) -> Hypotheses:  # fmt: skip
        state = getattr(self.task, "interactive_state", ())
        if not state or (torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1):
            return generate(self, tokenized_sentences, beam, verbose, skip_invalid_size_inputs, **options)
        before = {name: copy.copy(getattr(self.task, name)) for name in state}
        lines, limits = list(tokenized_sentences), self.max_positions
        longest = limits[0] if isinstance(limits, (tuple, list)) else limits
        fit = [not skip_invalid_size_inputs or longest is None or len(line) <= longest for line in lines]
        try:
            fitting = [line for line, fits in zip(lines, fit) if fits]
            found = iter(generate(self, fitting, beam, verbose, **options) if fitting else ())
        except BaseException:
            for name, value in before.items():
                setattr(self.task, name, value)
            raise
        rows = zip(fit, self.task.are_sentences(lines))
        return [next(found) if fits else [_empty_hypothesis(self)] for fits, is_sentence in rows if is_sentence]

    return wrapper


def _empty_hypothesis(hub: Any) -> Dict[str, Any]:
    """Returns the hypothesis of a sentence that is not translated."""
    return {
        "tokens": torch.tensor([hub.tgt_dict.eos()]),
        "score": float("-inf"),
        "attention": torch.empty(0),
        "alignment": [],
        "positional_scores": torch.tensor([float("-inf")]),
    }
