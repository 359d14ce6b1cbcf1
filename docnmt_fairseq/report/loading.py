"""The model and the document that a report is about."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence

import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, load_model_ensemble_and_task

import docnmt_fairseq
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.data.document_dataset import DocumentDataset
from docnmt_fairseq.data.open_document import LinesInMemory, index_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask, takes_layout


@dataclass(frozen=True)
class Trained:
    """A checkpoint: the model in evaluation mode, its task, the updates it was trained for (None: not said)."""

    path: Path
    model: torch.nn.Module
    task: DocumentTranslationTask
    updates: Optional[int]


def load(path: Path, data: Path) -> Trained:
    """Returns the model of a checkpoint.

    Args:
        path: the checkpoint.
        data: the data-bin with its dictionaries, or the folder of ``docnmt prepare`` around it.

    Raises:
        InputError: a file is missing, or this is no checkpoint of task ``document_translation``.
    """
    docnmt_fairseq.register()
    if not path.is_file():
        raise InputError(f"--path {path}: no such file")
    data_bin = data / "data-bin" if (data / "data-bin").is_dir() else data
    if not any(data_bin.glob("dict.*.txt")):
        raise InputError(f"--data {data}: holds no dict.*.txt; give a data-bin, or what docnmt prepare wrote")
    try:
        overrides = {"data": str(data_bin)}
        state = load_checkpoint_to_cpu(str(path), overrides)
        (model,), _, task = load_model_ensemble_and_task([str(path)], overrides, state=state)
    except InputError:
        raise
    except Exception as error:  # whatever a file that is none, or other dictionaries, happen to cause
        reason = str(error).strip().splitlines()[:1]
        raise InputError(f"--path {path}: cannot be loaded with --data {data}: {' '.join(reason)}") from error
    if not isinstance(task, DocumentTranslationTask) or not takes_layout(model):
        name = f"{type(model).__name__} of task {type(task).__name__}"
        raise InputError(f"--path {path}: is a {name}; only a document_transformer has context to show")
    history = state.get("optimizer_history") or [{}]
    return Trained(path, model.eval(), task, history[-1].get("num_updates"))


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
    encoded = LinesInMemory([dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines])
    index = index_of(encoded, task.paragraph_symbols()[0])
    if not len(index):
        raise InputError(f"{name}: holds no sentence")
    return DocumentDataset(
        encoded, None, index, dictionary.pad(), dictionary.eos(),
        max_sentences=task.view("max_document_sentences"), max_tokens=task.view("max_document_tokens"),
        overlap=(task.view("context_overlap"), task.view("context_overlap_after")),
        with_context=str(task.view("context")) == "document", name=name,
    )  # fmt: skip


class Subwords:
    """Sentences of plain text as the tokens that a model knows.

    Args:
        model: a SentencePiece model; None: tokens stand between spaces already.

    Raises:
        InputError: it is not one.
    """

    def __init__(self, model: Optional[Path]):
        self.processor = None if model is None else load_subword_model(model)

    def __call__(self, sentence: str) -> List[str]:
        """Returns the tokens of a sentence."""
        return sentence.split() if self.processor is None else self.processor.encode(sentence, out_type=str)


def read_text(path: Path, subwords: Subwords) -> List[str]:
    """Returns delimited text, its sentences as tokens with spaces between."""
    return [line if is_mark(line) else " ".join(subwords(line)) for line in read_lines(path)]
