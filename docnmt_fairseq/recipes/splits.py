"""The splits of a data set on their way to a data-bin: native files, perhaps cut, then ``docnmt prepare``."""

from dataclasses import asdict, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.readers import all_options
from docnmt_fairseq.corpus.splits import AND
from docnmt_fairseq.corpus.steps import Steps, sha256
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.recipes import fixtures
from docnmt_fairseq.recipes.balance import balanced
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig
from docnmt_fairseq.recipes.feature_files import lay_features
from docnmt_fairseq.recipes.fetch import Source
from docnmt_fairseq.recipes.select import first, native_documents, part, write_all, write_held_out

SMOKE_DOCUMENTS = {"train": 24, "valid": 3, TEST: 3}  # a further test set: as many as the first
SMOKE_HELD_OUT = 10  # sentences
SMOKE_PIECES = 24  # subwords beside the characters

Prepared = Tuple[str, List[str]]  # format and arguments of docnmt prepare


class Splits:
    """The splits of a data set.

    Args:
        dataset: its configuration.
        steps: of the recipe; their folder takes ``data`` and what leads to it.
        smoke: only a few documents.
        words: for post-editing: the target is left as words.
        workers: processes of preparation.
    """

    def __init__(self, dataset: DatasetConfig, steps: Steps, smoke: bool, words: bool, workers: int):
        self.dataset, self.steps, self.output = dataset, steps, steps.folder
        self.smoke, self.words, self.workers = smoke, words, workers

    def get(self, raw: Optional[Path]) -> Dict[str, Path]:
        """Where the files of the data set are, by name; a smoke run without any makes some up.

        Args:
            raw: a folder with them; None: they are downloaded.

        Raises:
            InputError: one cannot be had.
        """
        if self.smoke and raw is None:
            raw = self.output / "fixtures"
            action = partial(fixtures.write_raw, self.dataset, raw)
            self.steps.run("fixtures", fixtures.made_from(self.dataset), [raw], action)
        source = Source(self.dataset, self.output, raw)
        return {name: source.get(name) for name in self.dataset.files}

    def prepare(self, paths: Dict[str, Path]) -> Dict[str, Any]:
        """The manifest of the prepared data, in ``data``.

        Args:
            paths: where the files are.

        Raises:
            InputError: bad input; a file whose rows count lines of a test set that are not those prepared.
        """
        dataset, splits = self.dataset, self._native(paths)
        settings = dict(dataset.prepare, on_empty="drop")
        if not self.words:
            settings["edits_of"] = dataset.post_edits_of
        formats = {splits[name][0] for name in dataset.test_sets if name in splits}
        chosen = any(split.balance_register or split.documents for split in dataset.splits.values())
        if dataset.hold_out or chosen or self.smoke or len(formats) > 1:  # docnmt prepare takes one format of tests
            splits = self._selected(paths)
            settings = {name: value for name, value in settings.items() if name not in all_options()}  # read by now
            if self.smoke and settings.get("subwords") != "none":
                settings["vocab_size"] = self._few_subwords(splits, settings)
        train, valid, test = (splits[name] for name in ("train", "valid", TEST))
        settings.update(
            source_lang=dataset.source_lang, target_lang=dataset.target_lang, output=self.output / "data",
            train=train[1], valid=[valid[1]], test=[splits[name][1] for name in dataset.test_sets],
            train_format=train[0], valid_format=valid[0], test_format=test[0], workers=self.workers,
        )  # fmt: skip
        manifest = prepare(config_of(settings))
        for split, names in self._data_names().items():
            for name, files in dataset.features.items():
                target = self.output / "data" / f"{names}.{name}.npy"
                lay_features(paths[files[split]], target, manifest["counts"][names]["sentences"], cut=self.smoke)
        for test_set in dataset.test_sets:
            self._check_lines(test_set, paths)
        return manifest

    def _data_names(self) -> Dict[str, str]:
        """What ``docnmt prepare`` calls every split, by its name."""
        return {**{name: name for name in self.dataset.split_names}, **self.dataset.test_sets}

    def _native(self, paths: Dict[str, Path]) -> Dict[str, Prepared]:
        """The splits that have files."""
        splits = {}
        for name, split in self.dataset.splits.items():
            arguments: List[str] = []
            for corpus in split.corpora:
                arguments += [*([AND] if arguments else []), *(str(paths[file]) for file in corpus)]
            splits[name] = split.format, arguments
        return splits

    def _selected(self, paths: Dict[str, Path]) -> Dict[str, Prepared]:
        """Writes all sides of the splits as delimited text in ``selected``."""
        dataset, smoke, folder = self.dataset, self.smoke, self.output / "selected"
        languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
        config = config_of({**dataset.prepare, **languages, "output": self.output, "on_empty": "drop"})
        sides = [side.name for side in config.sides]
        files = {name: [folder / f"{name}.{side}" for side in sides] for name in dataset.split_names}
        for name, split in dataset.splits.items():
            native = [[paths[file] for file in corpus] for corpus in split.corpora]
            documents = native_documents(split, native, config.reading)
            inputs: Dict[str, Any] = {"files": [sha256(path) for corpus in native for path in corpus], "smoke": smoke}
            inputs.update(format=split.format, options=asdict(config.reading))
            if split.documents and not smoke:  # whose made-up files hold a few
                documents = part(documents, split.documents, f"splits: {name}")
                inputs["documents"] = split.documents
            if name == "train" and dataset.hold_out:
                cut = replace(dataset.hold_out, sentences=SMOKE_HELD_OUT) if smoke else dataset.hold_out
                written = {split: files[split] for split in ("train", *cut.splits)}
                inputs["hold_out"] = [cut.splits, cut.sentences, cut.seed]
                action = partial(write_held_out, documents, cut, written)
                self.steps.run("selected", inputs, [path for several in written.values() for path in several], action)
            else:
                most = SMOKE_DOCUMENTS.get(name, SMOKE_DOCUMENTS[TEST]) if smoke else None
                documents = partial(first, documents, most)
                if split.balance_register:
                    documents = balanced(documents, split.balance_register)
                    inputs["balance_register"] = split.balance_register
                action = partial(write_all, documents, files[name])
                self.steps.run(f"selected/{name}", {**inputs, "most": most}, files[name], action)
        return {name: ("delimited", [str(path) for path in several]) for name, several in files.items()}

    def _few_subwords(self, splits: Dict[str, Prepared], settings: Dict[str, Any]) -> int:
        """A vocabulary size that suits a few documents."""
        lines = [[line for line in read_lines(path) if not is_mark(line)] for path in splits["train"][1]]
        signs = [set("".join(side)) for side in lines]
        if settings.get("joint", True):
            return len(signs[0] | signs[1]) + SMOKE_PIECES
        return max(map(len, signs)) + SMOKE_PIECES

    def _check_lines(self, test_set: str, paths: Dict[str, Path]) -> None:
        """Refuses files that count the lines of a delimited test set where other lines were prepared.

        In other formats lines are those of the prepared text.
        """
        counting = self.dataset.scores.files_of_lines(test_set)
        split = self.dataset.splits.get(test_set)
        if not counting or split is None or split.format != "delimited" or len(split.corpora) > 1:
            return
        native = paths[split.corpora[0][0]]
        prepared = self.output / "data" / "text" / f"{self.dataset.test_sets[test_set]}.{self.dataset.source_lang}"
        line = first_difference(native, prepared, cut=self.smoke)
        if line is not None:
            message = (
                f"{', '.join(counting.values())} counts these lines, but this is not line {line} of what was prepared "
                f"({prepared}): a sentence without visible characters was left out, or empty lines repeat; mend that"
            )
            raise InputError.at(native, line, message)


def first_difference(native: Path, prepared: Path, cut: bool) -> Optional[int]:
    """The first line, from 1, in which prepared text is not what it was prepared from, None if there is none.

    Args:
        native: delimited text; empty lines at its end do not count.
        prepared: the text, normalised.
        cut: the prepared text may end before.
    """
    for number, (there, here) in enumerate(zip_longest(read_lines(native), read_lines(prepared)), start=1):
        if here is None and cut:
            return None
        if normalise(there or "") != (here or ""):
            return number
    return None
