"""Cells of published tables, and the contract of experiments that compute our figures for them.

Another kind of experiment is a class in one file of ``figures/``:

    @FIGURES.register("sentences")
    class Sentences(Figures):
        settings = ("recipe", "split")

        def values(self): ...
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.recipes.recipe import STEPS, Options
from docnmt_fairseq.registry import Registry


@dataclass(frozen=True, eq=False)
class Cell:
    """Cell of a table.

    Attributes:
        row, column: titles.
        published: published figure, if any.
        settings: settings of our experiment: those of the column, then those of the row.
    """

    row: str
    column: str
    published: Optional[float]
    settings: Mapping[str, Any]


def recipe_options(request: Options, recipe: str, models: Tuple[str, ...] = (), stop_after: str = STEPS[-1]) -> Options:
    """Returns the options of a recipe of a table; a folder of its name in ``--raw`` takes precedence over ``--raw``."""
    raw = request.raw
    if raw is not None and (raw / recipe).is_dir():
        raw = raw / recipe
    return replace(request, output=request.output / recipe, raw=raw, models=models, stop_after=stop_after)


class Figures(ABC):
    """Contract of experiments that compute our figures.

    Class attributes:
        settings: keys of columns and rows in addition to their titles.
        processor: processor that the hours refer to, GPU or CPU.

    Args:
        cells: cells to compute.
        request: options of ``docnmt reproduce``.
    """

    settings: Tuple[str, ...] = ()
    processor = "GPU"

    def __init__(self, cells: Sequence[Cell], request: Options):
        self.cells, self.request = cells, request

    def hours(self) -> Optional[float]:
        """Returns the estimated hours of ``processor``; None: minutes."""
        return None

    def p_values(self, baseline: str) -> Dict[Cell, List[float]]:
        """Returns the p-values of differences from a row in the same column, one per seed, after :meth:`values`."""
        return {}

    @abstractmethod
    def values(self) -> Dict[Cell, List[float]]:
        """Returns our figures, one per seed; cells without figures are omitted."""

    def origin(self, cell: Cell) -> str:
        """Returns when a figure was computed, and from which data, after :meth:`values`."""
        data = f"with {self.request.raw}" if self.request.raw else "with synthetic data" if self.request.smoke else ""
        return f"computed on {date.today()} {data}".strip()

    def draw(self, name: str) -> List[Path]:
        """Draws what the paper shows as curves or pictures, after :meth:`values`, and returns the files.

        Args:
            name: name of the table, with which names of files begin.
        """
        return []


FIGURES: Registry[Figures] = Registry("kind of figures")
