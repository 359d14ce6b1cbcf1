"""Outputs of ``docnmt prepare`` whose models and dictionaries others take."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json

MANIFEST = "manifest.json"

# What a reused output settles: they belong to its models and dictionaries.
MODEL_OPTIONS = (
    "tokenizer",
    "source_tokenizer",
    "target_tokenizer",
    "truecase",
    "subwords",
    "vocab_size",
    "joint",
    "character_coverage",
    "byte_fallback",
    "normalization",
    "subword_model",
    "min_count",
    "max_words",
    "seed",
    "extra",
    "edits_of",
    "source_lang_token",
    "target_lang_token",
)


def with_reused_options(config: PrepareConfig) -> PrepareConfig:
    """The configuration with all options of ``MODEL_OPTIONS`` as the reused output was made with.

    Raises:
        InputError: the folder is no finished output, or is of another language pair.
    """
    if config.reuse is None:
        return config
    options = manifest_options(config.reuse, "--reuse")
    languages = (options.get("source_lang"), options.get("target_lang"))
    if languages != config.languages:
        raise InputError(
            f"--reuse {config.reuse}: was made for {'-'.join(map(str, languages))}, not {'-'.join(config.languages)}"
        )
    settled = {name: options[name] for name in MODEL_OPTIONS if name in options}
    return replace(config, **settled, subword_model=())


def manifest_options(output: PathLike, option: str) -> Dict[str, Any]:
    """The options that a finished output was made with; ``option`` says in errors where it came from.

    Raises:
        InputError: the folder is no finished output.
    """
    try:
        options = parse_json((Path(output) / MANIFEST).read_text(encoding="utf-8"))["options"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{option} {output}: not a finished output of docnmt prepare (no {MANIFEST})") from error
    return options
