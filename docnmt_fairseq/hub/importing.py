"""``docnmt import`` from end to end.

The result looks like the output of ``docnmt prepare`` with a checkpoint, so that all commands take it: ``--path
FOLDER/checkpoint.pt --data FOLDER``, ``docnmt prepare --reuse FOLDER``. The manifest describes model and origin.
"""

import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Tuple

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from omegaconf import OmegaConf

import docnmt_fairseq
from docnmt_fairseq import __version__
from docnmt_fairseq.checkpoints import write_checkpoint
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.data_bin import DATA_BIN, write_language_tokens
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.prepared import CHECKPOINT, IMPORTED, MANIFEST
from docnmt_fairseq.corpus.subwords import CODES, bpe_encoder, load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import atomic_folder, copy_file, sha256, write_json
from docnmt_fairseq.hub import families  # noqa: F401  (registers them)
from docnmt_fairseq.hub.base import (
    CONFIG,
    DOCUMENT,
    FAMILIES,
    STOCK,
    ImportedModel,
    ImportOptions,
    Request,
    find,
    licence,
    read_json,
)  # fmt: skip
from docnmt_fairseq.hub.layout import SIDES
from docnmt_fairseq.options import flag_of

TASKS = {DOCUMENT: "document_translation", STOCK: "translation"}
STOCK_VALUES = {"sinusoids": "fairseq", "decoder_start": "eos", "output_bias": False}  # fixed in fairseq's Transformer
FAIRSEQ_VERSION = 3.0  # parameter "version" of encoder and decoder in fairseq's checkpoints


def import_model(source: str, options: ImportOptions) -> Dict[str, Any]:
    """Imports a model and returns the manifest of the output folder.

    Args:
        source: folder, file, or name on the hub.
        options: options of the import.

    Raises:
        InputError: the output exists; the model cannot be read, or expressed in the architecture.
    """
    languages, output = options.languages, options.output
    if languages[0] == languages[1]:
        raise InputError("--source-lang and --target-lang must differ")
    if output.exists():
        raise InputError(f"--output {output}: exists; remove it, or choose another folder")
    path, commit = find(source, options.revision)
    kind = str(read_json(path / CONFIG).get("model_type")) if (path / CONFIG).is_file() else "fairseq"
    model = FAMILIES[kind]().read(Request(path, options))
    with atomic_folder(output) as folder:
        _write_text_models(model, languages, folder)
        write_language_tokens(folder / DATA_BIN, dict(zip(languages, model.language_tokens)))
        _write_checkpoint(model, languages, (output / DATA_BIN).absolute(), folder / CHECKPOINT, options.architecture)
        about = {
            "from": source, "revision": commit, "licence": licence(path), "architecture": options.architecture,
        }  # fmt: skip
        manifest = _manifest(model, languages, folder, about)
        write_json(folder / MANIFEST, manifest, indent=2)
    return manifest


def _write_text_models(model: ImportedModel, languages: Tuple[str, str], folder: Path) -> None:
    for file, language in zip(model.subword_files, languages):
        (bpe_encoder if model.subwords == CODES else load_subword_model)(file)  # checks the file
        pipeline = SidePipeline(language, subwords=model.subwords, joint=model.joint)
        copy_file(file, folder / "models" / str(pipeline.subword_file))
    for vocabulary, language in zip(model.vocabularies, languages):
        for place in ("models", DATA_BIN):
            vocabulary.write(folder / place / f"dict.{language}.txt")


def _manifest(
    model: ImportedModel, languages: Tuple[str, str], folder: Path, about: Mapping[str, Any]
) -> Dict[str, Any]:
    settings = PrepareConfig(
        *languages,
        output=folder,
        tokenizer=model.tokenizer,
        subwords=model.subwords,
        vocab_size=len(model.vocabularies[0].symbols),
        joint=model.joint,
        source_lang_token=model.language_tokens[0],
        target_lang_token=model.language_tokens[1],
    )
    return {
        IMPORTED: {
            **about,
            "family": model.family,
            "files": {path.name: sha256(path) for path in model.files},
            "structure": dict(model.options),
            "positions": list(model.positions),
            "languages": model.languages,
        },
        "counts": {},
        "inputs": {},
        "models": {path.name: sha256(path) for path in sorted((folder / "models").iterdir())},
        "options": settings.as_options(),
        "versions": {"docnmt_fairseq": __version__},
    }


def _write_checkpoint(
    model: ImportedModel, languages: Tuple[str, str], data: Path, path: Path, architecture: str
) -> None:
    """Writes the checkpoint of a model before its first update, with a data-bin for its task.

    Raises:
        InputError: fairseq's Transformer cannot compute the model.
    """
    docnmt_fairseq.register()
    settings = dict(model.options) if architecture == DOCUMENT else _stock_options(model.options)
    command = [str(data), "--task", TASKS[architecture], "--arch", architecture, "--optimizer", "adam"]
    command += ["--source-lang", languages[0], "--target-lang", languages[1]]
    command += ["--max-source-positions", str(model.positions[0]), "--max-target-positions", str(model.positions[1])]
    args = parse_args_and_arch(get_training_parser(), [*command, *_flags(settings)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hydra
        complete = convert_namespace_to_omegaconf(args)
    cfg: Dict[str, Any] = OmegaConf.to_container(complete, resolve=True, enum_to_str=True)  # type: ignore[assignment]
    cfg["common"]["user_dir"] = None
    history = {"criterion_name": "CrossEntropyCriterion", "optimizer_name": "FairseqAdam"}
    state = {
        "args": None,
        "cfg": cfg,
        "model": {**model.state, **{f"{side}.version": torch.tensor([FAIRSEQ_VERSION]) for side in SIDES}},
        "criterion": None,
        "optimizer_history": [{**history, "lr_scheduler_state": {}, "num_updates": 0}],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}, "val_loss": None},
        "last_optimizer_state": None,
    }
    write_checkpoint(state, path)


def _stock_options(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns options of fairseq's Transformer."""
    found = dict(given)
    unsupported = [name for name, value in STOCK_VALUES.items() if found.pop(name, value) != value]
    unsupported += ["activation_fn"] if found.get("activation_fn") == "swish" else []
    if unsupported:
        names = ", ".join(f"{flag_of(name)} {given[name]}" for name in unsupported)
        raise InputError(f"--architecture {STOCK}: the model needs {names}; use {DOCUMENT}")
    found["encoder_learned_pos"] = found.pop("word_positions", "sinusoidal") == "learned"
    return found


def _flags(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if not isinstance(value, bool):
            yield from (flag_of(name), str(value))
        elif value:
            yield flag_of(name)
