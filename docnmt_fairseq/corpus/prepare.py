"""From native corpora to a data-bin that fairseq trains on, in steps that are done once."""

import json
import logging
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus.binarise import DATA_BIN, Expected, binarise
from docnmt_fairseq.corpus.config import MANIFEST, PrepareConfig, with_reused_options
from docnmt_fairseq.corpus.dictionaries import dictionary_from_model, dictionary_from_text
from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.stages import Stage, Stages
from docnmt_fairseq.corpus.steps import Step, Steps, sha256
from docnmt_fairseq.errors import InputError

LIBRARIES = ("fairseq-fixed", "fairseq", "sentencepiece", "sacremoses", "jieba", "torch", "numpy", "lxml")

logger = logging.getLogger(__name__)


def prepare(config: PrepareConfig) -> Dict[str, Any]:
    """Makes the data-bin, and all that leads to it, in ``config.output``; returns what its ``manifest.json`` holds.

    A step that was finished before, from the same input and options, is skipped. The manifest is written last.

    Raises:
        InputError: bad options or input; nothing half-written is left under a final name.
    """
    config = with_reused_options(config)
    config.check()
    splits = config.splits()
    inputs = {split.name: [_described(path) for path in split.paths] for split in splits}
    output = _made(Path(config.output).absolute())
    steps = Steps(output, summary=output / MANIFEST)
    stages = Stages(config, steps)
    name, done = (
        "text",
        {split.name: stages.read(split, [file["sha256"] for file in inputs[split.name]]) for split in splits},
    )
    if any(side.tokenizer != "none" for side in config.sides):
        name, done = "tokenized", stages.tokenize(name, done)
    if config.truecase:
        name, done = "truecased", stages.truecase(name, done)
    done = stages.split(name, done)
    dictionaries = _dictionaries(stages, done)
    _data_bin(stages, done, dictionaries)
    manifest = _manifest(stages, done, inputs, dictionaries)
    atomic_write_bytes(
        output / MANIFEST, (json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
    )
    return manifest


def _described(path: Path) -> Dict[str, Any]:
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return {"path": str(path), "size": size, "sha256": sha256(path)}


def _made(output: Path) -> Path:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output}: cannot be made: {error.strerror}") from error
    return output


def _dictionary_path(stages: Stages, side: str) -> Path:
    return stages.output / "models" / f"dict.{side}.txt"


def _dictionaries(stages: Stages, done: Stage) -> List[Step]:
    """Writes ``models/dict.SIDE.txt`` of every side; one that several sides share is written for each."""
    config = stages.config
    dictionaries = []
    for side in config.sides:
        path = _dictionary_path(stages, side.name)
        if config.subwords != "none":
            model = stages.subword_model_path(side.models_of)
            inputs = {"model": sha256(model)}
            action = partial(dictionary_from_model, model, path)
        else:
            texts = stages.training_texts("subword", side.models_of)
            limits = {"min_count": config.min_count, "max_words": config.max_words}
            inputs = {
                "text": done["train"].digest if "train" in done else "",
                "sides": [text.name for text in texts],
                **limits,
            }
            action = partial(dictionary_from_text, texts, path, workers=config.workers, **limits)
        dictionaries.append(stages.model(path.name, inputs, action))
    return dictionaries


def _data_bin(stages: Stages, done: Stage, dictionaries: List[Step]) -> Step:
    config = stages.config
    expected = {}
    for split, step in done.items():
        lines, documents = stages.lines(split), stages.counts[split].documents
        # One token ends every item, and every mark between paragraphs is one.
        marks = stages.counts[split].paragraphs - documents
        expected[split] = tuple(Expected(lines, documents, tokens + marks + lines) for tokens in step.values["tokens"])
    inputs = {
        "splits": {split: step.digest for split, step in done.items()},
        "dictionaries": [step.digest for step in dictionaries],
        "joint": config.joint,
    }
    names = [side.name for side in config.sides]
    action = partial(
        binarise,
        stages.output,
        names,
        [_dictionary_path(stages, name) for name in names],
        expected,
        joint=config.joint,
        workers=config.workers,
    )
    return stages.steps.run(DATA_BIN, inputs, [stages.output / DATA_BIN], action)


def _manifest(stages: Stages, done: Stage, inputs: Dict[str, Any], dictionaries: List[Step]) -> Dict[str, Any]:
    """Returns what was made, from what, with which options and versions."""
    sides = [side.name for side in stages.config.sides]
    counts = {}
    for split, step in done.items():
        text = stages.counts[split]
        counts[split] = {
            "documents": text.documents,
            "paragraphs": text.paragraphs,
            "sentences": text.sentences,
            "longest_document": text.longest_document,
            "dropped_pairs": text.dropped_pairs,
            "words": dict(zip(sides, text.words)),
            "subword_tokens": dict(zip(sides, step.values["tokens"])),
        }
    models = sorted(path for path in (stages.output / "models").iterdir() if path.is_file())
    return {
        "counts": counts,
        "inputs": inputs,
        "models": {path.name: sha256(path) for path in models},
        "options": stages.config.as_options(),
        "versions": _versions(),
    }


def _versions() -> Dict[str, str]:
    import platform

    versions = {"docnmt_fairseq": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions
