"""The demo with a seed and a number of sentences that are selected, and what it reached."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List

from benchmarks.experiments import selection_report as report
from benchmarks.lib.machine import ROOT
from docnmt_fairseq.evaluation.synth_report import build_report

SHARED = ("corpus", "data", "sentence")  # what demos of one seed have in common, whatever t


def run_demo(work: Path, seed: int, t: int) -> dict:
    """Returns what the demo reached: accuracy by kind and group of distances, nll by epoch; runs it if need be."""
    folder = work / demo_name(seed, t)
    other = work / demo_name(seed, 4)
    if not folder.exists() and other.exists():
        for shared in SHARED:
            shutil.copytree(other / shared, folder / shared)
    environment = {**os.environ, "SEED": str(seed), "TOP_T": str(t)}
    translations = folder / "conditional" / "generate.log"
    with open(folder.with_suffix(".log"), "a", encoding="utf-8") as log:
        demo = ["bash", str(ROOT / "scripts" / "demo.sh"), str(folder)]
        status = subprocess.run(demo, env=environment, stdout=log, stderr=log).returncode
    if status and not translations.exists():  # the demo also ends so if a model is not as good as it should be
        raise SystemExit(f"{folder.with_suffix('.log')}: the demo failed")
    result = build_report(folder / "corpus", "test", {"": translations}).systems[""]
    groups: Dict[str, Dict[str, List[int]]] = {}
    for kind, by_distance in result.accuracy.by_kind_and_distance.items():
        for distance, figure in by_distance.items():
            group = next(f"{low}-{high}" for low, high in report.GROUPS if low <= distance <= high)
            sums = groups.setdefault(kind, {}).setdefault(group, [0, 0])
            sums[0] += figure.right
            sums[1] += figure.cases
    told = (folder / "conditional" / "train.log").read_text(encoding="utf-8")
    epochs = re.findall(r"valid on .* nll_loss ([\d.]+) .* num_updates (\d+)", told)
    nll = [[int(updates), float(nll)] for nll, updates in epochs]
    weight = float(re.findall(r"'selection_loss': ([\d.]+)", told)[0])
    return {"seed": seed, "t": t, "weight": weight, "right_of_cases": groups, "nll": nll}


def demo_name(seed: int, t: int) -> str:
    """Returns what a demo is called."""
    return f"demo-{seed}" + (f"-t{t}" if t != 4 else "")
