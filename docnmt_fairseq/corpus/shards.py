"""Data-bins of an output of ``docnmt prepare``: one, or one a shard of the training text, each made by itself.

The first is ``data-bin``, with all splits; those of further shards, ``data-bin-1``, …, hold training text only. So
``data-bin:data-bin-1:…`` is what fairseq trains on in turn. Every shard has the documents whose place in the corpus,
from 0, divided by the number of shards leaves the shard's number.
"""

import logging
import re
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence

from docnmt_fairseq.corpus.binarise import DATA_BIN, SplitItems, binarise, items_of_files
from docnmt_fairseq.corpus.config import TRAIN, config_of
from docnmt_fairseq.corpus.edits import operations_line
from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes, led_to
from docnmt_fairseq.corpus.items import Items, Numbering
from docnmt_fairseq.corpus.piece_numbers import PieceNumbering
from docnmt_fairseq.corpus.reusing import MANIFEST
from docnmt_fairseq.corpus.shares import Held
from docnmt_fairseq.corpus.sides import Side
from docnmt_fairseq.corpus.stages import Folder, Stages
from docnmt_fairseq.corpus.steps import Step, Steps
from docnmt_fairseq.corpus.subwords import WITH_CODES
from docnmt_fairseq.corpus.transform import BatchFunction, transformed
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import json_bytes, parse_json

if TYPE_CHECKING:
    from fairseq.data import Dictionary

Lines = Sequence[Sequence[str]]  # the same lines of every side

logger = logging.getLogger(__name__)

PLAN = "shards.json"  # what jobs that make one data-bin each need to know


def data_bins(output: PathLike, shards: int) -> List[Path]:
    """The data-bins of an output, in the order in which they are trained on."""
    return [Path(output) / (f"{DATA_BIN}-{number}" if number else DATA_BIN) for number in range(shards)]


