"""The checkpoint of an imported model: what a training of that model would have saved before its first update."""

import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.pretrained.released import Released

DOCUMENT, STOCK = ARCHITECTURES = ("document_transformer", "transformer")
TASKS = {DOCUMENT: "document_translation", STOCK: "translation"}
# How fairseq's own Transformer says the same; what it has no option for must be as it always is there.
STOCK_FIXED = {"sinusoids": "fairseq", "decoder_start": "eos", "output_bias": False}

VERSION = 3.0  # fairseq's, of what follows the last layer: before it, nothing did


def save_checkpoint(
    released: Released, languages: Tuple[str, str], data: Path, path: Path, architecture: str = DOCUMENT
) -> None:
    """Writes the checkpoint of a released model.

    Args:
        released: the model.
        languages: source and target.
        data: where its data-bin will be.
        path: where to write.
        architecture: of :data:`ARCHITECTURES`.

    Raises:
        InputError: fairseq's own Transformer cannot compute what the model does.
    """
    docnmt_fairseq.register()
    settings = dict(released.options) if architecture == DOCUMENT else _of_stock(released.options)
    command = [str(data), "--task", TASKS[architecture], "--arch", architecture, "--optimizer", "adam"]
    command += ["--source-lang", languages[0], "--target-lang", languages[1]]
    command += ["--max-source-positions", str(released.positions[0])]
    command += ["--max-target-positions", str(released.positions[1]), *_flags(settings)]
    args = options.parse_args_and_arch(options.get_training_parser(), command)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hydra's, about how fairseq uses it
        complete = convert_namespace_to_omegaconf(args)
    cfg: Dict[str, Any] = OmegaConf.to_container(complete, resolve=True, enum_to_str=True)  # type: ignore[assignment]
    cfg["common"]["user_dir"] = None
    state = {
        "args": None,
        "cfg": cfg,
        "model": {**released.state, **{f"{side}.version": torch.tensor([VERSION]) for side in ("encoder", "decoder")}},
        "criterion": None,
        "optimizer_history": [
            {
                "criterion_name": "CrossEntropyCriterion",
                "optimizer_name": "FairseqAdam",
                "lr_scheduler_state": {},
                "num_updates": 0,
            }
        ],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}, "val_loss": None},
        "last_optimizer_state": None,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path)


def _of_stock(structure: Mapping[str, Any]) -> Dict[str, Any]:
    """The options of fairseq's own Transformer."""
    found = dict(structure)
    foreign = [name for name, value in STOCK_FIXED.items() if found.pop(name, value) != value]
    if found.get("activation_fn") == "swish":
        foreign.append("activation_fn")
    if foreign:
        names = ", ".join(f"{flag_of(name)} {structure[name]}" for name in foreign)
        raise InputError(f"--architecture {STOCK}: this model needs {names}, which fairseq's own has not")
    found["encoder_learned_pos"] = found.pop("word_positions", "sinusoidal") == "learned"
    return found


def _flags(settings: Mapping[str, Any]) -> Iterator[str]:
    """Options as a command line has them."""
    for name, value in settings.items():
        if isinstance(value, bool):
            yield from [flag_of(name)] if value else []
        else:
            flags: List[str] = [flag_of(name), str(value)]
            yield from flags
