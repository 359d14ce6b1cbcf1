"""Preparation of a data set: selects documents where needed, then runs ``docnmt prepare`` on all splits."""

import io
import os
from dataclasses import asdict, replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.config import AND, config_of
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.readers import all_options
from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import partial_path, sha256, write_bytes
from docnmt_fairseq.recipes import synthetic_data
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig
from docnmt_fairseq.recipes.downloads import Source
from docnmt_fairseq.recipes.selection import Documents, balanced, document_range, native_documents, write_held_out

SMOKE_DOCUMENTS = {"train": 24, "valid": 3, TEST: 3}  # further test sets: as many as the first
SMOKE_HELD_OUT = 10  # sentences
SMOKE_SUBWORDS = 24  # in addition to the characters

Inputs = Tuple[str, List[str]]  # format and files, as docnmt prepare takes them


class Splits:
    """Splits of a data set.

    Args:
        dataset: configuration.
        steps: step cache of the recipe; its folder gets ``data``.
        smoke: use few documents.
        words: post-editing: keep the target as words instead of edit operations.
        workers: processes of the preparation.
    """

    def __init__(self, dataset: DatasetConfig, steps: StepCache, smoke: bool, words: bool, workers: int):
        self.dataset, self.steps, self.output = dataset, steps, steps.folder
        self.smoke, self.words, self.workers = smoke, words, workers

    def get(self, raw: Optional[Path]) -> Dict[str, Path]:
        """Returns the paths of all files of the data set by name.

        Args:
            raw: folder with the files; None: they are downloaded, or generated for a smoke run.

        Raises:
            InputError: a file is not available.
        """
        if self.smoke and raw is None:
            raw = self.output / "fixtures"
            action = partial(synthetic_data.write_raw, self.dataset, raw)
            self.steps.run("fixtures", synthetic_data.settings_of(self.dataset), [raw], action)
        source = Source(self.dataset, self.steps, raw)
        return {name: source.get(name) for name in self.dataset.files}

    def prepare(self, paths: Dict[str, Path]) -> Dict[str, Any]:
        """Writes the prepared data to ``data`` and returns its manifest.

        Args:
            paths: files by name.

        Raises:
            InputError: invalid input, or a file of line numbers that does not fit the prepared test set.
        """
        dataset, splits = self.dataset, self._native(paths)
        settings = dict(dataset.prepare, on_empty="drop")
        if not self.words:
            settings["edits_of"] = dataset.post_edits_of
        formats = {splits[name][0] for name in dataset.test_sets if name in splits}
        selected = any(split.balance_register or split.documents for split in dataset.splits.values())
        if dataset.hold_out or selected or self.smoke or len(formats) > 1:  # docnmt prepare reads one test format
            splits = self._selected(paths)
            settings = {name: value for name, value in settings.items() if name not in all_options()}
            if self.smoke and settings.get("subwords") != "none":
                settings["vocab_size"] = self._small_vocabulary(splits, settings)
        train, valid, test = (splits[name] for name in ("train", "valid", TEST))
        settings.update(
            source_lang=dataset.source_lang, target_lang=dataset.target_lang, output=self.output / "data",
            train=train[1], valid=[valid[1]], test=[splits[name][1] for name in dataset.test_sets],
            train_format=train[0], valid_format=valid[0], test_format=test[0], workers=self.workers,
        )  # fmt: skip
        manifest = prepare(config_of(settings))
        for split in dataset.split_names:
            name = dataset.test_sets.get(split, split)
            for feature, files in dataset.features.items():
                target = self.output / "data" / f"{name}.{feature}.npy"
                place_features(paths[files[split]], target, manifest["counts"][name]["sentences"], cut=self.smoke)
        for test_set in dataset.test_sets:
            self._check_lines(test_set, paths)
        return manifest

    def _native(self, paths: Dict[str, Path]) -> Dict[str, Inputs]:
        splits = {}
        for name, split in self.dataset.splits.items():
            arguments: List[str] = []
            for corpus in split.corpora:
                arguments += [*([AND] if arguments else []), *(str(paths[file]) for file in corpus)]
            splits[name] = split.format, arguments
        return splits

    def _selected(self, paths: Dict[str, Path]) -> Dict[str, Inputs]:
        """Writes the selected documents of all splits to ``selected`` as delimited text."""
        dataset, smoke, folder = self.dataset, self.smoke, self.output / "selected"
        languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
        config = config_of({**dataset.prepare, **languages, "output": self.output, "on_empty": "drop"})
        sides = list(config.pipelines)
        files = {name: [folder / f"{name}.{side}" for side in sides] for name in dataset.split_names}
        for name, split in dataset.splits.items():
            native = [[paths[file] for file in corpus] for corpus in split.corpora]
            documents: Documents = native_documents(split, native, config.reading)
            inputs: Dict[str, Any] = {"files": [sha256(path) for corpus in native for path in corpus], "smoke": smoke}
            inputs.update(format=split.format, options=asdict(config.reading))
            if split.documents and not smoke:  # generated files hold a few documents only
                start, end = split.documents
                documents = document_range(documents, start, end, f"splits: {name}")
                inputs["documents"] = split.documents
            if name == "train" and dataset.hold_out:
                cut = replace(dataset.hold_out, sentences=SMOKE_HELD_OUT) if smoke else dataset.hold_out
                written = {split: files[split] for split in ("train", *cut.splits)}
                inputs["hold_out"] = [cut.splits, cut.sentences, cut.seed]
                action = partial(write_held_out, documents, cut, written)
                self.steps.run("selected", inputs, [path for paths in written.values() for path in paths], action)
                continue
            limit = SMOKE_DOCUMENTS.get(name, SMOKE_DOCUMENTS[TEST]) if smoke else None
            documents = _first(documents, limit)
            if split.balance_register:
                documents = balanced(documents, split.balance_register)
                inputs["balance_register"] = split.balance_register
            action = partial(_write, documents, files[name])
            self.steps.run(f"selected/{name}", {**inputs, "limit": limit}, files[name], action)
        return {name: ("delimited", [str(path) for path in of_split]) for name, of_split in files.items()}

    def _small_vocabulary(self, splits: Dict[str, Inputs], settings: Dict[str, Any]) -> int:
        """Returns a vocabulary size for few documents."""
        lines = [[line for line in read_lines(path) if not is_boundary(line)] for path in splits["train"][1]]
        characters = [set("".join(side)) for side in lines]
        if settings.get("joint", True):
            return len(characters[0] | characters[1]) + SMOKE_SUBWORDS
        return max(map(len, characters)) + SMOKE_SUBWORDS

    def _check_lines(self, test_set: str, paths: Dict[str, Path]) -> None:
        """Raises an error if files refer to lines of a delimited test set that the preparation changed.

        For other formats, line numbers are those of the prepared text.
        """
        files = self.dataset.scores.line_files(test_set)
        split = self.dataset.splits.get(test_set)
        if not files or split is None or split.format != "delimited" or len(split.corpora) > 1:
            return
        native = paths[split.corpora[0][0]]
        prepared = self.output / "data" / "text" / f"{self.dataset.test_sets[test_set]}.{self.dataset.source_lang}"
        line = first_difference(native, prepared, cut=self.smoke)
        if line is not None:
            message = (
                f"differs from line {line} of the prepared text {prepared}, so that {', '.join(files.values())} refers "
                "to other lines; remove repeated empty lines and sentences without visible characters"
            )
            raise InputError.at(native, line, message)


