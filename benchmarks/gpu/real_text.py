"""Stage ``real-text``: a recipe; its sentence-level start, then all its models at the same time."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.reporting import ROOT
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.files import read_json
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.recipes.dataset import DatasetConfig, named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import SEARCH, model
from docnmt_fairseq.recipes.processes import PLUGIN
from docnmt_fairseq.recipes.results import ResultFiles
from docnmt_fairseq.recipes.training import BEST

SEED = 1
TOGETHER = ("train", "translate", "probe")  # steps of all models at the same time: a single one leaves the GPU idle
TRUE, CXMI = "true", "cxmi"
TOKENS = 16_384  # batch of translation


@STAGES.register("real-text")
class RealText(Stage):
    """Trains the start and the models, translates and scores; an interrupted run is resumed."""

    minutes = 9.5
    resumable = True

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        dataset = read_dataset_config(named_recipes()[setting.recipe])
        names = ["conditional"] if setting.dry else dataset.models
        yield "start", partial(started, setting, names[0])
        for step in TOGETHER:
            yield step, partial(side_by_side, setting, names, step)
        for name in names:
            folder = folder_of(setting, name) / "models" / f"{name}-{SEED}"
            for test_set in dataset.test_sets:
                for context in (TRUE, *(dataset.probes.contexts if model(name).sees_context else [])):
                    files = ResultFiles(folder, test_set, "" if context == TRUE else context)
                    yield f"{name}/{test_set}/{context}", partial(scores_of, dataset, files)
        for command in ("docnmt translate", "fairseq-generate"):
            yield f"{names[0]} alone/{command}", partial(translated, setting, dataset.source_lang, names[0], command)


def start_recipe(setting: Setting, output: Path, name: str, until: str, processes: int = 1) -> "subprocess.Popen[str]":
    """Starts the recipe for a model up to a step, as one of several processes."""
    words = [
        "recipe",
        setting.recipe,
        "--output",
        str(output),
        "--models",
        name,
        "--seeds",
        str(SEED),
        "--stop-after",
        until,
    ]
    words += ["--smoke", "--updates", "4", "--workers", "1"] if setting.dry else ["--raw", str(setting.raw)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes // 2))}
    return subprocess.Popen(
        [sys.executable, "-m", "docnmt_fairseq", *words], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(running: dict[str, "subprocess.Popen[str]"]) -> None:
    """Waits for processes and raises the errors of failed ones."""
    output = {name: process.communicate()[1] for name, process in running.items()}
    failed = {name: output[name][-2000:] for name, process in running.items() if process.returncode}
    if failed:
        raise RuntimeError(str(failed))


def started(setting: Setting, name: str) -> Figures:
    """Trains the start; returns its seconds, including preparation without --prepared."""
    begin, output = time.monotonic(), setting.output / "recipe"
    if (setting.prepared or setting.dry) and not output.exists():
        linked(setting.text(), output)
    wait_for({"start": start_recipe(setting, output, name, "start")})
    return {"seconds": time.monotonic() - begin}


def linked(folder: Path, copy: Path) -> None:
    """Copies a folder with hard links; recipes replace files and never change them."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    part = copy.with_name(f"{copy.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(folder, part, copy_function=link)
    part.replace(copy)


def folder_of(setting: Setting, name: str) -> Path:
    """Returns the output folder of a model."""
    return setting.output / "side-by-side" / name


def side_by_side(setting: Setting, names: list[str], until: str) -> Figures:
    """Runs a step of all models at the same time; returns its seconds."""
    begin = time.monotonic()
    for name in names:
        if not folder_of(setting, name).exists():
            linked(setting.output / "recipe", folder_of(setting, name))
    running = {name: start_recipe(setting, folder_of(setting, name), name, until, len(names)) for name in names}
    wait_for(running)
    return {"seconds": time.monotonic() - begin}


def scores_of(dataset: DatasetConfig, files: ResultFiles) -> Figures:
    """Returns the scores of a translation, with CXMI for true context."""
    scores = read_json(files.named("scores.json"))
    found = {"BLEU": scores["bleu"], "chrF": scores["chrf"]}
    found.update((metric, scores["metrics"][metric]["score"]) for metric in dataset.scores.metrics)
    asked = files.named(f"{CXMI}.json")
    if not files.context and asked.exists():
        probes = read_json(asked)["probes"]
        found.update((f"CXMI, {probe}", figures["cxmi"]) for probe, figures in probes.items())
    return found


def translated(setting: Setting, language: str, name: str, command: str) -> Figures:
    """Returns the seconds of one process to load the model and translate the test set, and sentences per second."""
    folder = folder_of(setting, name)
    data, best = folder / "data", str(folder / "models" / f"{name}-{SEED}" / BEST)
    source, output = data / "text" / f"test.{language}", setting.output / "translated"
    search = [word for option, value in SEARCH.items() for word in (flag_of(option), str(value))]
    words = ["--path", best, "--max-tokens", str(TOKENS), *search, *(["--cpu"] if setting.dry else [])]
    if command == "docnmt translate":
        words = ["docnmt_fairseq", "translate", *words, "--data", str(data), "--input", str(source), "--force"]
        words += ["--output", str(output)]
    else:
        words = ["fairseq_cli.generate", str(data / "data-bin"), "--user-dir", str(PLUGIN), *words]
        words += ["--task", model(name).task]
    begin = time.monotonic()
    with open(output.with_suffix(".log"), "w", encoding="utf-8") as log:
        subprocess.run([sys.executable, "-m", *words], cwd=ROOT, stdout=log, stderr=log, check=True)
    seconds = time.monotonic() - begin
    return {"seconds": seconds, "sentences/s": sum(map(bool, read_lines(source))) / seconds}
