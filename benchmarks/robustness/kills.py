"""Kills processes at random moments and compares what comes out with what comes out undisturbed.

    python -m benchmarks.robustness.kills [--kills 200] [--seed 1] [--only prepare workers train translate score]

Each of docnmt prepare, fairseq-train, docnmt translate and docnmt score is run to its end once. Then it is begun
again and again in a new folder: SIGKILL goes to the command or to one of the processes that it started (of "workers",
the part of docnmt prepare that has worker processes, always to one of these), at a moment drawn from the time that it
takes, and the same command is given again until it ends by itself. In the end everything must be as it was without a
kill, byte for byte (of checkpoints, whose files hold times, every tensor), no half-written file may be left, and no
process. Writes benchmarks/results/kills.md and .json, in which the results of other commands stay.
"""

import argparse
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import torch

import docnmt_fairseq
from benchmarks.lib import killed
from benchmarks.lib.machine import RESULTS, ROOT, machine, publish, table
from docnmt_fairseq import cli, compat
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.corpus.transform import in_processes, transform_file

PLUGIN = str(ROOT / "docnmt_fairseq")
TINY = [
    word
    for side in ("encoder", "decoder")
    for word in f"--{side}-embed-dim 16 --{side}-ffn-embed-dim 24 --{side}-attention-heads 2 --{side}-layers 2".split()
]
COMMANDS = ("prepare", "workers", "train", "translate", "score")
LIMIT = 300.0  # seconds of a run: more, and it hangs

Digests = Dict[str, str]


def corpus(folder: Path) -> None:
    """Makes the text that everything works on."""
    options = ["--train-documents", "40", "--valid-documents", "4", "--test-documents", "10"]
    cli.main(["synth", "--output", str(folder), *options])


def prepare(text: Path, folder: Path) -> None:
    """Prepares it, with every kind of model."""
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(text / split))]
    options = ["--tokenizer", "moses", "--truecase", "--subwords", "bpe", "--vocab-size", "150", "--workers", "2"]
    code = cli.main(["prepare", "-s", "src", "-t", "tgt", *splits, *options, "--output", str(folder)])
    if code:
        raise SystemExit(code)


def tokenise(text: Path, folder: Path) -> None:
    """Does what docnmt prepare does with worker processes, file after file."""
    for name in ("train.src", "train.tgt", "test.src", "test.tgt"):
        with in_processes(partial(tokenizer, "moses", "en"), 2) as function:
            transform_file(text / name, folder / name, function)


def train(data: Path, folder: Path, updates: int = 16) -> None:
    """Trains a tiny model, which is saved every third update, with fairseq's own command."""
    from fairseq_cli.train import cli_main

    docnmt_fairseq.register()  # the package is imported already, and fairseq does not look again
    sys.argv = ["fairseq-train", str(data / "data-bin"), "--user-dir", PLUGIN, "--save-dir", str(folder), "--cpu"]
    sys.argv += ["--task", "document_translation", "--arch", "document_transformer_conditional", *TINY]
    sys.argv += ["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "400", "--max-update", str(updates)]
    sys.argv += ["--save-interval-updates", "3", "--keep-interval-updates", "2", "--num-workers", "0", "--seed", "3"]
    cli_main()


def translate(data: Path, checkpoint: Path, source: Path, folder: Path) -> Any:
    """Translates the test set; what is there already is gone on with."""
    command = [
        "translate",
        "--path",
        str(checkpoint),
        "--data",
        str(data),
        "--input",
        str(source),
        "--resume",
        "--scores",
    ]
    return cli.main([*command, "--output", str(folder / "out.tgt"), "--max-tokens", "60", "--beam", "3", "--cpu"])


def score(reference: Path, systems: Tuple[Path, Path], folder: Path) -> Any:
    """Scores two texts."""
    command = ["score", "--reference", str(reference), "--system", f"a={systems[0]}", "--system", f"b={systems[1]}"]
    return cli.main([*command, "--output", str(folder / "scores.txt")])


def digest_of_files(folder: Path) -> Digests:
    """Returns what each file holds; stamps of steps and kept indices, which hold times of files, are left out."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".stamps" not in path.parts)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not path.name.endswith(".index.npy")
    }


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
    lines += [f"processes, where these alone are killed. {machine()}."]
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