def _first(documents: Documents, limit: Optional[int]) -> Documents:
    return lambda: islice(documents(), limit)


def _write(documents: Documents, paths: List[Path]) -> None:
    write_documents(documents(), paths)


def first_difference(native: Path, prepared: Path, cut: bool) -> Optional[int]:
    """Returns the first line, from 1, in which prepared text differs from its delimited original, or None.

    Args:
        native: original text; empty lines at the end are ignored.
        prepared: prepared text, normalised.
        cut: the prepared text may be shorter.
    """
    for number, (original, line) in enumerate(zip_longest(read_lines(native), read_lines(prepared)), start=1):
        if line is None and cut:
            return None
        if normalise(original or "") != (line or ""):
            return number
    return None


def place_features(path: Path, target: Path, sentences: int, cut: bool) -> None:
    """Places a feature file next to the data-bin: a symbolic link, since image features take gigabytes.

    Args:
        path: ``.npy`` file with a row or matrix per sentence.
        target: link to create.
        sentences: number of prepared sentences.
        cut: copy only the features of the first ``sentences`` sentences.

    Raises:
        InputError: not a feature file, or features of another number of sentences.
    """
    try:
        features = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: not a feature file, .npy ({first_line(error)})") from error
    if len(features) < sentences or (len(features) != sentences and not cut):
        raise InputError(
            f"{path}: features of {len(features)} sentences, but {sentences} were prepared: give one row per sentence "
            "pair in which no side is empty"
        )
    if cut:
        content = io.BytesIO()
        np.save(content, features[:sentences])
        target.unlink(missing_ok=True)
        write_bytes(target, content.getvalue())
        return
    link = partial_path(target)
    link.unlink(missing_ok=True)
    link.symlink_to(path.absolute())
    os.replace(link, target)
