"""Figures ``exponents``: how the time of layers grows with sentences and words, by the repository's benchmark."""

from typing import Dict, List

from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.benchmarks import figures_of

SMOKE = ["--heads", "2", "--head-dim", "4", "--kernel", "torch", "--max-sentences", "64", "--seconds", "0.01"]


@FIGURES.register("exponents")
class ExponentsOfLayers(Figures):
    """A cell is a layer of the benchmark, and what its time grows with: ``n`` sentences, or ``m`` words of each.

    Its figure is the slope of a straight line through the logarithms of sizes and times, forward and backward.
    """

    settings = ("layer", "grows_with")

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`; on a CPU, without seeds."""
        layers = list(dict.fromkeys(cell.settings["layer"] for cell in self.cells))
        options = ["--without-memory", "--layers", *layers, *(SMOKE if self.request.smoke else [])]
        found = figures_of("benchmarks.speed.complexity", self.request.output / "exponents", *options)["layers"]
        return {cell: [found[cell.settings["layer"]]["exponents"][_key(cell)]] for cell in self.cells}


def _key(cell: Cell) -> str:
    return f"core {cell.settings['grows_with']}"
