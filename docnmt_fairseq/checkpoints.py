"""Checkpoints of fairseq's models and of ours, loaded safely; one clear error where that cannot be."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, BaseFairseqModel
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf import DictConfig, OmegaConf, open_dict

import docnmt_fairseq
from docnmt_fairseq import compat
from docnmt_fairseq.checkpoint_files import NO_CHECKPOINT
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.prepared import data_bin, prepared_folder
from docnmt_fairseq.errors import InputError, first_line, misfit
from docnmt_fairseq.exported import Exported
from docnmt_fairseq.expressions import NoPlainValue
from docnmt_fairseq.layers.lora import merge_lora


@dataclass(frozen=True)
class Ensemble:
    """Trained models, one or several that work together, with what belongs to them.

    Attributes:
        task: that they serve.
        models: in evaluation mode.
        data: the folder that ``docnmt prepare`` wrote, or a data-bin that is in none.
        paths: of their checkpoints.
        rounded_to: the precision that weights were rounded to when they were exported; None: they were not.
    """

    task: FairseqTask
    models: List[BaseFairseqModel]
    data: Path = Path(".")
    paths: Sequence[Path] = ()
    rounded_to: Optional[str] = None

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
        """Dictionaries of source and target."""
        return self.task.source_dictionary, self.task.target_dictionary


def load_ensemble(
    *paths: PathLike,
    data: PathLike,
    overrides: Optional[Mapping[str, object]] = None,
    task: Optional[FairseqTask] = None,
    first: Optional[Dict[str, Any]] = None,
) -> Ensemble:
    """Loads the models of some checkpoints on the CPU, whatever models they are, and their task.

    Args:
        paths: the checkpoints.
        data: the data-bin with the dictionaries, or the folder of ``docnmt prepare`` around it.
        overrides: of the configuration, instead of what the checkpoints say, such as ``{"context": "none"}``.
        task: the task that the models are to serve; None: the one they were trained for.
        first: what :func:`read_checkpoint` found in the first, if it was read already; ``overrides`` change nothing
            in it.

    Raises:
        InputError: no such file, one that is no checkpoint, or models that do not fit the data.
    """
    folder = data_bin(Path(data))
    overrides = {"data": str(folder), **(overrides or {})}
    for path in paths:
        check_file(path)
    models: List[BaseFairseqModel] = []
    rounded_to: List[Optional[str]] = []
    for path in paths:
        state = first if first is not None and not models else read_checkpoint(path, overrides)
        if task is None:
            leave_view_to_models(state, overrides)
        exported = Exported.of(state)
        rounded_to.append(None if exported is None else exported.rounded_to)
        model, task = _build(path, state, folder, task)
        merge_lora(model)  # nobody trains a model that is loaded here
        models.append(model.eval())
    return Ensemble(
        task, models, prepared_folder(Path(data)), [Path(path) for path in paths], _common(paths, rounded_to)
    )


def _common(paths: Sequence[PathLike], rounded_to: Sequence[Optional[str]]) -> Optional[str]:
    """What the weights of all members of an ensemble were rounded to.

    Raises:
        InputError: they differ.
    """
    first, *others = rounded_to
    for path, other in zip(paths[1:], others):
        if other != first:
            told = [f"is exported in {precision or 'float32'}" for precision in (first, other)]
            raise InputError(f"--path: {paths[0]} {told[0]}, {path} {told[1]}; give members of one kind")
    return first


def _build(
    path: PathLike, state: Dict[str, Any], folder: Path, task: Optional[FairseqTask]
) -> Tuple[BaseFairseqModel, FairseqTask]:
    _check_registered(path, state["cfg"])
    try:
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], task=task, state=state)
    except NoPlainValue as error:
        raise InputError(f"--path {path}: {error}") from None
    except InputError as error:
        user_dir = state["cfg"].common.user_dir
        if not user_dir or Path(user_dir).name in sys.modules:  # the name that fairseq imports it under
            raise
        raise InputError(f"--path {path}: {error}; or {_other_package(user_dir)}") from None
    except RuntimeError as error:  # PyTorch's, for parameters of another shape
        raise InputError(
            f"--path {path}: does not fit the dictionaries of {folder}; give the --data of its training "
            f"({misfit(error)})"
        ) from error
    except (OSError, KeyError, AssertionError) as error:
        raise InputError(f"--path {path}: cannot be loaded with --data {folder}: {first_line(error)}") from error
    return model, task


def _check_registered(path: PathLike, cfg: DictConfig) -> None:
    """Refuses a checkpoint of an architecture or a task that nothing imported has registered, by their names."""
    for what, part, registries in (
        ("architecture", cfg.model, (ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY)),
        ("task", cfg.task, (TASK_REGISTRY,)),
    ):
        name = getattr(part, "_name", None) or getattr(part, "arch", None)
        if name is not None and not any(name in registry for registry in registries):
            raise InputError(f"--path {path}: {what} {name} is not known here; {_other_package(cfg.common.user_dir)}")


def _other_package(user_dir: Optional[str]) -> str:
    """What to do where a package of the user's is not imported."""
    return f"import what registers it first: docnmt --user-dir DIR COMMAND (its training had --user-dir {user_dir})"


