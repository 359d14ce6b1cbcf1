"""Checkpoints of any of the tasks, loaded for translation of text that is in no data-bin."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import torch
from fairseq import utils
from fairseq.tasks import TASK_DATACLASS_REGISTRY, setup_task
from omegaconf import DictConfig, OmegaConf

from docnmt_fairseq.checkpoints import load_ensemble, read_checkpoint
from docnmt_fairseq.corpus.binarise import DATA_BIN
from docnmt_fairseq.corpus.config import MANIFEST
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.text_steps import TextSteps
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.tasks.documents import DocumentsTask

# The task that translates what a task trained: ours also serves fairseq's sentence-level models.
TASKS = {
    "translation": "document_translation",
    "document_translation": "document_translation",
    "concatenated_translation": "concatenated_translation",
}


@dataclass(frozen=True)
class DocumentView:
    """How a model is to see documents; None: as it was trained. See the options of ``document_translation``."""

    context: Optional[str] = None
    max_document_sentences: Optional[int] = None
    max_document_tokens: Optional[int] = None
    context_overlap: Optional[int] = None
    context_overlap_after: Optional[int] = None

    @property
    def given(self) -> Dict[str, object]:
        """What is not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def load(
    paths: Sequence[PathLike], data: Optional[PathLike], view: DocumentView
) -> Tuple[DocumentsTask, List[torch.nn.Module], TextSteps]:
    """Returns the task, the models of an ensemble, and the steps of their text.

    Args:
        paths: checkpoints.
        data: the folder that ``docnmt prepare`` wrote, or its data-bin; None: where it was in training.
        view: of documents.

    Raises:
        InputError: a file that is no checkpoint, one of another task, or one that does not fit the data.
    """
    state = read_checkpoint(paths[0])
    trained: DictConfig = state["cfg"].task
    folder = prepared_folder(data, trained)
    steps = TextSteps.of_output(folder)
    task = setup_task(_config(trained, folder / DATA_BIN, steps, view))
    models, _ = load_ensemble(paths, folder / DATA_BIN, task=task, first=state)
    return task, models, steps


def prepared_folder(data: Optional[PathLike], trained: DictConfig) -> Path:
    """Returns the output of ``docnmt prepare`` that belongs to a model.

    Args:
        data: that folder, or its data-bin; None: what the model was trained with.
        trained: the configuration of its task.

    Raises:
        InputError: None was given, and there is nothing where the model's data was.
    """
    given = Path(data if data is not None else utils.split_paths(trained.get("data") or ".")[0])
    for folder in (given, given.parent):
        if (folder / MANIFEST).is_file():
            return folder
    if data is None:
        raise InputError(f"--data: give the folder that docnmt prepare wrote; the model's is not at {given} any more")
    return given


def _config(trained: DictConfig, data_bin: Path, steps: TextSteps, view: DocumentView) -> DictConfig:
    """Returns the configuration of the task that translates.

    Raises:
        InputError: a task without documents, other languages, a view that the task does not have, no dictionary.
    """
    name = trained.get("_name")
    if name not in TASKS:
        raise InputError(f"--path: a model of the task {name}; this translates with those of {', '.join(TASKS)}")
    known = {field.name for field in fields(TASK_DATACLASS_REGISTRY[TASKS[name]])}
    settings = OmegaConf.to_container(trained, resolve=True, enum_to_str=True)
    settings = {option: value for option, value in settings.items() if option in known}
    languages = settings.get("source_lang"), settings.get("target_lang")
    if None not in languages and languages != steps.languages:
        raise InputError(f"--data {data_bin.parent}: is {'-'.join(steps.languages)}, the model {'-'.join(languages)}")
    if TASKS[name] != "document_translation" and view.given:
        options = " ".join(f"--{option.replace('_', '-')}" for option in view.given)
        raise InputError(f"{options}: not with a model of {name}, which reads windows of sentences")
    for language in steps.languages:
        if not (data_bin / f"dict.{language}.txt").is_file():
            raise InputError(f"--data {data_bin.parent}: lacks {DATA_BIN}/dict.{language}.txt")
    settings.update(view.given, _name=TASKS[name], data=str(data_bin), eval_bleu=False)
    settings.update(zip(("source_lang", "target_lang"), steps.languages))
    settings.setdefault("seed", 1)
    return OmegaConf.create(settings)
