"""The documents that a report is about: of a data-bin, or of text in memory, as the model has them in training."""

from typing import Sequence

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import token_ids
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import takes_layout
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask


def check_model(ensemble: Ensemble) -> None:
    """Does nothing if a report can be about this model.

    Raises:
        InputError: it is none of task ``document_translation``, or translates each sentence by itself.
    """
    if not isinstance(ensemble.task, DocumentTranslationTask) or not takes_layout(ensemble.model):
        name = f"{type(ensemble.model).__name__} of task {type(ensemble.task).__name__}"
        raise InputError(
            f"--path {ensemble.paths[0]}: is a {name}; reports are of a document_transformer or document_rnn"
        )


def load_split(ensemble: Ensemble, split: str) -> DocumentDataset:
    """Loads a split of the data-bin.

    Raises:
        InputError: there is no such split.
    """
    ensemble.task.load_dataset(split)
    return ensemble.task.dataset(split)


def dataset_of_lines(ensemble: Ensemble, lines: Sequence[str], name: str) -> DocumentDataset:
    """Delimited lines of tokens as documents, cut into pieces as the model sees them.

    Args:
        ensemble: the model.
        lines: the text.
        name: of it, for messages.

    Raises:
        InputError: no sentence, or the model needs more than text.
    """
    dataset: DocumentDataset = ensemble.task.documents_in_memory(token_ids(lines, ensemble.dictionaries[0]))
    if not len(dataset):
        raise InputError(f"{name}: holds no sentence")
    dataset.name = name
    return dataset
