"""Figures of the small tasks of [Z] that need no data: a validation of recurrent cells, and a smooth surface."""

from typing import Dict, List

from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.benchmarks import figures_of

RUNS, FEW = 10, 2  # of each model, numbered; FEW in a smoke run


@FIGURES.register("recurrent-validation")
class RecurrentValidation(Figures):
    """A cell of the table is a recurrent cell, its width, and how it is trained: the error of each run."""

    settings = ("cell", "training")

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`; one figure a run, ``--seeds`` are not looked at."""
        settings = list(dict.fromkeys(cell.settings["training"] for cell in self.cells))
        options = ["--seeds", FEW, "--iterations", 2] if self.request.smoke else ["--seeds", RUNS]
        cells = list(dict.fromkeys(cell.settings["cell"] for cell in self.cells))
        options += ["--cells", *cells, "--settings", *settings]
        folder = self.request.output / "recurrent-validation"
        measured = figures_of("benchmarks.experiments.recurrent_sanity", folder, *options)
        found = {f"{one['width']},{one['optimiser']},{one['rate']}": one["cells"] for one in measured}
        return {
            cell: [float(error) for error in found[cell.settings["training"]][cell.settings["cell"]]["error"]]
            for cell in self.cells
        }


@FIGURES.register("smooth-surface")
class SmoothSurface(Figures):
    """A cell of the table is a model, its optimiser, and which error is taken of the points that were not seen."""

    settings = ("model", "optimiser", "error")

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`; one figure a run, ``--seeds`` are not looked at."""
        options = ["--seeds", FEW, "--steps", 2] if self.request.smoke else ["--seeds", RUNS]
        folder = self.request.output / "smooth-surface"
        rows = figures_of("benchmarks.experiments.context_aware_sanity", folder, *options)["surface"]
        found = {(row["model"], row["optimiser"]): row for row in rows}
        return {cell: [float(error) for error in found[_place(cell)][cell.settings["error"]]] for cell in self.cells}


def _place(cell: Cell) -> "tuple[str, str]":
    return cell.settings["model"], cell.settings["optimiser"]
