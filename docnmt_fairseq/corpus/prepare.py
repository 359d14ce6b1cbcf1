"""From native corpora to data-bins that fairseq trains on, in steps that are done once."""

import logging
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, ContextManager, Dict, List, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus.config import TRAIN, PrepareConfig
from docnmt_fairseq.corpus.dictionaries import dictionary_from_model, dictionary_from_text
from docnmt_fairseq.corpus.edits import OPERATIONS
from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes
from docnmt_fairseq.corpus.reusing import MANIFEST, with_reused_options
from docnmt_fairseq.corpus.shards import DataBins
from docnmt_fairseq.corpus.stages import Stage, Stages
from docnmt_fairseq.corpus.steps import Step, Steps, sha256
from docnmt_fairseq.corpus.subwords import WITH_CODES
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.locks import holding, in_folder
from docnmt_fairseq.plain_json import json_bytes

LIBRARIES = ("fairseq-fixed", "fairseq", "sentencepiece", "sacremoses", "jieba", "torch", "numpy", "lxml")

logger = logging.getLogger(__name__)


def prepare(config: PrepareConfig) -> Dict[str, Any]:
    """Makes the data-bins, and all that leads to them, in ``config.output``; returns what its ``manifest.json`` holds.

    A step that was finished before, from the same input and options, is skipped. The manifest is written last.

    Raises:
        InputError: bad options or input, or somebody else at work in the output; nothing half-written is left under a
            final name.
    """
    with alone_in(config.output):
        bins, inputs = fit(config)
        for number in range(len(bins.paths)):
            bins.make(number)
        return finish(bins, inputs)


def alone_in(output: PathLike) -> ContextManager[None]:
    """Holds an output, which two at once would spoil for each other; :func:`fit` and :func:`finish` are to be in it.

    Raises:
        InputError: somebody else is at work there.
    """
    return holding(in_folder(Path(output).absolute()), f"--output {output}")


def fit(config: PrepareConfig) -> Tuple[DataBins, Dict[str, Any]]:
    """Makes all that data-bins are made of: text, and what is learnt from it.

    Returns:
        the data-bins, not made yet, and what the files of each split are.

    Raises:
        InputError: bad options or input; nothing half-written is left under a final name.
    """
    config = with_reused_options(config)
    config.check()
    splits = config.splits()
    inputs = {split.name: [_described(path) for path in split.paths] for split in splits}
    output = Path(config.output).absolute()
    stages = Stages(config, Steps(output, summary=output / MANIFEST))
    texts = {split.name: stages.read(split, [file["sha256"] for file in inputs[split.name]]) for split in splits}
    done = {split: step for split, step in texts.items() if config.parts(split) == [split]}
    if config.sampled:
        done[config.learnt_from] = stages.sample(texts[TRAIN])
    done = stages.transform(done)
    dictionaries = _dictionaries(stages, done)
    bins = DataBins(stages, _inputs_of_data_bins(stages, texts, done, dictionaries))
    bins.remove_former()
    return bins, inputs


def finish(bins: DataBins, inputs: Dict[str, Any]) -> Dict[str, Any]:
    """Writes the manifest of data-bins that are all there, and returns it.

    Args:
        bins, inputs: as of :func:`fit`.

    Raises:
        InputError: a data-bin is not there.
    """
    manifest = _manifest(bins, inputs)
    atomic_write_bytes(bins.stages.output / MANIFEST, json_bytes(manifest, indent=2, sort_keys=True))
    return manifest


def _described(path: Path) -> Dict[str, Any]:
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return {"path": str(path), "size": size, "sha256": sha256(path)}


def _dictionaries(stages: Stages, done: Stage) -> List[Step]:
    """Writes ``models/dict.SIDE.txt`` of every side; one that several sides share is written for each."""
    config = stages.config
    dictionaries, symbols = [], OPERATIONS if config.edits_of else ()
    for side in config.sides:
        path = stages.dictionary_path(side.name)
        if config.subwords not in ("none", *WITH_CODES):
            model = stages.subword_model_path(side.models_of)
            inputs: Dict[str, Any] = {"model": sha256(model)}
            action = partial(dictionary_from_model, model, path, symbols)
        else:
            texts = stages.training_texts("subword", side.models_of)
            limits = {"min_count": config.min_count, "max_words": config.max_words}
            inputs = {
                "text": stages.learnt_digest(done),
                "sides": [text.name for text in texts],
                **limits,
            }
            action = partial(dictionary_from_text, texts, path, symbols, **limits)
        if symbols:
            inputs["symbols"] = symbols
        dictionaries.append(stages.model(path.name, inputs, action))
    return dictionaries


def _inputs_of_data_bins(stages: Stages, texts: Stage, done: Stage, dictionaries: List[Step]) -> List[Dict[str, Any]]:
    """What each data-bin depends on: the text of its splits, and what makes tokens of its shard."""
    config = stages.config
    common: Dict[str, Any] = {"dictionaries": [step.digest for step in dictionaries]}
    tokens = {side.name: config.language_tokens.get(side.models_of) for side in config.sides}
    if any(tokens.values()):
        common["language_tokens"] = tokens
    inputs = [{**common, "splits": {}} for _ in range(config.shards)]
    inputs[0]["splits"] = {split: done[split].digest for split in texts if split in done}
    if config.shards > 1:
        for number, of_one in enumerate(inputs):
            shard = [texts[TRAIN].digest, number, config.shards]
            of_one.update(shard=shard, folders=stages.inputs, edits_of=config.edits_of)
    return inputs


def _manifest(bins: DataBins, inputs: Dict[str, Any]) -> Dict[str, Any]:
    """What was made, from what, with which options and versions."""
    stages = bins.stages
    sides = [side.name for side in stages.config.sides]
    made = [bins.made(number) for number in range(len(bins.paths))]
    lacking = [path.name for path, step in zip(bins.paths, made) if step is None]
    if lacking:
        raise InputError(f"{stages.output}: {', '.join(lacking)} is not there, or was changed; run again")
    counts = {}
    for split, text in stages.counts.items():
        of_bins = [step.values["tokens"][split] for step in made if step and split in step.values["tokens"]]
        # One token ends every line, and every mark between paragraphs is one, or as many as levels end there.
        marks = sum(stages.held[part].lines for part in stages.config.parts(split))
        marks += text.paragraphs - text.documents + text.further_levels
        counts[split] = {
            "documents": text.documents,
            "paragraphs": text.paragraphs,
            "sentences": text.sentences,
            "longest_document": text.longest_document,
            "dropped_pairs": text.dropped_pairs,
            "words": dict(zip(sides, text.words)),
            "subword_tokens": {side: sum(tokens) - marks for side, tokens in zip(sides, zip(*of_bins))},
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
