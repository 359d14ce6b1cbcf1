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
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import partial_path, sha256, write_bytes
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig
from docnmt_fairseq.recipes.selection import (
    Documents,
    balanced,
    native_documents,
    pronoun_of,
    register_of,
    write_held_out,
)

SMOKE_DOCUMENTS = {"train": 24, "valid": 3, TEST: 3}  # further test sets: as many as the first
SMOKE_HELD_OUT = 10  # sentences
SMOKE_SUBWORDS = 24  # in addition to the characters

Inputs = Tuple[str, List[str]]  # format and files, as docnmt prepare takes them


def prepare_splits(
    dataset: DatasetConfig, steps: StepCache, paths: Dict[str, Path], smoke: bool, words: bool, workers: int
) -> Dict[str, Any]:
    """Writes the prepared data to ``data`` in the output folder and returns its manifest.

    Args:
        dataset: configuration.
        steps: step cache of the output folder.
        paths: files by name.
        smoke: use few documents.
        words: post-editing: keep the target as words instead of edit operations.
        workers: processes.
    """
    splits, data, test_sets = _native(dataset, paths), steps.folder / "data", dataset.test_sets
    settings = dict(dataset.prepare, on_empty="drop", edits_of=None if words else dataset.post_edits_of)
    formats = {splits[name][0] for name in test_sets if name in splits}
    selected = any(split.selected for split in dataset.splits.values())
    if dataset.hold_out or selected or smoke or len(formats) > 1:  # docnmt prepare reads one test format
        splits = _selected(dataset, steps, paths, smoke)
        settings = {name: value for name, value in settings.items() if name not in all_options()}
        if smoke and settings.get("subwords") != "none":
            settings["vocab_size"] = _small_vocabulary(splits, settings)
    train, valid, test = (splits[name] for name in ("train", "valid", TEST))
    settings.update(
        source_lang=dataset.source_lang, target_lang=dataset.target_lang, output=data,
        train=train[1], valid=[valid[1]], test=[splits[name][1] for name in test_sets],
        train_format=train[0], valid_format=valid[0], test_format=test[0], workers=workers,
    )  # fmt: skip
    manifest = prepare(config_of(settings))
    for split in dataset.split_names:
        name = test_sets.get(split, split)
        for feature, files in dataset.features.items():
            target = data / f"{name}.{feature}.npy"
            place_features(paths[files[split]], target, manifest["counts"][name]["sentences"], cut=smoke)
    for test_set, name in test_sets.items():
        prepared = data / "text" / f"{name}.{dataset.source_lang}"
        _check_lines(dataset, test_set, paths, prepared, cut=smoke)
        lines = len(list(read_lines(prepared))) if smoke else None
        for file, path in zip(dataset.references(test_set), further_references(dataset, data, test_set)):
            reference = [normalise(line) for line in islice(read_lines(paths[file]), lines)]
            write_bytes(path, "".join(f"{line}\n" for line in reference).encode())
    return manifest


def further_references(dataset: DatasetConfig, data: Path, test_set: str) -> List[Path]:
    """Returns the files of the prepared data with the further references of a test set: ``text/test.en.1``, …."""
    first = data / "text" / f"{dataset.test_sets[test_set]}.{dataset.target_lang}"
    return [Path(f"{first}.{number}") for number, _ in enumerate(dataset.references(test_set), start=1)]


def _native(dataset: DatasetConfig, paths: Dict[str, Path]) -> Dict[str, Inputs]:
    splits = {}
    for name, split in dataset.splits.items():
        corpora = [[str(paths[file]) for file in corpus] for corpus in split.corpora]
        splits[name] = split.format, [*corpora[0], *(word for corpus in corpora[1:] for word in (AND, *corpus))]
    return splits


def _selected(dataset: DatasetConfig, steps: StepCache, paths: Dict[str, Path], smoke: bool) -> Dict[str, Inputs]:
    """Writes the selected documents of all splits to ``selected`` as delimited text."""
    languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
    config = config_of({**dataset.prepare, **languages, "output": steps.folder, "on_empty": "drop"})
    folder, sides = steps.folder / "selected", list(config.pipelines)
    files = {name: [folder / f"{name}.{side}" for side in sides] for name in dataset.split_names}
    for name, split in dataset.splits.items():
        hashes = [sha256(paths[file]) for file in split.files]
        inputs: Dict[str, Any] = {"files": hashes, "smoke": smoke, "split": asdict(split)}
        inputs["options"] = asdict(config.reading)
        documents = native_documents(name, split, paths, config.reading)
        if name == "train" and (cut := dataset.hold_out):
            cut = replace(cut, sentences=SMOKE_HELD_OUT) if smoke else cut
            written = {split: files[split] for split in ("train", *cut.splits)}
            outputs = [path for of_split in written.values() for path in of_split]
            action = partial(write_held_out, documents, cut, written)
            steps.run("selected", {**inputs, "hold_out": asdict(cut)}, outputs, action)
            continue
        if smoke:
            documents = _first(documents, SMOKE_DOCUMENTS.get(name, SMOKE_DOCUMENTS[TEST]))
        if split.balance_register:
            documents = balanced(documents, register_of(split.balance_register))
        if split.balance_pronouns:
            documents = balanced(documents, pronoun_of(split.balance_pronouns))
        steps.run(f"selected/{name}", inputs, files[name], partial(_write, documents, files[name]))
    return {name: ("delimited", [str(path) for path in of_split]) for name, of_split in files.items()}


def _first(documents: Documents, limit: int) -> Documents:
    return lambda: islice(documents(), limit)


def _write(documents: Documents, paths: List[Path]) -> None:
    write_documents(documents(), paths)


def _small_vocabulary(splits: Dict[str, Inputs], settings: Dict[str, Any]) -> int:
    """Returns a vocabulary size for few documents."""
    lines = [[line for line in read_lines(path) if not is_boundary(line)] for path in splits["train"][1]]
    characters = [set("".join(side)) for side in lines]
    if settings.get("joint", True):
        return len(characters[0] | characters[1]) + SMOKE_SUBWORDS
    return max(map(len, characters)) + SMOKE_SUBWORDS


def _check_lines(dataset: DatasetConfig, test_set: str, paths: Dict[str, Path], prepared: Path, cut: bool) -> None:
    """Raises an error if files refer to lines of a delimited test set that the preparation changed.

    For other formats, line numbers are those of the prepared text.
    """
    split, files = dataset.splits.get(test_set), [*dataset.scores.line_files(test_set).values()]
    files += dataset.references(test_set)
    if not files or split is None or split.format != "delimited" or len(split.corpora) > 1:
        return
    native = paths[split.corpora[0][0]]
    line = first_difference(native, prepared, cut)
    if line is not None:
        message = (
            f"differs from line {line} of the prepared text {prepared}, so that {', '.join(files)} refers "
            "to other lines; remove repeated empty lines and sentences without visible characters"
        )
        raise InputError.at(native, line, message)


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
    """
    features = np.load(path, mmap_mode="r")
    if len(features) < sentences or (len(features) != sentences and not cut):
        raise InputError(
            f"{path}: features of {len(features)} sentences, but {sentences} were prepared: give one row per sentence "
            "pair in which no side is empty"
        )
    link = partial_path(target)
    link.unlink(missing_ok=True)
    if cut:
        content = io.BytesIO()
        np.save(content, features[:sentences])
        write_bytes(link, content.getvalue())
    else:
        link.symlink_to(path.absolute())
    os.replace(link, target)
