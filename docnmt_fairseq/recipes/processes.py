"""Commands of fairseq as processes, and the division of a training step among several."""

import ctypes
import logging
import math
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, TextIO, Tuple

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import partial_path

PLUGIN = Path(docnmt_fairseq.__file__).parent
SYNONYMS = {"--max-sentences": "--batch-size"}  # of fairseq-train
PR_SET_PDEATHSIG = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Machine:
    """Processes that share the training of a model.

    Attributes:
        processes: number of processes, one per GPU.
        cpu: do not use GPUs.
        launcher: command that starts all processes, on several machines; empty: torchrun on this one.
        user_dir: package that fairseq imports: this one, or one that registers this one.
    """

    processes: int = 1
    cpu: bool = False
    launcher: Tuple[str, ...] = ()
    user_dir: Path = PLUGIN

    def options(self) -> List[str]:
        """Options of fairseq's commands."""
        if not self.cpu:
            return ["--distributed-world-size", "1"] if self.processes == 1 else []
        return ["--cpu", "--num-workers", "0", *(["--distributed-backend", "gloo"] if self.processes > 1 else [])]

    def batch_options(self, tokens: int, options: Sequence[str]) -> List[str]:
        """Returns the batch options of one process, so that all processes together do the step of a single one.

        The batches of a step (``--update-freq``) are divided first, then the tokens and documents of a batch.

        Args:
            tokens: tokens per batch of a single process.
            options: options of its training.

        Raises:
            InputError: tokens or documents cannot be divided evenly.
        """
        batches = [int(number) for number in (last_value("--update-freq", options) or "1").split(",")]
        documents = last_value("--batch-size", options)
        common = math.gcd(self.processes, *batches)
        divisor = self.processes // common
        for name, count in (("batch_tokens", tokens), ("--batch-size", int(documents or 0))):
            if count % divisor:
                raise InputError(
                    f"--processes {self.processes}: {name} {count:,} is not divisible by {divisor}; change --processes"
                )
        limit = [] if documents is None else ["--batch-size", str(int(documents) // divisor)]
        freq = ",".join(str(number // common) for number in batches)
        return ["--max-tokens", str(tokens // divisor), *limit, "--update-freq", freq]

    def train(self, arguments: List[str], log: Path) -> None:
        """Runs fairseq-train and appends its output to a log."""
        if self.launcher:
            program = [*self.launcher, "-m", "fairseq_cli.train"]
        elif self.processes > 1:
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
            program = [*torchrun, str(self.processes), "-m", "fairseq_cli.train"]
        else:
            program = fairseq("train")
        with open(log, "a", encoding="utf-8") as stream:
            run([*program, *arguments, *self.options(), "--user-dir", str(self.user_dir)], stream, log)


def last_value(option: str, options: Sequence[str]) -> Optional[str]:
    """Returns the last value of an option, under any of its names; None if it is not given."""
    found = None
    for word, following in zip(options, [*options[1:], ""]):
        name, joined, value = word.partition("=")
        if SYNONYMS.get(name, name) == option:
            found = value if joined else following
    return found


def fairseq(command: str) -> List[str]:
    """Returns the start of a command line of fairseq: ``train``, ``generate``, …."""
    return [sys.executable, "-m", f"fairseq_cli.{command}"]


def run(command: List[str], output: TextIO, log: Path, errors: Optional[TextIO] = None) -> None:
    """Runs a command, which also ends when this process is killed.

    Args:
        command: command line.
        output: standard output of the command.
        log: file with its error messages; a failure shows its end.
        errors: standard error of the command; None: as ``output``.
    """
    logger.info(shlex.join(command))
    # fairseq would save a checkpoint on SIGTERM while a restarted recipe trains; torchrun must end its own processes.
    single = command[:2] == [sys.executable, "-m"] and command[2].startswith("fairseq_cli.")
    death_signal = signal.SIGKILL if single else signal.SIGTERM

    def end_with_parent() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)

    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python ignores a KeyboardInterrupt in hooks of fork
    try:
        done = subprocess.run(command, stdout=output, stderr=errors or subprocess.STDOUT, preexec_fn=end_with_parent)
    finally:
        signal.signal(signal.SIGINT, handler)
    if done.returncode:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
        raise InputError(f"fairseq ended with status {done.returncode}; {log} ends with\n{last}")


def run_to(command: List[str], output: Path) -> None:
    """Runs a command and writes its output to a file; error messages go to a file ``.err`` next to it."""
    errors, partial = output.with_suffix(".err"), partial_path(output)
    with open(partial, "w", encoding="utf-8") as stream, open(errors, "w", encoding="utf-8") as messages:
        run(command, stream, errors, messages)
    os.replace(partial, output)
