"""The data of extra sources: dictionaries, widths, and the lines of a split."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import ConcatDataset, Dictionary
from torch import Tensor

from docnmt_fairseq.boundaries import PARAGRAPH, paragraph_symbol
from docnmt_fairseq.data.extra_source_specs import OPTION, SourceSpec
from docnmt_fairseq.data.features import FeatureLines, find_features, same_width
from docnmt_fairseq.data.index import Lines, Marks, check_parallel
from docnmt_fairseq.data.integrity import load_side
from docnmt_fairseq.errors import InputError


@dataclass(frozen=True)
class ExtraSourceInput:
    """What a model must know of one extra source.

    Attributes:
        spec: the source.
        dictionary: of a text; None of features.
        width: of features, d_f; 0 of a text.
    """

    spec: SourceSpec
    dictionary: Optional[Dictionary] = None
    width: int = 0


class ExtraSourceData:
    """The extra sources of a task's data-bins.

    Args:
        data_bins: of training; dictionaries are in the first.
        languages: source and target, as in the names of its files.
        dictionary: of the source.
        load_dictionary: from a file.
        dataset_impl: fairseq's option.
    """

    def __init__(
        self,
        data_bins: Sequence[Path],
        languages: Tuple[str, str],
        dictionary: Dictionary,
        load_dictionary: Callable[[str], Dictionary],
        dataset_impl: Optional[str],
    ):
        self.data_bins, self.languages, self.source_dictionary = data_bins, languages, dictionary
        self.load_dictionary, self.dataset_impl = load_dictionary, dataset_impl
        self.dictionaries: Dict[str, Dictionary] = {}
        self.widths: Dict[str, Tuple[int, str]] = {}  # of features, and where they were found

    def inputs(self, specs: Sequence[SourceSpec], widths: Sequence[int], split: str) -> List[ExtraSourceInput]:
        """What a model must know of its extra sources.

        Args:
            specs: the sources.
            widths: of those that are features, where they are known from training; else what the data has.
            split: where features are looked for.

        Raises:
            InputError: no dictionary; no features, or the same ones of several data-bins.
        """
        known, found = iter(widths), []
        for spec in specs:
            if spec.kind == "features":
                if widths:
                    self.widths.setdefault(spec.name, (next(known), "the model"))
                else:
                    self._find_all(spec.name, split)
                found.append(ExtraSourceInput(spec, width=self.widths[spec.name][0]))
            else:
                text = spec.kind == "text"
                found.append(ExtraSourceInput(spec, self.dictionary(spec.name) if text else self.source_dictionary))
        return found

    def dictionary(self, suffix: str) -> Dictionary:
        """The dictionary of a text.

        Raises:
            InputError: there is none, or it lacks ``<p>``, which the source's has.
        """
        if suffix not in self.dictionaries:
            path = self.data_bins[0] / f"dict.{suffix}.txt"
            if not path.is_file():
                raise InputError(
                    f"{OPTION} text:{suffix}: {path}: no such file; docnmt prepare --extra {suffix} makes it"
                )
            try:
                found = self.load_dictionary(str(path))
            except (ValueError, RuntimeError) as error:  # fairseq's, without the file's name
                raise InputError(f"{path}: no dictionary ({str(error).strip()})") from error
            if PARAGRAPH in self.source_dictionary and PARAGRAPH not in found:
                raise InputError(f"{path} lacks {PARAGRAPH}, which the source's dictionary has; both need it")
            self.dictionaries[suffix] = found
        return self.dictionaries[suffix]

    def lines(
        self, specs: Sequence[SourceSpec], data_bin: Path, split: str, source: Lines, upsample: int
    ) -> List[Optional[Lines]]:
        """The indexed dataset of every extra source; None for those that the document holds.

        Args:
            specs: the sources.
            data_bin: of the split.
            split: its name.
            source: its dataset of the source side, perhaps combined of train, train1, ….
            upsample: how often the first of several files is taken.

        Raises:
            InputError: a missing file, or one that does not fit the source side.
        """
        if all(spec.of_document for spec in specs):
            return [None for _ in specs]
        parts = getattr(source, "datasets", [source])
        names = [f"{split}{number or ''}" for number in range(len(parts))]
        marks = [Marks.read(part, paragraph_symbol(self.source_dictionary)) for part in parts]
        found: List[Optional[Lines]] = []
        for spec in specs:
            if spec.of_document:
                found.append(None)
                continue
            read: Callable[[str, Path, str, Marks], Lines] = self._text if spec.kind == "text" else self._features
            of_parts = [read(spec.name, data_bin, name, of_part) for name, of_part in zip(names, marks)]
            ratios = [upsample, *[1] * (len(parts) - 1)]
            found.append(of_parts[0] if len(of_parts) == 1 else ConcatDataset(of_parts, ratios))
        return found

    def _text(self, suffix: str, data_bin: Path, split: str, marks: Marks) -> Lines:
        dictionary = self.dictionary(suffix)
        dataset = load_side(data_bin, split, self.languages, suffix, dictionary, self.dataset_impl)
        prefix = data_bin / f"{split}.{'-'.join(self.languages)}.{suffix}"
        if dataset is None:
            raise InputError(f"{OPTION} text:{suffix}: {prefix}.{{bin,idx}}: no such files")
        check_parallel(marks, Marks.read(dataset, paragraph_symbol(dictionary)), str(prefix), suffix)
        return dataset

    def _find_all(self, name: str, split: str) -> None:
        """Checks the features of every data-bin, before training comes to it."""
        owners: Dict[Path, Path] = {}
        for data_bin in dict.fromkeys(self.data_bins):
            file = find_features(data_bin, split, name)
            same_width(self.widths, name, file)
            owner = owners.setdefault(file.path, data_bin)
            if owner != data_bin:
                raise InputError(
                    f"{OPTION} features:{name}: {file.path} would be of {owner} and of {data_bin}; put the features of "
                    "each into it"
                )

    def _features(self, name: str, data_bin: Path, split: str, marks: Marks) -> FeatureLines:
        file = find_features(data_bin, split, name)
        same_width(self.widths, name, file)
        return FeatureLines(file, marks)


@dataclass(frozen=True)
class ExtraSourceBatch:
    """The items of every decoded sentence, one sentence after another.

    Attributes:
        values: [M] token ids, or [M, d_f] features.
        lengths: [S] how many of them are each sentence's; features may have none.
    """

    values: Tensor
    lengths: np.ndarray

    @classmethod
    def join(cls, of_sentences: List[Tensor]) -> "ExtraSourceBatch":
        """The source of a batch from the items of each sentence."""
        return cls(torch.cat(of_sentences), np.array([len(items) for items in of_sentences]))

    def to(self, device: torch.device) -> "ExtraSourceBatch":
        """The same with its tensor on ``device``."""
        return replace(self, values=self.values.to(device, non_blocking=True))

    def pin_memory(self) -> "ExtraSourceBatch":
        """The same in page-locked memory; data loaders call it where there is a GPU."""
        return replace(self, values=self.values.pin_memory())


def lengths_of(extra_sources: Sequence[Optional[ExtraSourceBatch]]) -> Optional[Tuple[np.ndarray, ...]]:
    """How many items each sentence has of every source, as a layout has them; none of what the document holds."""
    if not extra_sources:
        return None
    return tuple(np.zeros(0, dtype=np.int64) if source is None else source.lengths for source in extra_sources)
