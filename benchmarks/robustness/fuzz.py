"""Gives every reader damaged files: each is read, or refused in one line; nothing else may happen.

    python -m benchmarks.robustness.fuzz [--files 10000] [--seed 1] [--only NAME ...]

A file of every form is made, damaged at random again and again (bits, lengths, numbers, pieces cut out, repeated, put
in) and read to its end. What is raised must be ``InputError``; a traceback, a crash, a reader that hangs or that wants
more than 4 GB is a fault. Writes benchmarks/results/fuzz.md and .json; exit status 1: there were faults.
"""

import argparse
import json
import random
import re
import resource
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import torch

from benchmarks.lib import killed
from benchmarks.lib.machine import machine, publish, table
from benchmarks.robustness.damage import damaged
from benchmarks.robustness.readers import READERS, Subject
from docnmt_fairseq.errors import InputError

MEMORY = 4 << 30  # beyond what the process has already
SLOW = 20.0  # seconds that reading one small file may take


def one(subject: Subject, folder: Path, seed: str) -> Dict[str, str]:
    """Damages the file and reads it; returns what came of it."""
    chance = random.Random(seed)
    for path in subject.damaged:
        path.write_bytes(subject.contents[path])
    path = chance.choice(subject.damaged)
    path.write_bytes(damaged(subject.contents[path], chance))
    try:
        subject.read(folder)
    except InputError as error:
        return {"outcome": "refused", "detail": str(error)}
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = re.sub(r"\d+|0x\w+|'[^']*'", "…", (str(error).splitlines() or [""])[0])  # as many faults as causes
        return {"outcome": "fault", "detail": f"{type(error).__name__} in {Path(place.filename).name}: {said}"[:160]}
    return {"outcome": "read", "detail": ""}


def many(name: str, folder: Path, seeds: List[str], journal: Path) -> None:
    """Reads a damaged file for every seed; writes a line before and one after each."""
    size = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    subject = READERS[name](folder)
    with open(journal, "a", encoding="utf-8", buffering=1) as stream:
        for seed in seeds:
            stream.write(json.dumps({"seed": seed}) + "\n")
            stream.write(json.dumps({"seed": seed, **one(subject, folder, seed)}) + "\n")


def fuzz(name: str, files: int, seed: int, folder: Path) -> Dict[str, Any]:
    """Returns what came of so many damaged files of a form: counts, and faults with the seeds that show them."""
    seeds, found = [f"{name}-{seed}-{number}" for number in range(files)], []
    journal, log = folder / "journal.jsonl", folder / "log"
    while seeds:
        journal.unlink(missing_ok=True)
        limit = SLOW + len(seeds)
        outcome = killed.run(lambda: many(name, folder / "files", seeds, journal), log, limit)  # noqa: B023
        lines = (
            [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()] if journal.exists() else []
        )
        done = [line for line in lines if "outcome" in line]
        found += done
        if len(done) == len(seeds):
            break
        if len(lines) == len(done):
            raise RuntimeError(f"{name}: {log.read_text(encoding='utf-8')[-2000:]}")
        ended = "hangs" if outcome.status is None else f"the process ended, {outcome.status}"
        found.append({"seed": seeds[len(done)], "outcome": "fault", "detail": ended})
        seeds = seeds[len(done) + 1 :]
    faults: Dict[str, str] = {}
    for line in found:
        if line["outcome"] == "fault":
            faults.setdefault(line["detail"], line["seed"])
    return {"outcomes": dict(Counter(line["outcome"] for line in found)), "faults": faults}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000, help="damaged files in all (default: 10,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=sorted(READERS), choices=sorted(READERS), metavar="NAME")
    return parser.parse_args()


def report(found: Dict[str, Dict[str, Any]]) -> str:
    """Returns the page."""
    outcomes = ["read", "refused", "fault"]
    rows = [[name, *(one["outcomes"].get(outcome, 0) for outcome in outcomes)] for name, one in found.items()]
    rows.append(["together", *(sum(row[number] for row in rows) for number in (1, 2, 3))])
    lines = ["# Damaged files", "", table(["form", "read all the same", "refused in a line", "faults"], rows), ""]
    lines += [
        f"- {name}: {fault} (seed {seed})" for name, one in found.items() for fault, seed in one["faults"].items()
    ]
    return "\n".join([*lines, "", f"{machine()}."])


def main() -> None:
    args, start = options(), time.monotonic()
    torch.set_num_threads(1)
    found = {}
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = fuzz(name, -(-args.files // len(args.only)), args.seed, Path(folder))
            print(name, found[name], flush=True)
    publish("fuzz", report(found), seconds=round(time.monotonic() - start), **found)
    raise SystemExit(int(any(one["faults"] for one in found.values())))


if __name__ == "__main__":
    main()
