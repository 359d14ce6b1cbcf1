"""fairseq's own Transformers: checkpoints of ``translation`` and ``translation_multi_simple_epoch``.

Examples: WMT14, WMT16 and WMT19 models, M2M-100, NLLB-200 and mBART-50 as fairseq released them. fairseq's classes read
the parameters, so that checkpoints of earlier versions work. Dictionaries and subword models are next to the
checkpoint.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import augment_dictionary, get_lang_tok
from fairseq.models import build_model
from fairseq.models.transformer import TransformerModelBase
from omegaconf import OmegaConf
from torch import Tensor

import docnmt_fairseq
from docnmt_fairseq.corpus.data_bin import dictionary_errors
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import CODES, SENTENCEPIECE
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.hub.base import FAMILIES, Family, ImportedModel, Request
from docnmt_fairseq.hub.layout import OUTPUT, SIDES
from docnmt_fairseq.hub.tensors import check_weight
from docnmt_fairseq.hub.vocabulary import BIAS, SPECIAL, Vocabulary

TASKS = ("translation", "translation_multi_simple_epoch", "document_translation")
MULTILINGUAL = TASKS[1]
CODE_FILES = ("bpecodes", "bpe.codes", "code", "codes")  # BPE codes in released archives
CODES_TOKENIZER = "moses-escaped"  # tokenizer of fairseq's released models with BPE codes
MAIN_DATA = "main"
NLLB_SOURCES = ("<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>")  # tokens of NLLB-200's branch of fairseq


@FAMILIES.register("fairseq")
class FairseqCheckpoint(Family):
    """Checkpoints of fairseq."""

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        from docnmt_fairseq.models.transformer.stock import structure_of_transformer  # registers options

        docnmt_fairseq.register()
        path = _checkpoint(request.path)
        cfg, state = _load(path)
        task: Mapping[str, Any] = cfg.task if OmegaConf.is_config(cfg.task) else vars(cfg.task)
        name = task.get("_name") or task.get("task")
        if name not in TASKS:
            raise InputError(f"{path}: the task {name} is not supported; supported are {', '.join(TASKS)}")
        asked = request.options
        names = [asked.source_code or asked.source_lang, asked.target_code or asked.target_lang]
        tokens: Tuple[Optional[str], ...] = (None, None)
        languages = _languages(task, path) if name == MULTILINGUAL else []
        if name == MULTILINGUAL:
            known = {language: language for language in languages}
            names = [request.language_token(side, known) for side in (0, 1)]
            tokens = _language_tokens(task, names[0], names[1])
        dictionaries, dictionary_files = _dictionaries(path.parent, names)
        for dictionary, side in zip(dictionaries, SIDES):
            rows = len(state.get(f"{side}.embed_tokens.weight", ()))
            if name == MULTILINGUAL and len(dictionary) < rows:
                _add_language_tokens(dictionary, task, languages)
            if rows != len(dictionary):
                symbols = f"{len(dictionary):,} symbols in the dictionary"
                raise InputError(f"{path}: {rows:,} {side} embeddings, but {symbols}")
        model = _model(cfg, dictionaries, state, path)
        options = structure_of_transformer(model.cfg)
        special = {symbol: number for number, symbol in enumerate(SPECIAL)}
        source, target = (
            Vocabulary.of_rows(list(dictionary.symbols), special, file)
            for dictionary, file in zip(dictionaries, dictionary_files)
        )
        parameters = _reordered(model.state_dict(), (source, target))
        options["output_bias"] = BIAS in parameters
        subwords = asked.subwords or _subwords_next_to(path.parent)
        kind = "none" if subwords is None else SENTENCEPIECE if subwords.suffix in (".model", ".spm") else CODES
        return ImportedModel(
            "fairseq",
            options,
            parameters,
            (source, target),
            (int(model.cfg.max_source_positions), int(model.cfg.max_target_positions)),
            kind,
            (subwords, subwords) if subwords else (),
            asked.tokenizer or (CODES_TOKENIZER if kind == CODES else "none"),
            (tokens[0], tokens[1]),
            [path, *dict.fromkeys(dictionary_files), *([subwords] if subwords else [])],
            languages,
        )


def _languages(task: Mapping[str, Any], path: Path) -> List[str]:
    """Returns the languages of ``translation_multi_simple_epoch``, or those of its ``--lang-dict``."""
    if task.get("lang_tok_replacing_bos_eos"):
        raise InputError(f"{path}: --lang-tok-replacing-bos-eos is not supported")
    names, listed = _names(task.get("langs")), task.get("lang_dict")
    if listed and not names:
        file = path.parent / Path(listed).name
        names = [line for line in read_lines(file if file.is_file() else listed) if line]
    return names or sorted({language for pair in _names(task.get("lang_pairs")) for language in pair.split("-")})


def _add_language_tokens(dictionary: Dictionary, task: Mapping[str, Any], languages: List[str]) -> None:
    """Adds language tokens to a dictionary in the order of the task."""
    specs = _names(task.get("langtoks_specs")) or [MAIN_DATA]
    augment_dictionary(dictionary, languages, _style(task), specs, task.get("extra_data"))
    for symbol in NLLB_SOURCES if task.get("add_data_source_prefix_tags") else ():
        dictionary.add_symbol(symbol)


def _language_tokens(task: Mapping[str, Any], source: str, target: str) -> Tuple[Optional[str], ...]:
    """Returns the first tokens of sentences: ``--langtoks``, or ``--encoder-langtok`` and ``--decoder-langtok``."""
    first, second = (task.get("langtoks") or {}).get(MAIN_DATA) or (
        task.get("encoder_langtok"),
        "tgt" if task.get("decoder_langtok") else None,
    )
    language = source if first and first.startswith("src") else target
    return (
        get_lang_tok(language, _style(task), first) if first else None,
        get_lang_tok(target, _style(task), second) if second else None,
    )


def _style(task: Mapping[str, Any]) -> str:
    return task.get("lang_tok_style") or "multilingual"


def _names(names: Any) -> List[str]:
    return names.split(",") if isinstance(names, str) else list(names or ())


def _checkpoint(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.glob("*.pt"))
    if len(found) != 1:
        names = f"{len(found)} checkpoints (*.pt)" if found else "no config.json and no checkpoint (*.pt)"
        raise InputError(f"{path}: {names}; give a checkpoint, or a folder with one")
    return found[0]


def _load(path: Path) -> Tuple[Any, Dict[str, Tensor]]:
    """Returns configuration and parameters of a checkpoint, loaded without executing code."""
    try:
        checkpoint = load_checkpoint_to_cpu(str(path))
        checkpoint["cfg"].task  # noqa: B018  (missing in other files)
    except Exception as error:  # any content
        raise InputError(f"{path}: not a checkpoint of fairseq ({type(error).__name__}: {first_line(error)})") from None
    for name, value in checkpoint["model"].items():
        check_weight(path, name, value)
    return checkpoint["cfg"], checkpoint["model"]


def _dictionaries(folder: Path, names: List[str]) -> Tuple[List[Dictionary], List[Path]]:
    """Returns the dictionaries of source and target and their files."""
    files = [folder / f"dict.{name}.txt" for name in names]
    if not all(path.is_file() for path in files):
        joint = sorted(path for path in folder.glob("*dict*.txt") if not path.name.startswith("dict."))
        joint = joint or ([folder / "dict.txt"] if (folder / "dict.txt").is_file() else [])
        files = joint * 2 if len(joint) == 1 else files
    dictionaries = []
    for path in files:
        with dictionary_errors(path):
            dictionaries.append(Dictionary.load(str(path)))
    return dictionaries, files


def _model(cfg: Any, dictionaries: List[Dictionary], state: Dict[str, Tensor], path: Path) -> TransformerModelBase:
    """Returns fairseq's model with its parameters."""
    task = SimpleNamespace(source_dictionary=dictionaries[0], target_dictionary=dictionaries[1])
    model = build_model(cfg.model, task, from_checkpoint=True)
    model.load_state_dict(state, strict=True, model_cfg=cfg.model)
    if not isinstance(model, TransformerModelBase) or getattr(model, "classification_heads", None):
        raise InputError(f"{path}: {type(model).__name__} is not supported; only Transformers are")
    return model


def _reordered(state: Dict[str, Tensor], vocabularies: Tuple[Vocabulary, Vocabulary]) -> Dict[str, Tensor]:
    """Returns the parameters with rows for new symbols; tied tables stay tied."""
    source, target = vocabularies
    tables = {"encoder.embed_tokens.weight": source, "decoder.embed_tokens.weight": target, OUTPUT: target}
    made: Dict[int, Tensor] = {}
    found = {}
    for name, value in state.items():
        if not name.endswith((".version", "._float_tensor")):
            reordered = made.setdefault(value.data_ptr(), tables[name].reorder(value)) if name in tables else value
            found[name] = reordered
    bias = target.output_bias(None)
    return found if bias is None else {**found, BIAS: bias}


def _subwords_next_to(folder: Path) -> Optional[Path]:
    found = [folder / name for name in CODE_FILES if (folder / name).is_file()]
    found += sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if len(found) > 1:
        raise InputError(f"{folder}: several subword models; choose one with --subwords")
    return found[0] if found else None
