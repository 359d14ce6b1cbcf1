"""``docnmt prepare``: native corpora to data-bins for fairseq, in cached steps."""

import logging
import platform
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from tqdm import tqdm

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import TRAIN, PrepareConfig, Split, with_reused_options
from docnmt_fairseq.corpus.data_bin import (
    DATA_BIN,
    DictionaryNumbering,
    Items,
    SentencePieceNumbering,
    SplitItems,
    TextSize,
    write_data_bin,
)
from docnmt_fairseq.corpus.dictionaries import dictionary_from_model, dictionary_from_text
from docnmt_fairseq.corpus.edits import OPERATIONS, operations_line, write_operations
from docnmt_fairseq.corpus.files import atomic_files, read_lines
from docnmt_fairseq.corpus.pipeline import SidePipeline, batches, compose, process_file, worker_errors
from docnmt_fairseq.corpus.prepared import MANIFEST, data_bins
from docnmt_fairseq.corpus.sharding import sample_documents, write_shards
from docnmt_fairseq.corpus.step_cache import Step, StepCache
from docnmt_fairseq.corpus.subwords import WITH_CODES, check_subword_model, train_subword_model
from docnmt_fairseq.corpus.text import TextCounts, normalise_documents
from docnmt_fairseq.corpus.tokenizers import train_truecaser
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import copy_file, folder_lock, json_bytes, sha256, write_bytes

if TYPE_CHECKING:
    from fairseq.data import Dictionary

LIBRARIES = ("fairseq-fixed", "sentencepiece", "sacremoses", "jieba", "torch", "numpy", "lxml")

Stage = Dict[str, Step]  # by split
Lines = Sequence[Sequence[str]]  # the same lines of every side

logger = logging.getLogger(__name__)


def prepare(config: PrepareConfig) -> Dict[str, Any]:
    """Writes the data-bins and everything they are made from to ``config.output``; returns the manifest.

    Steps that were run before with the same inputs are skipped. The manifest is written last.

    Raises:
        InputError: bad options or input, or another process is writing to the output.
    """
    config = with_reused_options(config)
    config.check()
    splits = config.splits()
    work = Preparation(config)
    with folder_lock(work.output):
        inputs = {split.name: [_description(path) for path in split.paths] for split in splits}
        texts = {split.name: work.read(split, [file["sha256"] for file in inputs[split.name]]) for split in splits}
        # Shards are not processed as files: their text is processed in memory when their data-bin is written.
        stage = {split: step for split, step in texts.items() if config.shards_of(split) == [split]}
        if config.sample_size:
            stage[config.trained_on] = work.sample(texts[TRAIN])
        stage = work.tokenize(stage)
        stage = work.truecase(stage)
        stage = work.segment(stage)
        stage = work.edit(stage)
        dictionaries = work.dictionaries(stage)
        work.plan_data_bins(texts, stage, dictionaries)
        bins = work.data_bins()
        manifest = work.manifest(inputs, bins)
        write_bytes(work.output / MANIFEST, json_bytes(manifest, indent=2, sort_keys=True))
    return manifest


def _description(path: Path) -> Dict[str, Any]:
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return {"path": str(path), "size": size, "sha256": sha256(path)}


