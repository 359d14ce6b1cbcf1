"""Extra sources of sentences: specifications of ``--extra-sources``, dictionaries, widths, lines of a split."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import ConcatDataset, Dictionary
from torch import Tensor

from docnmt_fairseq.batch.context_sentences import CONTEXT_SELECTIONS
from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.data.index import Lines, Marks, check_parallel
from docnmt_fairseq.data.loading import load_required_side
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from docnmt_fairseq.data.features import FeatureFile

NONE = "none"
OPTION = "--extra-sources"
FORMS = "previous[:N], next[:N], random[:N], random-each-epoch[:N], similar[:N], training-set[:N]"
FORMS += ", text:SUFFIX, features:NAME"


@dataclass(frozen=True)
class SourceSpec:
    """Specification of one extra source.

    Attributes:
        kind: selection of context sentences, ``text`` or ``features``.
        name: name of the text or the features.
        contexts: number of context sentences, 0 for text and features.
    """

    kind: str
    name: str = ""
    contexts: int = 0

    @property
    def of_document(self) -> bool:
        """True for context sentences, which are taken from the document."""
        return self.kind in CONTEXT_SELECTIONS

    def __str__(self) -> str:
        return f"{self.kind}:{self.contexts if self.of_document else self.name}"


def parse_specs(text: Optional[str]) -> List[SourceSpec]:
    """Parses the value of ``--extra-sources``; None and "none" are no sources."""
    if text in (None, "", NONE):
        return []
    return [_parse(part.strip()) for part in text.split(",")]


def _parse(part: str) -> SourceSpec:
    kind, _, argument = part.partition(":")
    if kind in CONTEXT_SELECTIONS and (not argument or (argument.isdecimal() and int(argument) > 0)):
        return SourceSpec(kind, contexts=int(argument or 1))
    if kind not in ("text", "features") or not argument:
        raise InputError(f"{OPTION} {part}: must be one of {FORMS}; N at least 1")
    return SourceSpec(kind, argument)


@dataclass(frozen=True)
class ExtraSourceInput:
    """Input of a model from one extra source.

    Attributes:
        spec: specification.
        dictionary: dictionary of a text; None for features.
        width: width of features, d_f; 0 for a text.
    """

    spec: SourceSpec
    dictionary: Optional[Dictionary] = None
    width: int = 0


class ExtraSourceData:
    """Extra sources in a task's data-bins, the first of which has the dictionaries."""

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
        self.widths: Dict[str, Tuple[int, str]] = {}  # width of features by name, and the file it was found in

    def inputs(self, specs: Sequence[SourceSpec], widths: Sequence[int], split: str) -> List[ExtraSourceInput]:
        """Returns the inputs of a model.

        Args:
            specs: specifications.
            widths: widths of features known from training; empty: those of the data.
            split: split whose features determine the widths.

        Raises:
            InputError: missing features.
        """
        known, found = iter(widths), []
        for spec in specs:
            if spec.kind == "features":
                if widths:
                    self.widths.setdefault(spec.name, (next(known), "the model"))
                else:
                    for data_bin in dict.fromkeys(self.data_bins):  # before training reads them
                        self._feature_file(spec.name, data_bin, split)
                found.append(ExtraSourceInput(spec, width=self.widths[spec.name][0]))
            else:
                text = spec.kind == "text"
                found.append(ExtraSourceInput(spec, self.dictionary(spec.name) if text else self.source_dictionary))
        return found

    def dictionary(self, suffix: str) -> Dictionary:
        """Returns the dictionary of a text."""
        if suffix not in self.dictionaries:
            self.dictionaries[suffix] = self.load_dictionary(str(self.data_bins[0] / f"dict.{suffix}.txt"))
        return self.dictionaries[suffix]

    def lines(
        self, specs: Sequence[SourceSpec], data_bin: Path, split: str, source: Lines, upsample: int
    ) -> List[Optional[Lines]]:
        """Returns the indexed dataset of every extra source; None for those taken from the document.

        Args:
            specs: specifications.
            data_bin, split: place of the data.
            source: dataset of the source side; train, train1, … may be combined.
            upsample: repetitions of the first of several files.

        Raises:
            InputError: a missing file, or boundaries that differ from those of the source side.
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
        dataset = load_required_side(data_bin, split, self.languages, suffix, dictionary, self.dataset_impl)
        name = str(data_bin / f"{split}.{'-'.join(self.languages)}.{suffix}")
        check_parallel(marks, Marks.read(dataset, paragraph_symbol(dictionary)), name, suffix)
        return dataset

    def _feature_file(self, name: str, data_bin: Path, split: str) -> "FeatureFile":
        """Returns the features of a split; raises :class:`InputError` if their width differs from that of others."""
        from docnmt_fairseq.data.features import find_features

        file = find_features(data_bin, split, name)
        width, where = self.widths.setdefault(name, (file.width, str(file.path)))
        if file.width != width:
            raise InputError(f"{file.path}: expected features of width {width}, as {where} has, found {file.width}")
        return file

    def _features(self, name: str, data_bin: Path, split: str, marks: Marks) -> Lines:
        from docnmt_fairseq.data.features import FeatureLines

        return FeatureLines(self._feature_file(name, data_bin, split), marks)


@dataclass(frozen=True)
class ExtraSourceBatch:
    """Items of all decoded sentences of a batch.

    Attributes:
        values: [M] token ids, or [M, d_f] features.
        lengths: [S] number of items of each sentence; features may have none.
    """

    values: Tensor
    lengths: np.ndarray

    @classmethod
    def join(cls, of_sentences: List[Tensor]) -> "ExtraSourceBatch":
        """Concatenates the items of sentences."""
        return cls(torch.cat(of_sentences), np.array([len(items) for items in of_sentences]))

    def to(self, device: torch.device) -> "ExtraSourceBatch":
        """Returns a copy on a device."""
        return replace(self, values=self.values.to(device, non_blocking=True))

    def pin_memory(self) -> "ExtraSourceBatch":
        """Returns a copy in page-locked memory; called by data loaders."""
        return replace(self, values=self.values.pin_memory())


def lengths_of(extra_sources: Sequence[Optional[ExtraSourceBatch]]) -> Optional[Tuple[np.ndarray, ...]]:
    """Returns the number of items of each sentence per source, empty for sources taken from the document."""
    if not extra_sources:
        return None
    return tuple(np.zeros(0, dtype=np.int64) if source is None else source.lengths for source in extra_sources)
