"""Stage ``real-text``: the handbooks on a GPU, a sentence-level start, then all models from it side by side."""

import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import model
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.results import read_scores
from docnmt_fairseq.recipes.run_probes import read_probes

RECIPE, SEED, PROCESSES = "en_de_manuals_gpu", 1, 16
TOGETHER = ("train", "translate", "probe")  # steps that all models do side by side: one alone leaves a GPU idle


@STAGES.register("real-text")
class RealText(Stage):
    """The start and the models are trained, translate and are asked; killed at the limit, it goes on where it was."""

    minutes = 9.5

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        names = models_of(setting)
        yield "start", partial(started, setting)
        for step in TOGETHER:
            yield step, partial(side_by_side, setting, names, step)
        for name in names:
            yield name, partial(scores_of, setting, name)


def models_of(setting: Setting) -> List[str]:
    """Names of the recipe's models, of a dry run the first two."""
    names = read_dataset_config(named_recipes()[RECIPE]).models
    return names[:2] if setting.dry else names


def begin(setting: Setting, output: Path, name: str, until: str) -> "subprocess.Popen[str]":
    """Starts the recipe for a model, up to a step."""
    words = ["recipe", RECIPE, "--output", str(output), "--models", name, "--seeds", str(SEED), "--until", until]
    words += ["--smoke", "--updates", "4", "--workers", "1"] if setting.dry else ["--raw", str(setting.raw)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, PROCESSES // len(models_of(setting)) // 2))}
    return subprocess.Popen(
        [sys.executable, "-m", "docnmt_fairseq", *words], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def waited(running: Dict[str, "subprocess.Popen[str]"]) -> None:
    """Waits until all have ended.

    Raises:
        RuntimeError: one failed.
    """
    said = {name: process.communicate()[1] for name, process in running.items()}
    failed = {name: said[name][-2000:] for name, process in running.items() if process.returncode}
    if failed:
        raise RuntimeError(str(failed))


def started(setting: Setting) -> Figures:
    """Trains the start; returns its seconds, those of preparation before it included."""
    begun = time.monotonic()
    waited({"start": begin(setting, setting.output / "recipe", models_of(setting)[0], "start")})
    return {"seconds": time.monotonic() - begun}


def folder_of(setting: Setting, name: str) -> Path:
    """Where a model is trained, made at the first call: data and start are the same files there."""
    folder = setting.output / "side-by-side" / name
    if not folder.exists():
        partial_copy = folder.with_name(f"{name}.part")
        shutil.rmtree(partial_copy, ignore_errors=True)
        shutil.copytree(setting.output / "recipe", partial_copy, copy_function=os.link)
        partial_copy.replace(folder)
    return folder


def side_by_side(setting: Setting, names: List[str], until: str) -> Figures:
    """Does a step of all models at once; returns its seconds."""
    begun = time.monotonic()
    waited({name: begin(setting, folder_of(setting, name), name, until) for name in names})
    return {"seconds": time.monotonic() - begun}


def scores_of(setting: Setting, name: str) -> Figures:
    """Returns the scores of a model on every test set."""
    dataset, folder = read_dataset_config(named_recipes()[RECIPE]), folder_of(setting, name) / "models"
    found: Dict[str, Any] = {}
    for test_set in dataset.test_sets:
        files = ResultFiles(folder / f"{name}-{SEED}", test_set)
        probed = read_probes(files, dataset.probes) if model(name).sees_context else {}
        found[test_set] = {**read_scores(files, significance=False), **probed}
    return found