class Preparation:
    """Steps of :func:`prepare`; each returns the finished step, cached or not.

    Attributes:
        counts: counts of each split.
        sizes: size of each text, by split or shard.
        stages: names of the folders of processed text so far.
        stage_inputs: inputs of each of these folders apart from the text.
        bin_inputs: inputs of each data-bin.
    """

    def __init__(self, config: PrepareConfig) -> None:
        self.config = config
        self.output = Path(config.output).absolute()
        self.models = self.output / "models"
        self.cache = StepCache(self.output, self.output / MANIFEST)
        self.pipelines = {side.name: config.pipeline(side) for side in config.sides}
        self.counts: Dict[str, TextCounts] = {}
        self.sizes: Dict[str, TextSize] = {}
        self.stages = ["text"]
        self.stage_inputs: List[Dict[str, Any]] = []
        self.bin_inputs: List[Dict[str, Any]] = []

    def files(self, stage: str, split: str) -> List[Path]:
        """Returns the text files of a split or shard, one per side."""
        return [self.output / stage / f"{split}.{side.name}" for side in self.config.sides]

    # --- Text ---

    def read(self, split: Split, digests: List[str]) -> Step:
        """Writes ``text/``: the documents of a split, normalised, in one or more shards."""
        config, shards = self.config, self.config.shards_of(split.name)
        files = [self.files("text", shard) for shard in shards]
        reader = readers.make_reader(split.format, config.reading)

        def action() -> Dict[str, Any]:
            counts = TextCounts()
            native = chain.from_iterable(map(reader.read, split.corpora))
            documents = tqdm(native, desc=f"text/{split.name}", unit=" documents", disable=None)
            sizes = write_shards(normalise_documents(documents, config.on_empty, counts), files, str(split.paths[0]))
            return {"counts": asdict(counts), "sizes": sizes}

        inputs = {
            "files": digests,
            "format": split.format,
            "options": asdict(config.reading),
            "empty": config.on_empty,
            "from_names": [reader.settings_from_names(corpus) for corpus in split.corpora],
            "shards": len(shards),
        }
        step = self.cache.run(f"text/{split.name}", inputs, list(chain.from_iterable(files)), action)
        self.counts[split.name] = TextCounts(**step.values["counts"])
        self.sizes.update({shard: TextSize(*size) for shard, size in zip(shards, step.values["sizes"])})
        return step

    def sample(self, train: Step) -> Step:
        """Writes ``text/sample.*``: documents of the training text that models are trained on."""
        name, wanted, seed = self.config.trained_on, self.config.sample_size, self.config.seed
        shards, output = [self.files("text", shard) for shard in self.config.shards_of(TRAIN)], self.files("text", name)
        total = self.counts[TRAIN].documents

        def action() -> Dict[str, Any]:
            return {"size": sample_documents(shards, output, total, wanted, seed)}

        inputs = {"text": train.digest, "documents": wanted, "seed": seed}
        step = self.cache.run(f"text/{name}", inputs, output, action)
        self.sizes[name] = TextSize(*step.values["size"])
        return step

    def tokenize(self, stage: Stage) -> Stage:
        """Writes ``tokenized/``, if a side has a tokeniser."""
        if all(side.tokenizer == "none" for side in self.config.sides):
            return stage
        return self._process("tokenized", stage, {"tokenizers": {s.name: s.tokenizer for s in self.config.sides}})

    def truecase(self, stage: Stage) -> Stage:
        """Writes ``truecased/`` and trains the truecasers, if there is truecasing."""
        if not self.config.truecase:
            return stage
        models, folder, trained_on = [], self.output / self.stages[-1], self.config.trained_on
        for side in {pipeline.language: pipeline for pipeline in self.pipelines.values()}.values():
            if side.truecaser_file is not None:
                text, model = folder / f"{trained_on}.{side.language}", self.models / side.truecaser_file
                inputs = {"text": _digest(stage, trained_on)}
                models.append(self._model(side.truecaser_file, inputs, partial(train_truecaser, text, model)))
        return self._process("truecased", stage, {"models": [step.digest for step in models]})

    def segment(self, stage: Stage) -> Stage:
        """Writes ``subword/`` and trains the subword models, if they are not given."""
        owners = {pipeline.subword_file: pipeline for pipeline in reversed(self.pipelines.values())}
        models = [self._subword_model(owners[name], stage) for name in sorted(filter(None, owners))]
        tokens = [pipeline.language_token for pipeline in self.pipelines.values()]
        return self._process("subword", stage, {"models": [step.digest for step in models], "tokens": tokens})

    def edit(self, stage: Stage) -> Stage:
        """Writes ``edits/``: the target as edit operations on machine translations, for automatic post-editing."""
        translation, target = self.config.edits_of, self.config.target_lang
        if translation is None:
            return stage

        def action(split: str) -> None:
            folder, edits = self.output / self.stages[-2], self.output / "edits"
            for side in self.config.sides:
                file = f"{split}.{side.name}"
                if side.name == target:
                    write_operations(folder / f"{split}.{translation}", folder / file, edits / file)
                else:
                    copy_file(folder / file, edits / file)

        self.stages.append("edits")
        return self._run_stage("edits", stage, {"of": translation}, action)

    def _process(self, name: str, stage: Stage, inputs: Dict[str, Any]) -> Stage:
        """Writes one stage of all pipelines."""
        source = self.stages[-1]
        inputs["models_of"] = {side.name: side.models_of for side in self.config.sides}
        functions = {
            side: pipeline.stages(self.models, self.config.workers)[name] for side, pipeline in self.pipelines.items()
        }

        def action(split: str) -> None:
            for side, make in functions.items():
                file, function = f"{split}.{side}", make()
                lines = process_file(
                    self.output / source / file, function, total=self.sizes[split].lines, title=f"{name}/{file}"
                )
                with atomic_files(self.output / name / file) as (stream,):
                    stream.writelines("\n".join(batch) + "\n" for batch in lines)

        self.stages.append(name)
        self.stage_inputs.append(inputs)
        return self._run_stage(name, stage, inputs, action)

    def _run_stage(self, name: str, stage: Stage, inputs: Mapping[str, Any], action: Callable[[str], None]) -> Stage:
        return {
            split: self.cache.run(
                f"{name}/{split}", {**inputs, "text": step.digest}, self.files(name, split), partial(action, split)
            )
            for split, step in stage.items()
        }

    # --- Models ---

    def _model(self, name: str, inputs: Mapping[str, Any], train: Callable[[], None]) -> Step:
        """Writes ``models/NAME``: trained, or copied from the reused output."""
        if self.config.reuse:
            return self._copied_model(name, Path(self.config.reuse) / "models" / name)
        return self.cache.run(f"models/{name}", inputs, [self.models / name], train)

    def _copied_model(self, name: str, original: Path) -> Step:
        if not original.is_file():
            raise InputError(f"{original}: no such file")
        path = self.models / name
        inputs = {"copy of": sha256(original)}
        return self.cache.run(f"models/{name}", inputs, [path], partial(copy_file, original, path))

    def _subword_model(self, pipeline: SidePipeline, stage: Stage) -> Step:
        config, name = self.config, str(pipeline.subword_file)
        if config.subword_model and pipeline.language in config.languages:
            given = Path(config.subword_model[config.languages.index(pipeline.language)])
            check_subword_model(given, config.subwords)
            return self._copied_model(name, given)
        texts, options = self._training_texts(pipeline), config.subword_options
        inputs = {
            "text": _digest(stage, config.trained_on),
            "sides": [text.name for text in texts],
            "options": asdict(options),
        }
        return self._model(name, inputs, partial(train_subword_model, texts, self.models / name, options))

    def _training_texts(self, pipeline: SidePipeline) -> List[Path]:
        """Returns the latest files that the subword model or the dictionary of a side is trained on."""
        folder, joint = self.output / self.stages[-1], self.config.joint and pipeline.language in self.config.languages
        sides = self.config.languages if joint else [pipeline.language]
        return [folder / f"{self.config.trained_on}.{side}" for side in sides]

    def dictionaries(self, stage: Stage) -> List[Step]:
        """Writes the dictionary of every side."""
        config, symbols = self.config, OPERATIONS if self.config.edits_of else ()
        dictionaries = []
        for side, pipeline in self.pipelines.items():
            name = f"dict.{side}.txt"
            path = self.models / name
            if config.subwords in ("none", *WITH_CODES):
                texts = [self.output / "subword" / text.name for text in self._training_texts(pipeline)]
                limits = {"min_count": config.min_count, "max_words": config.max_words}
                train = partial(dictionary_from_text, texts, path, symbols, **limits)
                inputs = {"text": _digest(stage, config.trained_on), "sides": [text.name for text in texts], **limits}
            else:
                model = self.models / str(pipeline.subword_file)
                train = partial(dictionary_from_model, model, path, symbols)
                inputs = {"model": sha256(model)}
            dictionaries.append(self._model(name, {**inputs, "symbols": symbols}, train))
        return dictionaries

    # --- Data-bins ---

    def plan_data_bins(self, texts: Stage, stage: Stage, dictionaries: List[Step]) -> None:
        """Sets the inputs of each data-bin, and removes data-bins of a previous, larger number of shards."""
        config = self.config
        common = {
            "dictionaries": [step.digest for step in dictionaries],
            "language_tokens": {side.name: config.language_token(side) for side in config.sides},
        }
        for number in range(config.shards):
            splits = {split: stage[split].digest for split in texts if split in stage} if number == 0 else {}
            self.bin_inputs.append({**common, "splits": splits})
            if config.shards > 1:
                shard = [texts[TRAIN].digest, number, config.shards]
                self.bin_inputs[-1].update(shard=shard, stages=self.stage_inputs, edits_of=config.edits_of)
        for path in self.output.glob(f"{DATA_BIN}-*"):
            if re.fullmatch(rf"{DATA_BIN}-[1-9]\d*", path.name) and path not in data_bins(self.output, config.shards):
                logger.warning(f"{path}: removed, because it belongs to a previous value of --shards")
                self.cache.stamp(path.name).unlink(missing_ok=True)
                shutil.rmtree(path.resolve(), ignore_errors=True)
                if path.is_symlink():
                    path.unlink()

    def data_bins(self) -> List[Step]:
        """Writes the data-bins that are not up to date; values: tokens of each side of each split."""
        numbers = range(self.config.shards)
        missing = [number for number in numbers if self.cache.lookup(*self._bin_step(number)) is None]
        workers = min(self.config.workers, len(missing))
        if workers > 1:
            with worker_errors(workers), ProcessPoolExecutor(workers) as pool:
                list(pool.map(partial(self.data_bin, workers=1), missing))
        else:
            for number in missing:
                self.data_bin(number, self.config.workers)
        steps = [self.cache.lookup(*self._bin_step(number)) for number in numbers]
        if None in steps:
            raise InputError(f"{self.output}: a data-bin is missing or was changed; run again")
        return [step for step in steps if step is not None]

    def _bin_step(self, number: int) -> Tuple[str, Dict[str, Any], List[Path]]:
        folder = data_bins(self.output, self.config.shards)[number]
        return folder.name, self.bin_inputs[number], [folder]

    def data_bin(self, number: int, workers: int) -> Step:
        """Writes one data-bin."""
        return self.cache.run(*self._bin_step(number), partial(self._write_data_bin, number, workers))

    def _write_data_bin(self, number: int, workers: int) -> Dict[str, Any]:
        from fairseq.data import Dictionary

        config = self.config
        tokens = {side.name: config.language_token(side) for side in config.sides}
        dictionaries = {side: Dictionary.load(str(self.models / f"dict.{side}.txt")) for side in tokens}
        splits = {
            split: SplitItems(self.sizes[split], partial(self._items_of_files, split, list(dictionaries.values())))
            for split in self.bin_inputs[number]["splits"]
        }
        if config.shards > 1:
            shard = config.shards_of(TRAIN)[number]
            items = partial(self._items_of_shard, shard, dictionaries, workers)
            splits[TRAIN] = SplitItems(self.sizes[shard], items)
        return {"tokens": write_data_bin(self._bin_step(number)[2][0], dictionaries, splits, tokens)}

    def _items_of_files(self, split: str, dictionaries: Sequence["Dictionary"]) -> Iterator[Sequence[Items]]:
        """Yields batches of the items of a split from its processed files."""
        numberings = [DictionaryNumbering(dictionary) for dictionary in dictionaries]
        for batch in zip(*(batches(read_lines(path)) for path in self.files(self.stages[-1], split))):
            yield [number(lines) for number, lines in zip(numberings, batch)]

    def _items_of_shard(
        self, shard: str, dictionaries: Mapping[str, "Dictionary"], workers: int
    ) -> Iterator[Sequence[Items]]:
        """Yields batches of the items of a shard of the training text, processed in memory."""
        config = self.config
        files = dict(zip(dictionaries, self.files("text", shard)))
        by_text = config.subwords in ("none", *WITH_CODES) or config.edits_of
        stages = self.stages[1:] if by_text else self.stages[1:-1]
        sides = {}
        for side, pipeline in self.pipelines.items():
            functions = pipeline.stages(self.models, workers)
            function = compose([functions[stage]() for stage in stages if stage != "edits"])
            title = f"{DATA_BIN}/{files[side].name}"
            sides[side] = process_file(files[side], function, total=self.sizes[shard].lines, title=title)
        if by_text:
            numberings = [DictionaryNumbering(dictionary) for dictionary in dictionaries.values()]
            for texts in zip(*sides.values()):
                batch = self._as_edits(texts) if config.edits_of else texts
                yield [number(lines) for number, lines in zip(numberings, batch)]
            return
        direct = [
            SentencePieceNumbering(
                self.models / str(pipeline.subword_file), dictionaries[side], pipeline.language_token, workers
            )
            for side, pipeline in self.pipelines.items()
        ]
        first = 1
        for batch in zip(*sides.values()):
            yield [number(lines, path, first) for number, lines, path in zip(direct, batch, files.values())]
            first += len(batch[0])

    def _as_edits(self, batch: Lines) -> Lines:
        """Returns the lines with edit operations as the target."""
        names = [side.name for side in self.config.sides]
        target, translation = names.index(self.config.target_lang), names.index(str(self.config.edits_of))
        operations = list(map(operations_line, batch[translation], batch[target]))
        return [operations if side == target else lines for side, lines in enumerate(batch)]

    # --- Manifest ---

    def manifest(self, inputs: Dict[str, Any], bins: List[Step]) -> Dict[str, Any]:
        """Returns counts, inputs, digests of models, options and versions."""
        sides = [side.name for side in self.config.sides]
        counts = {}
        for split, text in self.counts.items():
            of_bins = [step.values["tokens"][split] for step in bins if split in step.values["tokens"]]
            # Every line ends with one token, and a boundary has one for each level that it ends.
            other = sum(self.sizes[shard].lines for shard in self.config.shards_of(split))
            other += text.paragraphs - text.documents + text.further_levels
            counts[split] = {
                "documents": text.documents,
                "paragraphs": text.paragraphs,
                "sentences": text.sentences,
                "longest_document": text.longest_document,
                "dropped_pairs": text.dropped_pairs,
                "words": dict(zip(sides, text.words)),
                "subword_tokens": {side: sum(tokens) - other for side, tokens in zip(sides, zip(*of_bins))},
            }
        models = sorted(path for path in self.models.iterdir() if path.is_file())
        return {
            "counts": counts,
            "inputs": inputs,
            "models": {path.name: sha256(path) for path in models},
            "options": self.config.as_options(),
            "versions": _versions(),
        }


def _digest(stage: Stage, split: str) -> str:
    """Returns the digest of the text that models are trained on; "" if there is no training text."""
    return stage[split].digest if split in stage else ""


def _versions() -> Dict[str, str]:
    versions = {"docnmt_fairseq": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions
