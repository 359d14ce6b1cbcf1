"""Options of the commands that train recipes: ``recipe`` and ``reproduce``."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Any, Dict, Tuple

from docnmt_fairseq.cli._options import positive
from docnmt_fairseq.recipes.processes import PLUGIN, Machine


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of data, models and processes."""
    parser.add_argument(
        "--raw", type=Path, metavar="DIR", help="folder with the files or archives of the data; nothing is downloaded"
    )
    parser.add_argument(
        "--seeds", type=numbers, default="1", metavar="NUMBERS", help="seeds of each model, with spaces (default: 1)"
    )
    parser.add_argument("--size", metavar="SIZE", help="size preset of the architectures (default: the recipe's)")
    parser.add_argument(
        "--updates",
        type=positive,
        metavar="N",
        help="updates of each model, in addition to those of a start (default: the recipe's)",
    )
    parser.add_argument(
        "--train-options",
        type=shlex.split,
        default="",
        metavar="TEXT",
        help="further options of fairseq-train, e.g. --train-options=--fp16; the models then differ from the published",
    )
    parser.add_argument(
        "--processes",
        type=positive,
        default=1,
        metavar="N",
        help="GPUs per training, or CPU processes (default: 1)",
    )
    parser.add_argument(
        "--launcher",
        type=shlex.split,
        default="",
        metavar="COMMAND",
        help="command that starts the --processes processes on several machines, e.g. 'srun torchrun --nnodes 2 …' "
        "(default: torchrun on this machine)",
    )
    parser.add_argument("--cpu", action="store_true", help="do not use GPUs (default if there are none)")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="processes of the preparation (default: all cores)"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="test run on the CPU: few documents, tiny models, synthetic data without --raw",
    )


def training_settings(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the values of these options, as fields of :class:`~docnmt_fairseq.recipes.recipe.Options`."""
    user_dir = getattr(args, "user_dir", None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "raw": args.raw,
        "seeds": args.seeds,
        "machine": Machine(
            args.processes,
            _without_gpu(args),
            tuple(args.launcher),
            PLUGIN if user_dir is None else Path(user_dir).absolute(),
        ),
        "size": args.size,
        "updates": args.updates,
        "train_options": tuple(args.train_options),
        "smoke": args.smoke,
        "workers": args.workers or cores,
    }


def _without_gpu(args: argparse.Namespace) -> bool:
    import torch

    return bool(args.cpu or args.smoke or not torch.cuda.is_available())


def numbers(text: str) -> Tuple[int, ...]:
    """Integers with spaces between them, without repetitions."""
    return tuple(dict.fromkeys(int(number) for number in text.split()))
