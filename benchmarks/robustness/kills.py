"""Kills processes at random moments and compares what comes out with what comes out undisturbed.

    python -m benchmarks.robustness.kills [--kills 200] [--seed 1] [--only prepare workers train translate score …]

Each of docnmt prepare, fairseq-train, docnmt translate and docnmt score is run to its end once, and so are those that
share their work out: docnmt prepare, translate and generate with --shards, and two ranks under torchrun. Then it is
begun again and again in a new folder: SIGKILL goes to the command or to one of the processes that it started (of
"workers", the part of docnmt prepare that has worker processes, and of "ranks" always to one of these), at a moment
drawn from the time that it takes, and the same command is given again until it ends by itself. In the end everything
must be as it was without a kill, byte for byte (of checkpoints, whose files hold times, every tensor), no
half-written file may be left, and no process. Writes benchmarks/results/kills.md and .json, in which the results of
other commands stay.
"""

import argparse
import hashlib
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

import torch

from benchmarks.lib import killed
from benchmarks.lib.machine import RESULTS, machine, publish, table
from benchmarks.robustness.commands import (
    corpus,
    generate,
    prepare,
    score,
    tokenise,
    train,
    train_by_ranks,
    translate,
)
from docnmt_fairseq import compat

SHARED_OUT = ("prepare in shards", "translate in shards", "generate", "ranks")
COMMANDS = ("prepare", "workers", "train", "translate", "score", *SHARED_OUT)
LIMIT = 300.0  # seconds of a run: more, and it hangs

Digests = Dict[str, str]


def digest_of_files(folder: Path) -> Digests:
    """Returns what each file holds; what tells of times is left out: stamps, kept indices, and folders of jobs."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        relative = path.relative_to(folder)
        told = any(part == ".stamps" or part == "jobs" or part.endswith(".jobs") for part in relative.parts)
        if not told and not path.name.endswith(".index.npy"):
            found[str(relative)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def digest_of_checkpoints(folder: Path) -> Digests:
    """Returns what each checkpoint holds of the model, its optimiser and the place in the data."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".pt":
            found[path.name] = "not a checkpoint"
            continue
        held = torch.load(path, map_location="cpu", weights_only=compat.SAFE_LOADER)
        total = hashlib.sha256()
        for part in (held["model"], held["last_optimizer_state"], held["extra_state"]["train_iterator"]):
            _add(total, part)
        found[path.name] = total.hexdigest()
    return found


