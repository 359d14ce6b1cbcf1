"""fairseq's own Transformers: checkpoints of ``translation`` and ``translation_multi_simple_epoch``.

WMT14, WMT16 and WMT19 models, M2M-100, NLLB-200 and mBART-50 as fairseq released them, and anything trained with these
tasks. fairseq's own classes read the parameters, so that what its earlier versions wrote is understood. Dictionaries
and subword models are found beside the checkpoint.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import Dictionary
from fairseq.models import build_model
from fairseq.models.transformer import TransformerModelBase
from omegaconf import OmegaConf
from torch import Tensor

import docnmt_fairseq
from docnmt_fairseq.corpus.dictionaries import dictionary_errors
from docnmt_fairseq.corpus.subwords import CODES, SENTENCEPIECE, load_subword_model
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.pretrained.fairseq_languages import Languages
from docnmt_fairseq.pretrained.released import FAMILIES, Family, Released, Request, TextModels
from docnmt_fairseq.pretrained.tensors import check_weight, load_safely
from docnmt_fairseq.pretrained.vocabulary import SPECIAL, Vocabulary, output_bias

TASKS = ("translation", "translation_multi_simple_epoch", "document_translation")
MULTILINGUAL = TASKS[1]
CODE_FILES = ("bpecodes", "bpe.codes", "code", "codes")  # as archives call them
OF_THE_HUB = (".safetensors", ".bin", ".json", ".spm", ".model")  # files of its models
TOKENIZER_OF_CODES = "moses-escaped"  # of fairseq's released models


@FAMILIES.register("fairseq")
class FairseqCheckpoint(Family):
    """See the module."""

    def read(self, request: Request) -> Released:
        """See :class:`Family`."""
        # Not above: who derives a family of their own has mechanisms to register, too, before there are models.
        from docnmt_fairseq.models.transformer.stock import structure_of_transformer

        docnmt_fairseq.register()
        path = _checkpoint(request.path)
        cfg, state = _loaded(path)
        task: Mapping[str, Any] = cfg.task if OmegaConf.is_config(cfg.task) else vars(cfg.task)  # as old tasks have it
        name = task.get("_name") or task.get("task")
        if name not in TASKS:
            raise InputError(f"{path}: a model of the task {name}; those of {', '.join(TASKS)} can be imported")
        called = [code or language for code, language in zip(request.codes, request.languages)]
        tokens: Tuple[Optional[str], Optional[str]] = (None, None)
        languages = Languages.of_task(task, path) if name == MULTILINGUAL else None
        if languages is not None:
            called = list(languages.of_pair(request))
            tokens = languages.tokens(*called)
        dictionaries, dictionary_files = _dictionaries(path.parent, called)
        if languages is not None:
            for dictionary, side in zip(dictionaries, ("encoder", "decoder")):
                languages.add_to(dictionary, len(state.get(f"{side}.embed_tokens.weight", ())))
        model = _model(cfg, dictionaries, state, path)
        try:
            structure = structure_of_transformer(model.cfg)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        vocabularies = (
            _vocabulary(dictionaries[0], dictionary_files[0]),
            _vocabulary(dictionaries[1], dictionary_files[1]),
        )
        text, text_files = _text(request, path.parent, tokens)
        parameters = _in_order(model.state_dict(), vocabularies)
        structure["output_bias"] = "decoder.output_projection.bias" in parameters
        positions = (int(model.cfg.max_source_positions), int(model.cfg.max_target_positions))
        files = [path, *dict.fromkeys(dictionary_files), *text_files]
        names = [] if languages is None else languages.names
        return Released("fairseq", structure, parameters, vocabularies, text, positions, files, names)


def _checkpoint(path: Path) -> Path:
    if path.suffix in OF_THE_HUB and path.is_file():
        raise InputError(
            f"{path}: no checkpoint of fairseq; of a model in the hub's form give the folder, {path.parent}"
        )
    if path.is_file():
        return path
    found = sorted(path.glob("*.pt"))
    if len(found) != 1:
        names = f"{len(found)} checkpoints (*.pt)" if found else "no config.json and no checkpoint (*.pt)"
        raise InputError(f"{path}: holds {names}; give a checkpoint's file, or a folder with one")
    return found[0]


def _loaded(path: Path) -> Tuple[Any, Dict[str, Tensor]]:
    """Configuration and parameters of a checkpoint."""
    content = load_safely(path)
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or not (content.get("cfg") or content.get("args")):
        raise InputError(f"{path}: no checkpoint of fairseq, which holds a model and its configuration (args or cfg)")
    try:
        checkpoint = load_checkpoint_to_cpu(str(path))
        cfg, state = checkpoint["cfg"], checkpoint["model"]
    except Exception as error:  # whatever a file that is none happens to cause
        raise InputError(f"{path}: no checkpoint of fairseq ({type(error).__name__}: {first_line(error)})") from None
    for name, value in state.items():
        check_weight(path, name, value)
    return cfg, state


def _dictionaries(folder: Path, names: List[str]) -> Tuple[List[Dictionary], List[Path]]:
    """The dictionaries of source and target, by their languages' names, and their files."""
    own = [folder / f"dict.{name}.txt" for name in names]
    if not all(path.is_file() for path in own):
        joint = sorted(path for path in folder.glob("*dict*.txt") if not path.name.startswith("dict."))
        joint = joint or ([folder / "dict.txt"] if (folder / "dict.txt").is_file() else [])
        if len(joint) != 1:
            raise InputError(f"{folder}: lacks {own[0].name} and {own[1].name}, or one dictionary of both languages")
        own = [joint[0]] * 2
    dictionaries = []
    for path in own:
        with dictionary_errors(path):
            dictionaries.append(Dictionary.load(str(path)))
    return dictionaries, own