def read_checkpoint(path: PathLike, overrides: Optional[Mapping[str, object]] = None) -> Dict[str, Any]:
    """Reads what a checkpoint holds: configuration, parameters, ….

    Args:
        path: the checkpoint.
        overrides: of its configuration.

    Raises:
        InputError: no such file, or one that is no checkpoint or cannot be loaded safely.
    """
    docnmt_fairseq.register()
    check_file(path)
    try:
        state: Dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path), overrides)
        state["cfg"].task  # noqa: B018  (what every checkpoint of a model has)
    except InputError as error:
        raise InputError(f"--path {error}") from None
    except Exception as error:  # whatever a file that is none happens to cause
        raise InputError(f"--path {path}: {NO_CHECKPOINT} ({first_line(error)})") from None
    return state


def leave_view_to_models(checkpoint: Mapping[str, Any], given: Iterable[str] = ()) -> None:
    """Takes from a checkpoint's task how its model saw documents: the model brings that along, as do others beside it.

    A task takes what its configuration has for the user's choice, for all models of an ensemble.

    Args:
        checkpoint: what :func:`read_checkpoint` found; its configuration is changed.
        given: options that the user chose.
    """
    cfg = checkpoint["cfg"]
    view = getattr(TASK_REGISTRY.get(cfg.task.get("_name")), "view_defaults", {})
    state = checkpoint.get("task_state") or {}
    brought = {name for name in view if name in state or getattr(cfg.model, name, None) is not None}
    with open_dict(cfg.task):
        for name in brought & set(cfg.task) - set(given):
            cfg.task[name] = None


def read_configuration(path: PathLike) -> DictConfig:
    """The configuration in a checkpoint; its tensors stay on disk where this PyTorch can do that.

    Raises:
        InputError: no such file, or one that is no checkpoint or cannot be loaded safely.
    """
    if not compat.SAFE_LOADER:
        return read_checkpoint(path)["cfg"]
    check_file(path)
    try:
        state: Dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # of an old format, or no checkpoint: the other way says which
        return read_checkpoint(path)["cfg"]
    if state.get("cfg") is not None:
        return OmegaConf.create(state["cfg"], flags={"allow_objects": True})
    return convert_namespace_to_omegaconf(state["args"])


def data_of_training(checkpoint: Mapping[str, Any]) -> Path:
    """The data-bin that the model of a checkpoint was trained with; it may be there no more."""
    return Path(utils.split_paths(checkpoint["cfg"].task.get("data") or ".")[0])


def check_file(path: PathLike) -> None:
    """Refuses a checkpoint that is not there.

    Raises:
        InputError: no such file, or a folder.
    """
    if Path(path).is_dir():
        raise InputError(f"--path {path}: is a folder; name a checkpoint in it")
    if not Path(path).is_file():
        raise InputError(f"--path {path}: no such file")
