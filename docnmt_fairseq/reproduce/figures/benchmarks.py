"""Figures that benchmarks of the repository compute: complexity of layers, recurrent cells, a smooth surface."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import read_json, write_bytes
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.drawing import draw_curves

ROOT = Path(docnmt_fairseq.__file__).parents[1]
RUNS, SMOKE_RUNS = 10, 2  # seeds of each model
SMOKE_LAYERS = ["--heads", "2", "--head-dim", "4", "--kernel", "torch", "--max-sentences", "64", "--seconds", "0.01"]


def run_benchmark(benchmark: str, folder: Path, *options: object) -> Any:
    """Runs a benchmark of a checkout of the repository and returns the content of its result file.

    Args:
        benchmark: module; its last name is that of the result file.
        folder: folder of the results.
        options: options of the benchmark.
    """
    command = [sys.executable, "-m", benchmark, "--results", str(folder.absolute()), *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise InputError(f"{benchmark} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return read_json(folder / f"{benchmark.rpartition('.')[2]}.json")


@FIGURES.register("exponents")
class ExponentsOfLayers(Figures):
    """Growth of a layer's time with the number of sentences (``n``) or words per sentence (``m``).

    A figure is the slope of a line through the logarithms of sizes and times, forward and backward, on the CPU.
    """

    settings = ("layer", "grows_with")

    def values(self) -> Dict[Cell, List[float]]:
        layers = list(dict.fromkeys(cell.settings["layer"] for cell in self.cells))
        options = ["--without-memory", "--layers", *layers, *(SMOKE_LAYERS if self.request.smoke else [])]
        found = run_benchmark("benchmarks.speed.complexity", self.request.output / "exponents", *options)["layers"]
        return {
            cell: [found[cell.settings["layer"]]["exponents"][f"core {cell.settings['grows_with']}"]]
            for cell in self.cells
        }


@FIGURES.register("recurrent-validation")
class RecurrentValidation(Figures):
    """Validation error of a recurrent cell for a width and optimiser, one per run, independent of ``--seeds``."""

    settings = ("cell", "training")

    def values(self) -> Dict[Cell, List[float]]:
        trainings = list(dict.fromkeys(cell.settings["training"] for cell in self.cells))
        cells = list(dict.fromkeys(cell.settings["cell"] for cell in self.cells))
        options = ["--seeds", SMOKE_RUNS, "--iterations", 2] if self.request.smoke else ["--seeds", RUNS]
        options += ["--cells", *cells, "--settings", *trainings]
        run_benchmark("benchmarks.experiments.recurrent_sanity", self._folder, *options)
        found = self._measured()
        return {
            cell: [float(error) for error in found[cell.settings["training"]][cell.settings["cell"]]["error"]]
            for cell in self.cells
        }

    def draw(self, name: str) -> List[Path]:
        """Mean training loss by iteration, a picture per training setting ([Z] Fig. 13 a)."""
        pictures = []
        for training, cells in self._measured().items():
            curves = {cell: list(enumerate(measured["losses"], start=1)) for cell, measured in cells.items()}
            path = self.request.output / f"{name}-loss-{training.replace(',', '-')}.png"
            pictures.append(draw_curves(path, curves, "iteration", f"training loss, {training}"))
        return pictures

    @property
    def _folder(self) -> Path:
        return self.request.output / "recurrent-validation"

    def _measured(self) -> Dict[str, Any]:
        """Results of the last run: by training setting and cell."""
        settings = read_json(self._folder / "recurrent_sanity.json")["settings"]
        return {f"{one['width']},{one['optimiser']},{one['rate']}": one["cells"] for one in settings}


@FIGURES.register("smooth-surface")
class SmoothSurface(Figures):
    """Error of a model and optimiser at unseen points of a surface; one figure per run, independent of ``--seeds``."""

    settings = ("model", "optimiser", "error")

    def values(self) -> Dict[Cell, List[float]]:
        options = ["--seeds", SMOKE_RUNS, "--steps", 2] if self.request.smoke else ["--seeds", RUNS]
        folder = self.request.output / "smooth-surface"
        options += ["--picture", (folder / "surfaces.png").absolute()]
        rows = run_benchmark("benchmarks.experiments.context_aware_sanity", folder, *options)["surface"]
        found = {(row["model"], row["optimiser"]): row for row in rows}
        return {
            cell: [float(error) for error in found[cell.settings["model"], cell.settings["optimiser"]][
                cell.settings["error"]]]
            for cell in self.cells
        }  # fmt: skip

    def draw(self, name: str) -> List[Path]:
        """Surfaces of XOR and of the smooth function ([Z] Fig. 15 and 16)."""
        path = self.request.output / f"{name}-surfaces.png"
        write_bytes(path, (self.request.output / "smooth-surface" / "surfaces.png").read_bytes())
        return [path]
