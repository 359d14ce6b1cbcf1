"""Batches of delimited text in memory, collated by the task of the model, for selected lines."""

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
from fairseq import utils
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.data.chunking import Hidden, pack_batches, running_total
from docnmt_fairseq.data.concatenation import ConcatenationDataset
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.tasks.documents import DocumentsTask

Sample = Dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """Batch of sentences with their context, as collated by the task, without targets."""

    sample: Sample
    lines: List[int]  # line number of each row
    visible_targets: List[int]  # number of previous target sentences that the model sees, for each row


def batches_of(
    ensemble: Ensemble, text: List[Tensor], lines: Sequence[int], max_tokens: int, only_lines: bool = False
) -> Iterator[Batch]:
    """Yields batches in which each of ``lines`` is a row once; batches may have rows of other lines.

    Args:
        ensemble: models with their task; a sentence-level task gets single sentences.
        text: source tokens of delimited text.
        lines: line numbers of sentences.
        max_tokens: source tokens of a batch, context included.
        only_lines: no rows of other lines; these are context only.

    Raises:
        InputError: a sentence exceeds the length limit of the models.
    """
    lines = sorted(set(lines))
    longest = longest_sentences(ensemble)[0]
    long = next((number for number, tokens in enumerate(text) if len(tokens) > longest), None)
    if long is not None:
        raise InputError(f"line {long + 1} of the documents: {len(text[long])} tokens; the model's limit is {longest}")
    if not isinstance(ensemble.task, DocumentsTask):
        yield from _of_sentences(ensemble.task, text, lines, max_tokens)
        return
    dataset = ensemble.task.documents_in_memory(text)
    if isinstance(dataset, ConcatenationDataset):
        dataset.fit(*longest_sentences(ensemble))
        yield from _of_windows(dataset, lines, max_tokens)
    else:
        yield from _of_pieces(dataset, lines, max_tokens, only_lines)


def longest_sentences(ensemble: Ensemble) -> Tuple[int, int]:
    """Maximum numbers of source and target tokens of a sentence."""
    return utils.resolve_max_positions(
        ensemble.task.max_positions(), *(model.max_positions() for model in ensemble.models)
    )  # fmt: skip


def _of_sentences(task: FairseqTask, text: List[Tensor], lines: List[int], max_tokens: int) -> Iterator[Batch]:
    sentences = [text[line] for line in lines]
    sizes = np.array(list(map(len, sentences)))
    dataset = task.build_dataset_for_inference(sentences, sizes)
    for numbers in pack_batches(np.argsort(-sizes, kind="stable"), sizes[:, None], max_tokens, None):
        sample = dataset.collater([dataset[int(number)] for number in numbers])
        yield Batch(sample, [lines[row] for row in sample["id"].tolist()], [0] * len(numbers))


def _of_windows(dataset: ConcatenationDataset, lines: List[int], max_tokens: int) -> Iterator[Batch]:
    numbers = np.searchsorted(dataset.index.items, lines)
    sizes = dataset.src_sizes[:, None]
    visible_targets = np.minimum(dataset.src.counts, dataset.sentences[1] - 1)
    for batch in pack_batches(numbers[np.argsort(-sizes[numbers, 0], kind="stable")], sizes, max_tokens, None):
        sample = dataset.collater([dataset[int(number)] for number in batch])
        rows = sample["id"].tolist()
        yield Batch(sample, rows, visible_targets[np.searchsorted(dataset.index.items, rows)].tolist())


def _of_pieces(dataset: DocumentDataset, lines: List[int], max_tokens: int, only_lines: bool) -> Iterator[Batch]:
    wanted = np.isin(dataset.index.items, lines)
    total, pieces = running_total(wanted), dataset.chunks
    numbers = np.flatnonzero(total[pieces.end] > total[pieces.start])
    for batch in dataset.batch_by_size(numbers, max_tokens=max_tokens):
        samples: List[Sample] = [dataset[int(number)] for number in batch]
        for sample in samples if only_lines else ():
            kept = np.isin(sample["ids"], lines)
            decoded = sample["decoded"].copy()
            decoded[np.flatnonzero(decoded)[~kept]] = False
            sample.update(decoded=decoded, ids=sample["ids"][kept])
        collated: Sample = dataset.collater(samples)
        # As in training, target sentences before a piece are not visible.
        visible_targets = [
            0 if one["hidden"] is Hidden.ALL else place for one in samples for place in range(len(one["ids"]))
        ]
        yield Batch(collated, collated["id"].tolist(), visible_targets)
