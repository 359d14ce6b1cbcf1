"""Safe loading of checkpoints, of fairseq's models and of ours."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, BaseFairseqModel
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf import DictConfig, OmegaConf, open_dict
from tqdm import tqdm
from tqdm.utils import CallbackIOWrapper

import docnmt_fairseq
from docnmt_fairseq.corpus.prepared import data_bin, prepared_folder
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import PathLike, atomic_path
from docnmt_fairseq.layers.lora import merge_lora


@dataclass(frozen=True)
class Ensemble:
    """Trained models that translate together, one or several.

    Attributes:
        task: task of the models.
        models: models in evaluation mode.
        data: folder that ``docnmt prepare`` wrote, or a data-bin outside of such a folder.
        paths: checkpoints of the models.
    """

    task: FairseqTask
    models: List[BaseFairseqModel]
    data: Path = Path(".")
    paths: Sequence[Path] = ()

    @property
    def model(self) -> BaseFairseqModel:
        """The model of an ensemble of one."""
        (model,) = self.models
        return model

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.task.cfg.source_lang, self.task.cfg.target_lang

    @property
    def dictionaries(self) -> Tuple[Dictionary, Dictionary]:
        """Source and target dictionary."""
        return self.task.source_dictionary, self.task.target_dictionary


def load_ensemble(
    *paths: PathLike,
    data: PathLike,
    overrides: Optional[Mapping[str, object]] = None,
    task: Optional[FairseqTask] = None,
    first: Optional[Dict[str, Any]] = None,
) -> Ensemble:
    """Loads the models of checkpoints on the CPU, and their task.

    Args:
        paths: checkpoints.
        data: data-bin with the dictionaries, or the folder of ``docnmt prepare`` around it.
        overrides: changes to the configuration in the checkpoints, such as ``{"context": "none"}``.
        task: task for the models; None: the one of their training.
        first: result of :func:`read_checkpoint` for the first checkpoint, which ``overrides`` do not change.

    Raises:
        InputError: a file is missing or not a checkpoint, or the models do not fit the data.
    """
    folder = data_bin(Path(data))
    overrides = {"data": str(folder), **(overrides or {})}
    models: List[BaseFairseqModel] = []
    for path in paths:
        state = first if first is not None and not models else read_checkpoint(path, overrides)
        if task is None:
            leave_view_to_models(state, overrides)
        model, task = _build(path, state, folder, task)
        merge_lora(model)
        models.append(model.eval())
    return Ensemble(task, models, prepared_folder(Path(data)), [Path(path) for path in paths])


def _build(
    path: PathLike, state: Dict[str, Any], folder: Path, task: Optional[FairseqTask]
) -> Tuple[BaseFairseqModel, FairseqTask]:
    cfg = state["cfg"]
    name = getattr(cfg.model, "_name", None) or getattr(cfg.model, "arch", None)
    if name not in (*ARCH_MODEL_REGISTRY, *MODEL_DATACLASS_REGISTRY):  # fairseq's message fails
        raise InputError(f"--path {path}: unknown architecture {name}; give --user-dir as in its training")
    try:
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], task=task, state=state)
    except (RuntimeError, OSError, AssertionError) as error:
        detail = " ".join(str(error).split("\n")[:2])  # the second line names the parameter of another shape
        raise InputError(f"--path {path}: does not fit --data {folder}: {shorten(detail, 300)}") from error
    return model, task


def read_checkpoint(path: PathLike, overrides: Optional[Mapping[str, object]] = None) -> Dict[str, Any]:
    """Reads a checkpoint: configuration, parameters, states of task and training.

    Args:
        path: checkpoint.
        overrides: changes to its configuration.

    Raises:
        InputError: the file is missing, not a checkpoint, or cannot be loaded safely.
    """
    docnmt_fairseq.register()
    try:
        state: Dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path), overrides)
        state["cfg"].task  # noqa: B018  (missing in files that are not checkpoints of a model)
    except Exception as error:  # other files cause various errors
        raise InputError(f"--path {path}: cannot be loaded safely as a checkpoint: {first_line(error)}") from None
    return state


def leave_view_to_models(checkpoint: Mapping[str, Any], given: Iterable[str] = ()) -> None:
    """Removes the view of documents from the configuration of a checkpoint's task, since the model stores it too.

    A task takes options in its configuration as the user's choice for all models of an ensemble.

    Args:
        checkpoint: result of :func:`read_checkpoint`; its configuration is changed.
        given: options that the user chose.
    """
    cfg = checkpoint["cfg"]
    view = getattr(TASK_REGISTRY.get(cfg.task.get("_name")), "view_defaults", {})
    state = checkpoint.get("task_state") or {}
    stored = {name for name in view if name in state or getattr(cfg.model, name, None) is not None}
    with open_dict(cfg.task):
        for name in stored & set(cfg.task) - set(given):
            cfg.task[name] = None


def read_configuration(path: PathLike) -> DictConfig:
    """Reads the configuration in a checkpoint without its tensors, if the format allows that.

    Raises:
        InputError: see :func:`read_checkpoint`.
    """
    docnmt_fairseq.register()
    try:
        state: Dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # an old format, or not a checkpoint
        return read_checkpoint(path)["cfg"]
    if state.get("cfg") is not None:
        return OmegaConf.create(state["cfg"], flags={"allow_objects": True})
    return convert_namespace_to_omegaconf(state["args"])


def data_of_training(checkpoint: Mapping[str, Any]) -> Path:
    """Data-bin that the model of a checkpoint was trained with; it may not exist any more."""
    return Path(utils.split_paths(checkpoint["cfg"].task.get("data") or ".")[0])


def write_checkpoint(state: Mapping[str, Any], path: PathLike) -> None:
    """Writes a checkpoint atomically, with a progress bar on terminals.

    The same content gives the same bytes; ``torch.save`` would also store the name of the file.

    Raises:
        InputError: it cannot be written.
    """
    storages = {value.untyped_storage().data_ptr(): value.untyped_storage() for value in state["model"].values()}
    size = sum(storage.nbytes() for storage in storages.values())
    bar = tqdm(total=size, desc=f"write {Path(path).name}", unit="B", unit_scale=True, disable=None)
    with bar, atomic_path(path) as partial, open(partial, "wb") as stream:
        torch.save(state, CallbackIOWrapper(lambda written: bar.update(min(written, size - bar.n)), stream, "write"))