def _add(total: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        total.update(value.contiguous().numpy().tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            total.update(str(key).encode())
            _add(total, value[key])
    elif isinstance(value, (list, tuple)):
        for one in value:
            _add(total, one)
    else:
        total.update(repr(value).encode())


@dataclass
class Scenario:
    """A command and what it leaves.

    Attributes:
        run: does it, into a folder.
        digests: of what is there.
        wanted: those without a kill.
        seconds: that it takes.
        outcomes: what was killed, how often.
        faults: what went wrong.
        runs: to the end, after one kill or several.
        children: only processes that it started are killed.
    """

    run: Callable[[Path], Any]
    digests: Callable[[Path], Digests] = digest_of_files
    wanted: Digests = field(default_factory=dict)
    seconds: float = 0.0
    outcomes: Counter = field(default_factory=Counter)
    faults: List[str] = field(default_factory=list)
    runs: int = 0
    children: bool = False

    def first(self, folder: Path) -> None:
        """Runs it undisturbed, twice: that the same comes out is what the rest relies on."""
        for name in ("first", "again"):
            log = folder / f"{name}.log"
            outcome = killed.run(lambda name=name: self.run(made(folder / name)), log, LIMIT)
            if outcome.status != 0:
                raise RuntimeError(f"undisturbed: exit status {outcome.status}: {last_line(log)}")
            digests = self.digests(folder / name)
            if self.wanted and self.wanted != digests:
                raise RuntimeError(f"undisturbed, two runs differ: {differences(self.wanted, digests)}")
            self.wanted, self.seconds = digests, outcome.seconds

    def killed_until_whole(self, folder: Path, chance: random.Random, most: int) -> int:
        """Runs it in a new folder, kills it, and gives the command again until it ends; returns the kills."""
        target, log, kills = made(folder / "killed"), folder / "killed.log", 0
        log.unlink(missing_ok=True)
        while True:
            after = chance.uniform(0, self.seconds) if kills < most else None
            outcome = killed.run(lambda: self.run(target), log, LIMIT, after, chance, self.children)
            kills += bool(outcome.killed)
            if outcome.killed:
                self.outcomes[outcome.killed] += 1
            if outcome.left:
                self.faults.append(f"{outcome.left} processes left behind")
            if outcome.status is None:
                self.faults.append(f"hangs after {outcome.killed or 'no'} kill: {last_line(log)}")
            if outcome.status == 0:
                break
            if not outcome.killed:
                self.faults.append(f"exit status {outcome.status} without a kill: {last_line(log)}")
                break
        digests = self.digests(target)
        if digests != self.wanted:
            self.faults.append(f"differs: {differences(self.wanted, digests)}")
        self.runs += 1
        shutil.rmtree(target)
        return kills


def made(folder: Path) -> Path:
    """Makes a folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def last_line(log: Path) -> str:
    """Returns the last line of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.is_file() else []
    return lines[-1] if lines else "no output"


def differences(wanted: Digests, found: Digests) -> str:
    """Returns the names of what differs."""
    names = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    told = [
        name + ("" if name in found else " (missing)") + ("" if name in wanted else " (too much)") for name in names
    ]
    return ", ".join(told[:5])


def scenarios(folder: Path) -> Dict[str, Scenario]:
    """Returns the commands by name, after what they work on was made."""
    text, data, model = folder / "text", folder / "data", folder / "model"
    corpus(text)
    for action in (lambda: prepare(text, made(data)), lambda: train(data, made(model))):
        outcome = killed.run(action, folder / "set-up.log", LIMIT)
        if outcome.status != 0:
            raise RuntimeError(f"set-up: exit status {outcome.status}: {last_line(folder / 'set-up.log')}")
    checkpoint, source, target = model / "checkpoint_last.pt", text / "test.src", text / "test.tgt"
    return {
        "prepare": Scenario(lambda into: prepare(text, into)),
        "workers": Scenario(lambda into: tokenise(text, into), children=True),
        "train": Scenario(lambda into: train(data, into), digest_of_checkpoints),
        "translate": Scenario(lambda into: translate(data, checkpoint, source, into)),
        "score": Scenario(lambda into: score(target, (target, target), into)),
        "prepare in shards": Scenario(lambda into: prepare(text, into, "--shards", "3")),
        "translate in shards": Scenario(
            lambda into: translate(data, checkpoint, source, into, "--shards", "2", "--engine", "processes")
        ),
        "generate": Scenario(lambda into: generate(data, checkpoint, into)),
        "ranks": Scenario(lambda into: train_by_ranks(data, into), digest_of_checkpoints, children=True),
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="in all, shared among the commands (default: 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=COMMANDS)
    return parser.parse_args()


def measure(kills: int, seed: int, only: Sequence[str]) -> Dict[str, Scenario]:
    """Kills, as many times; returns what became of the commands."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {name: one for name, one in scenarios(folder).items() if name in only}
        for number, (name, scenario) in enumerate(found.items()):
            scenario.first(made(folder / "undisturbed" / name))
            left = kills * (number + 1) // len(found) - kills * number // len(found)
            while left > 0:
                left -= scenario.killed_until_whole(
                    made(folder / "work" / name), chance, min(left, chance.randint(1, 4))
                )
    return found


def report(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the page.

    Args:
        found: of each command, what came of it, see :func:`result`.
    """
    rows = []
    for name, one in found.items():
        killed_ = one["outcomes"]
        own, children = killed_.get("itself", 0), killed_.get("a child", 0)
        rows.append([name, own + children, own, children, one["runs"], len(one["faults"])])
    header = ["command", "kills", "of the command", "of a process it started", "runs to the end", "faults"]
    lines = ["# Kills", "", table(header, rows), ""]
    lines += [f"- {name}: {fault}" for name, one in found.items() for fault in one["faults"]]
    lines += ["", "Every run is killed 1 to 4 times. `workers`: the part of `docnmt prepare` that has worker"]
    lines += [f"processes, where these alone are killed, as are `ranks`, two under torchrun. {machine()}."]
    return "\n".join(lines)


def result(one: Scenario) -> Dict[str, Any]:
    """What came of a command, as plain values."""
    return {"outcomes": dict(one.outcomes), "runs": one.runs, "faults": one.faults}


def published() -> Dict[str, Any]:
    """What is known of commands from former runs."""
    path = RESULTS / "kills.json"
    return (
        {name: one for name, one in json.loads(path.read_text()).items() if name in COMMANDS} if path.exists() else {}
    )


def main() -> None:
    args, start = options(), time.monotonic()
    torch.set_num_threads(1)
    found = {name: result(one) for name, one in measure(args.kills, args.seed, args.only).items()}
    known = {**published(), **found}
    results = {name: known[name] for name in COMMANDS if name in known}
    publish("kills", report(results), seconds=time.monotonic() - start, **results)
    raise SystemExit(int(any(one["faults"] for one in found.values())))


if __name__ == "__main__":
    main()
