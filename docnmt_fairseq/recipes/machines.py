"""On what a recipe's models are trained: processes of a machine, or of several, that share each step."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.node_group import NodeGroup
from docnmt_fairseq.recipes.processes import PLUGIN, fairseq, run

FORMER = {"--max-sentences": "--batch-size"}  # of fairseq-train


class Share(NamedTuple):
    """What each process gets of a step: ``--max-tokens`` and ``--batch-size`` (if any) of ``--update-freq`` batches."""

    tokens: int
    batches: List[int]
    documents: Optional[int] = None

    def options(self) -> List[str]:
        """The options of fairseq-train."""
        of_documents = [] if self.documents is None else ["--batch-size", str(self.documents)]
        return ["--max-tokens", str(self.tokens), *of_documents, "--update-freq", ",".join(map(str, self.batches))]

    def __str__(self) -> str:
        return " ".join(self.options())


@dataclass(frozen=True)
class Machine:
    """On what, and with which package, fairseq's commands run.

    Attributes:
        processes: of this machine, one a GPU.
        cpu: without any GPU.
        group: the machines that have as many each, if this is not alone.
        user_dir: the package that is imported: this one, or a user's that registers this one.
    """

    processes: int = 1
    cpu: bool = False
    group: Optional[NodeGroup] = None
    user_dir: Path = PLUGIN

    @property
    def all_processes(self) -> int:
        """Those of all machines."""
        return self.processes * (self.group.nodes if self.group else 1)

    def options(self) -> List[str]:
        """The options of fairseq's commands."""
        if not self.cpu:
            return ["--distributed-world-size", "1"] if self.all_processes == 1 else []
        return ["--cpu", "--num-workers", "0", *(["--distributed-backend", "gloo"] if self.all_processes > 1 else [])]

    def share(self, tokens: int, options: Sequence[str]) -> Share:
        """Shares a step out, so that all processes together make the one that a single process would make.

        Batches are dealt out as far as that goes, the tokens of those that are left are divided.

        Args:
            tokens: of a batch of a single process.
            options: of its training; ``--update-freq`` says how many batches a step has, ``--batch-size`` how many
                documents a batch has at most.

        Raises:
            InputError: the tokens or documents cannot be divided so.
        """
        if (asked := last_given("--max-tokens", options)) is not None:  # which would have no effect
            raise InputError(
                f"--max-tokens {asked}: of recipes it is batch_tokens; leave it out, or give --update-freq"
            )
        batches, count = _update_freq(options), self.all_processes
        given = last_given("--batch-size", options)
        if given is not None and (not given.isdecimal() or _rest(int(given), batches, count)):
            raise InputError(f"--batch-size {given}: {count} processes cannot share so many documents evenly")
        if _rest(tokens, batches, count):
            fitting = [number for number in range(1, 2 * count) if not _rest(tokens, batches, number)]
            near = ", ".join(map(str, fitting[-6:]))
            raise InputError(
                f"--processes {self.processes}: {count} processes cannot share {max(batches)} × {tokens:,} tokens, "
                f"those of a step, evenly; numbers of processes in all that can: {near}"
            )
        common = math.gcd(count, *batches)
        documents = None if given is None else int(given) * common // count
        return Share(tokens * common // count, [number // common for number in batches], documents)

    def train(self, arguments: List[str], log: Path) -> None:
        """Runs fairseq-train to its end, with the other machines.

        Args:
            arguments: of it.
            log: where what it prints is added.

        Raises:
            InputError: it failed, here or there.
        """
        arguments = [*arguments, *self.options()]
        together, check = None, None
        if self.group:
            together, check = self.group.call(arguments, log), self.group.check
        elif self.processes > 1:
            together = ["--standalone"]
        command = [*fairseq("train", self.processes, together), *arguments, "--user-dir", str(self.user_dir)]
        with open(log, "a", encoding="utf-8") as stream:
            run(command, stream, log, check=check)


def _rest(tokens: int, batches: Sequence[int], count: int) -> int:
    """What is left of the tokens of a batch that cannot be divided."""
    return tokens % (count // math.gcd(count, *batches))


def last_given(flag: str, options: Sequence[str]) -> Optional[str]:
    """What an option says where it stands last, by whichever of its names; None if it is not there."""
    given = None
    for word, following in zip(options, [*options[1:], ""]):
        name, joined, value = word.partition("=")
        if FORMER.get(name, name) == flag:
            given = value if joined else following
    return given


def _update_freq(options: Sequence[str]) -> List[int]:
    """The batches of a step; fairseq takes one number for each epoch, the last for all that follow."""
    given = last_given("--update-freq", options) or "1"
    numbers = given.split(",")
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise InputError(f"--update-freq {given}: expected numbers from 1, with commas between")
    return [int(number) for number in numbers]
