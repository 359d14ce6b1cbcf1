"""The model and the document that a report is about."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence

import torch

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.data.document_dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.loading import TextCodec, load
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask, takes_layout


@dataclass(frozen=True)
class Trained:
    """A checkpoint: the model in evaluation mode, and its task."""

    path: Path
    model: torch.nn.Module
    task: DocumentTranslationTask


def load_trained(path: Path, data: Path) -> Trained:
    """Returns the model of a checkpoint.

    Args:
        path: the checkpoint.
        data: the data-bin with its dictionaries, or the folder of ``docnmt prepare`` around it.

    Raises:
        InputError: a file is missing, or this is no checkpoint of task ``document_translation``.
    """
    loaded = load(str(path), data)
    (model,) = loaded.models
    if not isinstance(loaded.task, DocumentTranslationTask) or not takes_layout(model):
        name = f"{type(model).__name__} of task {type(loaded.task).__name__}"
        raise InputError(f"--path {path}: is a {name}; reports are of a document_transformer or document_rnn")
    return Trained(path, model, loaded.task)


def split_of(trained: Trained, split: str) -> DocumentDataset:
    """Returns a split of the data-bin.

    Raises:
        InputError: there is no such split.
    """
    try:
        trained.task.load_dataset(split)
    except FileNotFoundError as error:
        raise InputError(f"--split {split}: {error}") from error
    return trained.task.dataset(split)


def dataset_of(trained: Trained, lines: Sequence[str], name: str) -> DocumentDataset:
    """Returns delimited lines of tokens as documents, cut into pieces as the model had them in training."""
    task, dictionary = trained.task, trained.task.source_dictionary
    dataset = task.documents_in_memory([dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines])
    if not len(dataset):
        raise InputError(f"{name}: holds no sentence")
    dataset.name = name
    return dataset


def read_text(path: Path, codec: TextCodec) -> List[str]:
    """Returns delimited text, its sentences as the source tokens that the model knows, with spaces between."""
    lines = list(read_lines(path))
    encoded = iter(codec.encode(0, [line for line in lines if not is_mark(line)]))
    return [line if is_mark(line) else next(encoded) for line in lines]
