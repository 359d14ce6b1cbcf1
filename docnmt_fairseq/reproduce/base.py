"""What a published table is made of, and the contract of what gives our figures for its cells.

A class in one file of ``figures/`` is all there is to another kind of figures:

    @FIGURES.register("sentences")
    class Sentences(Figures):
        settings = ("recipe", "split")

        def values(self): ...
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.run import STEPS, Options
from docnmt_fairseq.registry import Registry


@dataclass(frozen=True, eq=False)
class Cell:
    """One place of a table.

    Attributes:
        row, column: their titles.
        published: what the paper has there, None: nothing.
        settings: what says how our figure is made: the column's, then the row's.
    """

    row: str
    column: str
    published: Optional[float]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """What a run of a table is asked for; see ``docnmt reproduce --help``.

    Attributes:
        output: folder to write to, which all tables share: what several need is made once.
    """

    output: Path
    raw: Optional[Path] = None
    seeds: Tuple[int, ...] = (1,)
    machine: Machine = Machine()
    size: Optional[str] = None
    updates: Optional[int] = None
    train_options: Tuple[str, ...] = ()
    smoke: bool = False
    workers: int = 1

    @property
    def changes(self) -> List[str]:
        """The options by which models are no longer those of the table."""
        return self.of_recipe(self.output).changes

    @property
    def training_options(self) -> List[str]:
        """Those options of trainings that are given, by their flags."""
        given = {"--size": self.size, "--updates": self.updates, "--train-options": self.train_options or None}
        return [flag for flag, value in given.items() if value is not None]

    def of_recipe(self, output: Path, models: Tuple[str, ...] = (), until: str = STEPS[-1]) -> Options:
        """What a recipe is asked for.

        Args:
            output: folder to write; of the files that are given, those in a folder of its name are its own.
            models: that it trains.
            until: its last step.
        """
        own = None if self.raw is None else self.raw / output.name
        return Options(
            output=output,
            raw=own if own is not None and own.is_dir() else self.raw,
            models=models,
            seeds=self.seeds,
            machine=self.machine,
            size=self.size,
            updates=self.updates,
            train_options=self.train_options,
            until=until,
            smoke=self.smoke,
            workers=self.workers,
        )


class Figures:
    """Contract of what gives our figures.

    Class attributes:
        settings: the keys that columns and rows may have beside their titles.
        heeds: the options of trainings that change what it does, of ``Request.training_options``.
        processor: what its hours are of, GPU or CPU.

    Args:
        cells: of the table, those that are asked for.
        request: what for.
    """

    settings: Tuple[str, ...] = ()
    heeds: Tuple[str, ...] = ()
    processor = "GPU"

    def __init__(self, cells: Sequence[Cell], request: Request):
        self.cells, self.request = cells, request

    def hours(self) -> Optional[float]:
        """Hours of ``processor`` that the cells take, see ``hours.py``; None: minutes, on any machine."""
        return None

    def p_values(self, baseline: str) -> Dict[Cell, List[float]]:
        """How likely chance makes the differences from a row in the same column, one a seed, of cells that are tested.

        Asked for after :meth:`values`.

        Args:
            baseline: the row's title.
        """
        return {}

    def values(self) -> Dict[Cell, List[float]]:
        """Our figures, one a seed; a cell that has none is left out.

        Raises:
            InputError: something is missing or wrong.
        """
        raise NotImplementedError


FIGURES: Registry[Figures] = Registry("kind of figures")
