"""Loading of checkpoints for translation of text: their models, a task that knows documents, their precision."""

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any, List, Mapping, Optional, Tuple

import torch
from fairseq.tasks import TASK_DATACLASS_REGISTRY, setup_task
from omegaconf import DictConfig, OmegaConf

from docnmt_fairseq.checkpoints import (
    Ensemble,
    data_of_training,
    leave_view_to_models,
    load_ensemble,
    read_checkpoint,
    read_configuration,
)
from docnmt_fairseq.corpus.data_bin import DATA_BIN
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.corpus.prepared import prepared_folder
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike
from docnmt_fairseq.layers.packed_linear import BF16, FLOAT32, INT8, available
from docnmt_fairseq.native import cpu
from docnmt_fairseq.translate.view import DOCUMENT_TASK, DocumentView

logger = logging.getLogger(__name__)

# Task that translates the models of a training task; ours also serves fairseq's sentence-level models.
TASKS = {
    "translation": DOCUMENT_TASK,
    DOCUMENT_TASK: DOCUMENT_TASK,
    "concatenated_translation": "concatenated_translation",
}
SINGLE_SENTENCES = {"concatenate_source": 1, "concatenate_target": 1}  # windows without context

# Precisions of all states on GPUs; on CPUs, precisions are those of matrix products.
ON_GPU = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_translating(
    *paths: PathLike, data: Optional[PathLike] = None, view: DocumentView = DocumentView()
) -> Tuple[Ensemble, TextCodec]:
    """Loads checkpoints to translate text, which is prepared like their training data.

    Args:
        paths: checkpoint files.
        data: output of ``docnmt prepare``, or its data-bin; None: that of the training.
        view: view of documents.

    Raises:
        InputError: a file is not a checkpoint, or does not fit the task or the data.
    """
    first = read_checkpoint(paths[0])
    folder = _prepared(first, data)
    codec = TextCodec.of_output(folder)
    codec.load()
    leave_view_to_models(first)
    task = setup_task(_task_config(first["cfg"].task, folder, codec.languages, view))
    return load_ensemble(*paths, data=folder, task=task, first=first), codec


def load_viewing(*paths: PathLike, data: PathLike, view: DocumentView = DocumentView()) -> Ensemble:
    """Loads checkpoints with their own task, to analyse them on documents.

    Args:
        paths: checkpoint files.
        data: data-bin with the dictionaries, or the output of ``docnmt prepare`` around it.
        view: view of documents.

    Raises:
        InputError: a file is not a checkpoint, or does not fit the data.
    """
    return load_ensemble(*paths, data=data, overrides=view.given)


def languages_of(path: PathLike, data: Optional[PathLike] = None) -> Tuple[str, str]:
    """Returns source and target language of a checkpoint, which is read only if ``data`` is not given."""
    folder = _prepared(read_checkpoint(path), None) if data is None else prepared_folder(Path(data))
    return TextCodec.of_output(folder).languages


def is_sentence_level(path: PathLike, context: Optional[str] = None) -> bool:
    """Returns whether sentences are translated independently, with a context of the view or that of the training."""
    trained = read_configuration(path).task if context is None else {}
    return "none" in (context, trained.get("context")) or trained.get("_name") == "translation"


def _prepared(checkpoint: Mapping[str, Any], data: Optional[PathLike]) -> Path:
    """Returns the given output of ``docnmt prepare``, or that of a checkpoint's training."""
    return prepared_folder(data_of_training(checkpoint) if data is None else Path(data))


def _task_config(trained: DictConfig, folder: Path, languages: Tuple[str, str], view: DocumentView) -> DictConfig:
    """Returns the configuration of the task that translates."""
    trained_name = trained.get("_name")
    if trained_name not in TASKS:
        raise InputError(f"--path: a model of the task {trained_name}; supported are those of {', '.join(TASKS)}")
    name = TASKS[trained_name]
    known = {field.name for field in fields(TASK_DATACLASS_REGISTRY[name])}
    of_training: Any = OmegaConf.to_container(trained, resolve=True, enum_to_str=True)
    settings = {option: value for option, value in of_training.items() if option in known}
    of_model: List[Optional[str]] = [settings.get("source_lang"), settings.get("target_lang")]
    if None not in of_model and of_model != list(languages):
        raise InputError(f"--data {folder}: is {'-'.join(languages)}, the model {'-'.join(map(str, of_model))}")
    if name == DOCUMENT_TASK:
        settings.update(view.given)
    elif view.context == "none":
        settings.update(SINGLE_SENTENCES)
    settings.update(zip(("source_lang", "target_lang"), languages))
    settings.update(_name=name, data=str(folder / DATA_BIN), eval_bleu=False)
    settings.setdefault("seed", 1)
    return OmegaConf.create(settings)


def precision_of(given: Optional[str], cuda: bool) -> str:
    """Returns the precision of a translation, float32 if none is given.

    Raises:
        InputError: the device does not support it.
    """
    precision = given or FLOAT32
    supported = ON_GPU if cuda else [FLOAT32, *filter(available, (BF16, INT8))]
    if precision not in supported:
        raise InputError(f"--precision {precision}: this {'GPU' if cuda else 'CPU'} supports {', '.join(supported)}")
    if not cuda and precision == BF16 and not cpu.capabilities().bf16:
        logger.warning("--precision bf16: no bfloat16 products on this CPU; rounded weights are multiplied in float32")
    return precision
