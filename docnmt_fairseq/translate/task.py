"""The task that translates text that is in no data-bin, with what any of the tasks trained."""

from dataclasses import fields
from pathlib import Path
from typing import Any, List, Mapping, Optional, Tuple

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
from docnmt_fairseq.corpus.binarise import DATA_BIN
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.prepared import is_prepared, prepared_folder
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.view import DIVIDES, DocumentView

# The task that translates what a task trained: ours also serves fairseq's sentence-level models.
TASKS = {
    "translation": "document_translation",
    "document_translation": "document_translation",
    "concatenated_translation": "concatenated_translation",
}
ALONE = {"concatenate_source": 1, "concatenate_target": 1}  # a window without context


def load_translating(
    *paths: PathLike, data: Optional[PathLike] = None, view: DocumentView = DocumentView()
) -> Tuple[Ensemble, TextCodec]:
    """Loads the models of some checkpoints, to translate text as their own was prepared.

    Args:
        paths: the checkpoints.
        data: the folder that ``docnmt prepare`` wrote, or its data-bin; None: where it was in training.
        view: of documents.

    Raises:
        InputError: a file that is no checkpoint, one of another task, or one that does not fit the data.
    """
    first = read_checkpoint(paths[0])
    folder = _prepared(first, data)
    codec = TextCodec.of_output(folder)
    codec.load()
    leave_view_to_models(first)
    task = setup_task(_task_config(first["cfg"].task, folder, codec.languages, view))
    return load_ensemble(*paths, data=folder, task=task, first=first), codec


def load_viewing(*paths: PathLike, data: PathLike, view: DocumentView = DocumentView()) -> Ensemble:
    """Loads the models of some checkpoints with the task that they were trained for, to be asked about documents.

    Args:
        paths: the checkpoints.
        data: the data-bin with the dictionaries, or the folder of ``docnmt prepare`` around it.
        view: of documents.

    Raises:
        InputError: a file that is no checkpoint, one that does not fit the data, a view that the task does not have.
    """
    for path in paths if view.given else ():
        view.check(read_configuration(path).task.get("_name"))
    return load_ensemble(*paths, data=data, overrides=view.given)


def languages_of(path: PathLike, data: Optional[PathLike] = None) -> Tuple[str, str]:
    """The languages that the model of a checkpoint translates from and to.

    Args:
        path: the checkpoint; it is read only where ``data`` is not given.
        data: as of :func:`load_translating`.

    Raises:
        InputError: a file that is no checkpoint, a folder that ``docnmt prepare`` did not write.
    """
    folder = _prepared(read_checkpoint(path), None) if data is None else prepared_folder(Path(data))
    return TextCodec.of_output(folder).languages


def translates_alone(path: PathLike, context: Optional[str] = None) -> bool:
    """Whether sentences are translated each by itself.

    Args:
        path: the checkpoint.
        context: of the view of documents; None: as the model was trained.

    Raises:
        InputError: a file that is no checkpoint.
    """
    trained = read_configuration(path).task if context is None else {}
    return "none" in (context, trained.get("context")) or trained.get("_name") == "translation"


def _prepared(checkpoint: Mapping[str, Any], data: Optional[PathLike]) -> Path:
    """The output of ``docnmt prepare`` that is named, or that of a checkpoint's training.

    Raises:
        InputError: that of the training is not there any more.
    """
    given = data_of_training(checkpoint) if data is None else Path(data)
    folder = prepared_folder(given)
    if data is None and not is_prepared(folder):
        raise InputError(f"--data: give the folder that docnmt prepare wrote; the model's is not at {given} any more")
    return folder


def _task_config(trained: DictConfig, folder: Path, languages: Tuple[str, str], view: DocumentView) -> DictConfig:
    """The configuration of the task that translates.

    Raises:
        InputError: a task without documents, other languages, a view that the task does not have, no dictionary.
    """
    name = trained.get("_name")
    if name not in TASKS:
        raise InputError(f"--path: a model of the task {name}; this translates with those of {', '.join(TASKS)}")
    known = {field.name for field in fields(TASK_DATACLASS_REGISTRY[TASKS[name]])}
    of_training: Any = OmegaConf.to_container(trained, resolve=True, enum_to_str=True)
    settings = {option: value for option, value in of_training.items() if option in known}
    of_model: List[Optional[str]] = [settings.get("source_lang"), settings.get("target_lang")]
    if None not in of_model and of_model != list(languages):
        raise InputError(f"--data {folder}: is {'-'.join(languages)}, the model {'-'.join(map(str, of_model))}")
    for language in languages:
        if not (folder / DATA_BIN / f"dict.{language}.txt").is_file():
            raise InputError(f"--data {folder}: lacks {DATA_BIN}/dict.{language}.txt")
    settings.update(_as_options(view, name), _name=TASKS[name], data=str(folder / DATA_BIN), eval_bleu=False)
    settings.update(zip(("source_lang", "target_lang"), languages))
    settings.setdefault("seed", 1)
    return OmegaConf.create(settings)


def _as_options(view: DocumentView, name: str) -> Mapping[str, object]:
    """A view in the options of the task that translates what a task trained.

    Raises:
        InputError: it divides documents, of which a window has no pieces.
    """
    view.check(TASKS[name])
    if TASKS[name] == DIVIDES:
        return view.given
    return ALONE if view.context == "none" else {}
