"""Options of commands that train: on what, with which seeds."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.machines import Machine


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the data, the seeds, the size, the machine, and more options of trainings."""
    parser.add_argument(
        "--raw", type=Path, metavar="DIR", help="folder with the data set's files or archives; nothing is downloaded"
    )
    parser.add_argument("--seeds", default="1", metavar="NUMBERS", help="each model is trained with each (default: 1)")
    parser.add_argument("--size", metavar="SIZE", help="preset of the architectures (default: the recipe's)")
    parser.add_argument(
        "--updates",
        type=int,
        metavar="N",
        help="updates of each model, those of a start not counted (default: the recipe's)",
    )
    parser.add_argument(
        "--processes", type=int, default=1, metavar="N", help="GPUs of this machine, or processes on CPUs"
    )
    parser.add_argument("--cpu", action="store_true", help="no GPU (default where there is none)")
    parser.add_argument(
        "--train-options",
        default="",
        metavar="TEXT",
        help="more options of fairseq-train, e.g. --train-options=--fp16; the models are then not the published ones",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of preparation (default: all available)")


def check_updates(args: argparse.Namespace) -> None:
    """Refuses a training without updates by :class:`InputError`."""
    if args.updates is not None and args.updates < 1:
        raise InputError(f"--updates {args.updates}: at least 1")


def train_options(args: argparse.Namespace) -> Tuple[str, ...]:
    """The words of ``--train-options``; :class:`InputError` for a quote that is not closed."""
    try:
        return tuple(shlex.split(args.train_options))
    except ValueError as error:
        raise InputError(f"--train-options {args.train_options!r}: {error}") from error


def without_gpu(args: argparse.Namespace) -> bool:
    """Whether to train on CPUs; :class:`InputError` if there are not so many GPUs as processes."""
    import torch

    if args.processes < 1:
        raise InputError(f"--processes {args.processes}: at least 1")
    cpu = bool(args.cpu or args.smoke or not torch.cuda.is_available())
    if not cpu and args.processes > torch.cuda.device_count():
        raise InputError(f"--processes {args.processes}: there are {torch.cuda.device_count()} GPUs (or give --cpu)")
    return cpu


def machine(args: argparse.Namespace) -> Machine:
    """On what to train, where one machine does."""
    return Machine(args.processes, without_gpu(args))


def seeds(args: argparse.Namespace) -> Tuple[int, ...]:
    """The numbers of ``--seeds``; :class:`InputError` if they are none, or one comes twice."""
    try:
        found = tuple(int(number) for number in args.seeds.split())
    except ValueError:
        found = ()
    if not found:
        raise InputError(f"--seeds {args.seeds!r}: expected numbers with spaces between")
    twice = next((seed for seed in found if found.count(seed) > 1), None)
    if twice is not None:
        raise InputError(
            f"--seeds {args.seeds!r}: {twice} comes twice, and would train the same model again; leave one out"
        )
    return found


def workers(args: argparse.Namespace) -> int:
    """Processes of preparation; :class:`InputError` for none."""
    if args.workers is not None and args.workers < 1:
        raise InputError(f"--workers {args.workers}: at least 1")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return args.workers or available