class DataBins:
    """Makes the data-bins of an output whose text and models are there.

    Args:
        stages: with what the text holds.
        inputs: what each data-bin depends on.
    """

    def __init__(self, stages: Stages, inputs: Sequence[Dict[str, Any]]):
        self.stages, self.inputs = stages, inputs
        self.paths = data_bins(stages.output, len(inputs))

    @classmethod
    def planned(cls, output: Path, workers: int) -> "DataBins":
        """Those that ``docnmt prepare`` planned for an output.

        Raises:
            InputError: there is no plan.
        """
        try:
            plan = parse_json((output / PLAN).read_bytes())
            config = config_of({**plan["options"], "output": output, "workers": workers})
            held = {part: Held(*numbers) for part, numbers in plan["held"].items()}
            inputs = [{**of_one, "splits": dict(of_one["splits"])} for of_one in plan["inputs"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{output}: has no {PLAN}; run docnmt prepare --shards N there first") from error
        stages = Stages(config, Steps(output, output / MANIFEST))
        stages.held = held
        return cls(stages, inputs)

    def write_plan(self) -> None:
        """Writes what jobs must know; :meth:`planned` reads it."""
        options = self.stages.config.as_options()
        plan = {"options": options, "held": self.stages.held, "inputs": list(self.inputs)}
        atomic_write_bytes(self.stages.output / PLAN, json_bytes(plan, indent=1, sort_keys=True))

    def remove_former(self) -> None:
        """Removes data-bins of a former, larger number of shards, lest somebody trains on their text a second time.

        Where there is one data-bin only, the plan of several goes, too: a job that still waits would make part of it.
        """
        if len(self.paths) == 1:
            (self.stages.output / PLAN).unlink(missing_ok=True)
        for path in self.stages.output.glob(f"{DATA_BIN}-*"):
            if re.fullmatch(rf"{DATA_BIN}-[1-9]\d*", path.name) and path not in self.paths:
                logger.warning(f"{path}: of a former --shards, is removed")
                self.stages.steps.stamp(path.name).unlink(missing_ok=True)
                if path.is_dir():
                    shutil.rmtree(led_to(path))
                if path.is_symlink():
                    path.unlink()

    def make(self, number: int) -> Step:
        """Makes one data-bin, if it is not there as it should be; values: the tokens of each side of each split."""
        action = partial(self._binarise, number)
        return self.stages.steps.run(self.paths[number].name, self.inputs[number], [self.paths[number]], action)

    def made(self, number: int) -> Optional[Step]:
        """One data-bin's step; None if it is not there as it should be."""
        return self.stages.steps.known(self.paths[number].name, self.inputs[number], [self.paths[number]])

    def stamp(self, number: int) -> Path:
        """The file that is there when a data-bin was made, by whatever options."""
        return self.stages.steps.stamp(self.paths[number].name)

    def _binarise(self, number: int) -> Dict[str, Any]:
        from fairseq.data import Dictionary

        stages, config = self.stages, self.stages.config
        tokens = {side.name: config.language_tokens.get(side.models_of) for side in config.sides}
        dictionaries = {side: Dictionary.load(str(stages.dictionary_path(side))) for side in tokens}
        known = list(dictionaries.values())
        splits: Dict[str, SplitItems] = {}
        for split in self.inputs[number]["splits"]:
            files = stages.paths(stages.last, split)
            splits[split] = SplitItems(stages.held[split], partial(items_of_files, files, known))
        if config.shards > 1:
            part = config.parts(TRAIN)[number]
            splits[TRAIN] = SplitItems(stages.held[part], partial(self._items, part, known))
        return {"tokens": binarise(self.paths[number], dictionaries, splits, tokens)}

    def _items(self, part: str, dictionaries: Sequence["Dictionary"]) -> Iterator[Sequence[Items]]:
        """Yields batches of the items of a shard, from its text."""
        config, folders = self.stages.config, self.stages.folders()
        direct = config.subwords not in ("none", *WITH_CODES) and not config.edits_of
        with ExitStack() as stack:
            if direct:
                lines = self._lines(part, folders[:-1], stack)
                numberings = [self._pieces(*of_side) for of_side in zip(config.sides, dictionaries)]
                paths, first = self.stages.paths("text", part), 1
                for batch in lines:
                    yield [number(text, path, first) for number, text, path in zip(numberings, batch, paths)]
                    first += len(batch[0])
            else:
                by_text = list(map(Numbering, dictionaries))
                for batch in self._lines(part, folders, stack):
                    batch = self._as_edits(batch) if config.edits_of else batch
                    yield [number(text) for number, text in zip(by_text, batch)]

    def _pieces(self, side: Side, dictionary: "Dictionary") -> PieceNumbering:
        config, model = self.stages.config, self.stages.subword_model_path(side.models_of)
        return PieceNumbering(model, dictionary, config.language_tokens.get(side.models_of), config.workers)

    def _lines(self, part: str, folders: Sequence[Folder], stack: ExitStack) -> Iterator[Lines]:
        """Yields batches of the lines of a shard on every side, as they would be in the last of the folders."""
        sides = []
        for side in self.stages.config.sides:
            steps = [stack.enter_context(folder.transforms[side.name]()) for folder in folders]
            path = self.stages.path("text", part, side.name)
            total, title = self.stages.held[part].lines, f"{DATA_BIN}/{path.name}"
            sides.append(transformed(path, _one_after_another(steps), total=total, title=title))
        yield from zip(*sides)

    def _as_edits(self, batch: Lines) -> Lines:
        """The lines with operations in place of the target."""
        names = [side.name for side in self.stages.config.sides]
        target = names.index(self.stages.config.target_lang)
        translation = batch[names.index(str(self.stages.config.edits_of))]
        operations = list(map(operations_line, translation, batch[target]))
        return [operations if side == target else lines for side, lines in enumerate(batch)]


def _one_after_another(steps: Sequence[BatchFunction]) -> BatchFunction:
    def call(sentences: List[str]) -> List[str]:
        for step in steps:
            sentences = step(sentences)
        return sentences

    return call