def _model(cfg: Any, dictionaries: List[Dictionary], state: Dict[str, Tensor], path: Path) -> TransformerModelBase:
    """fairseq's model with its parameters."""
    for dictionary, side in zip(dictionaries, ("encoder", "decoder")):
        rows = len(state.get(f"{side}.embed_tokens.weight", ()))
        if rows != len(dictionary):
            raise InputError(
                f"{path}: has {rows:,} embeddings in the {side}, the dictionary {len(dictionary):,} symbols; they "
                "do not belong together"
            )
    task = SimpleNamespace(source_dictionary=dictionaries[0], target_dictionary=dictionaries[1])
    try:
        model = build_model(cfg.model, task, from_checkpoint=True)
        model.load_state_dict(state, strict=True, model_cfg=cfg.model)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # whatever parameters of another model happen to cause
        raise InputError(f"{path}: its parameters are not those of its configuration: {first_line(error)}") from None
    if not isinstance(model, TransformerModelBase) or getattr(model, "classification_heads", None):
        raise InputError(f"{path}: a model of the class {type(model).__name__}; only Transformers can be imported")
    if model.cfg.decoder.normalize_before and model.decoder.layer_norm is None:
        raise InputError(
            f"{path}: pre-norm without a layer norm after the last layer, as before 2018, is not supported"
        )
    return model


def _vocabulary(dictionary: Dictionary, path: Path) -> Vocabulary:
    special = {symbol: number for number, symbol in enumerate(SPECIAL)}
    return Vocabulary.of_rows(list(dictionary.symbols), special, path)


def _in_order(state: Dict[str, Tensor], vocabularies: Tuple[Vocabulary, Vocabulary]) -> Dict[str, Tensor]:
    """The parameters, with rows for new symbols."""
    source, target = vocabularies
    tables = {"encoder.embed_tokens.weight": source, "decoder.embed_tokens.weight": target}
    tables["decoder.output_projection.weight"] = target
    made: Dict[int, Tensor] = {}  # tied ones stay one
    found = {}
    for name, value in state.items():
        if name.endswith((".version", "._float_tensor")):
            continue
        if name in tables:
            value = made.setdefault(value.data_ptr(), tables[name].ordered(value))
        found[name] = value
    bias = output_bias(target, None)
    return found if bias is None else {**found, "decoder.output_projection.bias": bias}


def _text(request: Request, folder: Path, tokens: Tuple[Optional[str], Optional[str]]) -> Tuple[TextModels, List[Path]]:
    """The way from text to symbols, and the files that say so."""
    file = request.subwords or _subwords_beside(folder)
    if file is None:
        return TextModels("none", (), request.tokenizer or "none", tokens), []
    if file.suffix == ".model" or file.suffix == ".spm":
        load_subword_model(file)
        return TextModels(SENTENCEPIECE, (file, file), request.tokenizer or "none", tokens), [file]
    return TextModels(CODES, (file, file), request.tokenizer or TOKENIZER_OF_CODES, tokens), [file]


def _subwords_beside(folder: Path) -> Optional[Path]:
    """The one file beside a checkpoint that looks like a subword model; None: there is none."""
    found = [folder / name for name in CODE_FILES if (folder / name).is_file()]
    found += sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if len(found) > 1:
        raise InputError(f"{folder}: holds several subword models; say which with --subwords")
    return found[0] if found else None
