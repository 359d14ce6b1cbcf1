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
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

import numpy as np
from tqdm import tqdm

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import EDITS, SAMPLE, TRAIN, PrepareConfig, Split, with_reused_options
from docnmt_fairseq.corpus.data_bin import (
    DATA_BIN,
    DictionaryNumbering,
    Items,
    SentencePieceNumbering,
    dictionary_from_model,
    dictionary_from_text,
    write_data_bin,
)
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.edits import OPERATIONS, operations_line
from docnmt_fairseq.corpus.files import atomic_files, read_lines
from docnmt_fairseq.corpus.pipeline import SUBWORD, TOKENIZED, SidePipeline, batches, process_file, worker_errors
from docnmt_fairseq.corpus.prepared import MANIFEST, data_bins
from docnmt_fairseq.corpus.step_cache import Step, StepCache
from docnmt_fairseq.corpus.subwords import train_subword_model
from docnmt_fairseq.corpus.text import NON_JOINER, TextCounts, normalise_documents
from docnmt_fairseq.corpus.tokenizers import train_truecaser
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import copy_file, folder_lock, sha256, write_json

if TYPE_CHECKING:
    from fairseq.data import Dictionary

LIBRARIES = ("fairseq-fixed", "sentencepiece", "sacremoses", "jieba", "torch", "numpy", "lxml")

Digests = Dict[str, str]  # digest of the text of each split
Lines = Sequence[Sequence[str]]  # the same lines of every side

logger = logging.getLogger(__name__)


def prepare(config: PrepareConfig) -> Dict[str, Any]:
    """Writes the data-bins and everything they are made from to ``config.output``; returns the manifest.

    Steps that were run before with the same inputs are skipped. The manifest is written last.
    """
    config = with_reused_options(config)
    config.check()
    splits = config.splits()
    work = Preparation(config)
    with folder_lock(work.output):
        inputs = {split.name: _descriptions(split) for split in splits}
        read = {split.name: work.read(split, inputs[split.name]) for split in splits}
        # Shards are not processed as files: their text is processed in memory when their data-bin is written.
        texts = {split: step.digest for split, step in read.items() if config.shards_of(split) == [split]}
        if config.sample_size:
            texts[SAMPLE] = work.sample(read[TRAIN])
        for stage in config.stages[1:]:
            work.train_models(stage, texts)
            texts = work.process(stage, texts)
        work.check_non_joiners(read.values())
        work.write_dictionaries(texts)
        bins = work.write_data_bins(read, texts)
        manifest = {
            "counts": {split: work.counts(split, step, bins) for split, step in read.items()},
            "inputs": inputs,
            "models": {path.name: sha256(path) for path in sorted(work.models.iterdir()) if path.is_file()},
            "options": config.as_options(),
            "versions": _versions(),
        }
        write_json(work.output / MANIFEST, manifest, indent=2)
    return manifest


class Preparation:
    """Steps of :func:`prepare`, run or found in the cache."""

    def __init__(self, config: PrepareConfig) -> None:
        self.config = config
        self.output = Path(config.output).absolute()
        self.models = self.output / "models"
        self.cache = StepCache(self.output, self.output / MANIFEST)
        self.pipelines = config.pipelines

    def files(self, stage: str, split: str) -> List[Path]:
        """Returns the text files of a split or shard, one per side."""
        return [self.output / stage / f"{split}.{side}" for side in self.pipelines]

    def read(self, split: Split, files: Sequence[Mapping[str, Any]]) -> Step:
        """Writes ``text/``: the documents of a split, normalised, in one or more shards."""
        config, shards = self.config, [self.files("text", shard) for shard in self.config.shards_of(split.name)]
        reader = readers.READERS[split.format](config.reading)

        def action() -> Dict[str, Any]:
            counts = TextCounts()
            native = chain.from_iterable(map(reader.read, split.corpora))
            documents = tqdm(native, desc=f"text/{split.name}", unit=" documents", disable=None)
            found = write_documents(normalise_documents(documents, config.on_empty, counts), *shards)
            if found < len(shards):
                problem = f"only {found} documents for --shards {len(shards)}" if found else "contains no sentence"
                raise InputError(f"{split.paths[0]}: {problem}")
            return asdict(counts)

        inputs = {
            "files": [[Path(file["path"]).name, file["sha256"]] for file in files],  # names may determine columns
            "format": split.format,
            "options": asdict(config.reading),
            "empty": config.on_empty,
            "shards": len(shards),
        }
        return self.cache.run(f"text/{split.name}", inputs, list(chain.from_iterable(shards)), action)

    def sample(self, train: Step) -> str:
        """Writes ``text/sample.*``, documents of the training text that models are trained on; returns its digest."""
        config, output = self.config, self.files("text", SAMPLE)
        wanted, seed, total = config.sample_size, config.seed, train.values["documents"]
        shards = [self.files("text", shard) for shard in config.shards_of(TRAIN)]
        inputs = {"text": train.digest, "documents": wanted, "seed": seed}
        action = partial(sample_documents, shards, output, total, wanted, seed)
        return self.cache.run(f"text/{SAMPLE}", inputs, output, action).digest

    def process(self, stage: str, texts: Digests) -> Digests:
        """Writes the folder of a stage and returns the digests of its texts."""
        inputs = self.stage_inputs(stage)
        processed = {}
        for split, digest in texts.items():
            action = partial(self._process, stage, split)
            step = self.cache.run(f"{stage}/{split}", {**inputs, "text": digest}, self.files(stage, split), action)
            processed[split] = step.digest
        return processed

    def _process(self, stage: str, split: str) -> None:
        inputs, outputs = self.files(self.before(stage), split), self.files(stage, split)
        if stage == EDITS:
            with atomic_files(*outputs) as streams:
                for batch in zip(*(batches(read_lines(path)) for path in inputs)):
                    for stream, lines in zip(streams, self._as_edits(batch)):
                        stream.writelines(f"{line}\n" for line in lines)
            return
        for path, output, pipeline in zip(inputs, outputs, self.pipelines.values()):
            function = pipeline.encoder(self.models, self.config.workers, [stage])
            with atomic_files(output) as (stream,):
                for lines in process_file(path, function, title=f"{stage}/{path.name}"):
                    stream.writelines(f"{line}\n" for line in lines)

    def before(self, stage: str) -> str:
        """Returns the name of the previous stage."""
        return self.config.stages[self.config.stages.index(stage) - 1]

    def stage_inputs(self, stage: str) -> Dict[str, Any]:
        """Returns what the text of a stage depends on, in addition to the text of the previous stage."""
        if stage == EDITS:
            return {"of": self.config.edits_of}
        found = {}
        for side, pipeline in self.pipelines.items():
            model = pipeline.model_file(stage)
            own = {TOKENIZED: [pipeline.tokenizer, pipeline.language], SUBWORD: pipeline.language_token}.get(stage)
            found[side] = [own, model and sha256(self.models / model)]
        return found

    def _as_edits(self, batch: Lines) -> Lines:
        """Returns the lines with edit operations as the target."""
        sides = list(self.pipelines)
        target, translation = sides.index(self.config.target_lang), sides.index(str(self.config.edits_of))
        operations = list(map(operations_line, batch[translation], batch[target]))
        return [operations if side == target else lines for side, lines in enumerate(batch)]

    # --- Models ---

    def train_models(self, stage: str, texts: Digests) -> None:
        """Writes the models of a stage: trained on the text of the previous stage, given or reused."""
        owners: Dict[Optional[str], SidePipeline] = {}
        for pipeline in self.pipelines.values():
            owners.setdefault(pipeline.model_file(stage), pipeline)
        for name, pipeline in owners.items():
            if name is not None and stage == SUBWORD:
                self._subword_model(name, pipeline, texts)
            elif name is not None:
                (text,) = self._training_texts(self.before(stage), [pipeline.language])
                self._model(name, {"text": texts.get(self.config.trained_on)}, partial(train_truecaser, text))

    def _subword_model(self, name: str, pipeline: SidePipeline, texts: Digests) -> None:
        config = self.config
        if config.subword_model and pipeline.language in config.languages:
            self._copy_model(name, Path(config.subword_model[config.languages.index(pipeline.language)]))
            return
        sides, options = self._trained_together(pipeline), config.subword_options
        inputs = {"text": texts.get(config.trained_on), "sides": sides, "options": asdict(options)}
        files = self._training_texts(self.before(SUBWORD), sides)
        self._model(name, inputs, partial(train_subword_model, files, options=options))

    def _trained_together(self, pipeline: SidePipeline) -> Sequence[str]:
        """Returns the sides whose text the subword model and the dictionary of a side are trained on."""
        return self.config.languages if pipeline.joint else [pipeline.language]

    def _training_texts(self, stage: str, sides: Sequence[str]) -> List[Path]:
        return [self.output / stage / f"{self.config.trained_on}.{side}" for side in sides]

    def _model(self, name: str, inputs: Mapping[str, Any], train: Callable[[Path], None]) -> None:
        """Writes ``models/NAME``: trained, or copied from the reused output."""
        if self.config.reuse:
            self._copy_model(name, Path(self.config.reuse) / "models" / name)
        else:
            path = self.models / name
            self.cache.run(f"models/{name}", inputs, [path], partial(train, path))

    def check_non_joiners(self, read: Iterable[Step]) -> None:
        """Warns of tokenisers and subword models that replace the zero-width non-joiners of the text by spaces."""
        stages = ((TOKENIZED, "--tokenizer none"), (SUBWORD, "--normalization nfkc"))
        for number, (side, pipeline) in enumerate(self.pipelines.items()):
            found = sum(step.values["non_joiners"][number] for step in read)
            for stage, remedy in stages if found else ():
                (tokens,) = pipeline.encoder(self.models, 1, [stage])([f"a{NON_JOINER}a"])
                if NON_JOINER not in tokens or (stage == TOKENIZED and " " in tokens):
                    logger.warning(
                        f"{stage}/*.{side}: {found:,} zero-width non-joiners U+200C of the text become spaces, so that "
                        f"translations lack them; {remedy} keeps them"
                    )

    def _copy_model(self, name: str, original: Path) -> None:
        path = self.models / name
        inputs = {"copy of": sha256(original)}
        self.cache.run(f"models/{name}", inputs, [path], partial(copy_file, original, path))

    def write_dictionaries(self, texts: Digests) -> None:
        """Writes the dictionary of every side."""
        config, symbols = self.config, OPERATIONS if self.config.edits_of else ()
        for side, pipeline in self.pipelines.items():
            inputs: Dict[str, Any] = {"symbols": symbols}
            if pipeline.has_pieces:
                model = self.models / str(pipeline.subword_file)
                inputs["model"] = sha256(model)
                write = partial(dictionary_from_model, model, symbols=symbols)
            else:
                sides = self._trained_together(pipeline)
                limits: Dict[str, Any] = {"min_count": config.min_count, "max_words": config.max_words}
                inputs.update(limits, text=texts.get(config.trained_on), sides=sides)
                write = partial(dictionary_from_text, self._training_texts(SUBWORD, sides), symbols=symbols, **limits)
            self._model(f"dict.{side}.txt", inputs, write)

    # --- Data-bins ---

    def write_data_bins(self, read: Mapping[str, Step], texts: Digests) -> List[Step]:
        """Writes the data-bins; values: tokens of each side of each split."""
        config, folders = self.config, data_bins(self.output, self.config.shards)
        for path in self.output.glob(f"{DATA_BIN}-*"):
            if re.fullmatch(rf"{DATA_BIN}-[1-9]\d*", path.name) and path not in folders:
                logger.warning(f"{path}: removed, because it belongs to a previous value of --shards")
                shutil.rmtree(path)
        common: Dict[str, Any] = {
            "dictionaries": [sha256(self.models / f"dict.{side}.txt") for side in self.pipelines],
            "language_tokens": {side: pipeline.language_token for side, pipeline in self.pipelines.items()},
        }
        first = {split: texts[split] for split in read if split in texts}
        inputs: List[Dict[str, Any]] = [
            {**common, "splits": {} if number else first} for number in range(config.shards)
        ]
        if config.shards > 1:
            stages = [self.stage_inputs(stage) for stage in config.stages[1:]]
            for number, of_bin in enumerate(inputs):
                of_bin.update(shard=[read[TRAIN].digest, number, config.shards], stages=stages)
        workers = min(config.workers, config.shards)
        if workers == 1:
            return [self._data_bin(*given, config.workers) for given in zip(folders, inputs)]
        with worker_errors(workers), ProcessPoolExecutor(workers) as pool:
            return list(pool.map(partial(self._data_bin, workers=1), folders, inputs))

    def _data_bin(self, folder: Path, inputs: Mapping[str, Any], workers: int) -> Step:
        return self.cache.run(folder.name, inputs, [folder], partial(self._write_data_bin, folder, inputs, workers))

    def _write_data_bin(self, folder: Path, inputs: Mapping[str, Any], workers: int) -> Dict[str, List[int]]:
        from fairseq.data import Dictionary

        dictionaries = {side: Dictionary.load(str(self.models / f"dict.{side}.txt")) for side in self.pipelines}
        splits = {split: self._items_of_files(split, dictionaries) for split in inputs["splits"]}
        if "shard" in inputs:
            splits[TRAIN] = self._items_of_shard(f"{TRAIN}-{inputs['shard'][1]}", dictionaries, workers)
        return write_data_bin(folder, dictionaries, splits, inputs["language_tokens"])

    def _items_of_files(self, split: str, dictionaries: Mapping[str, "Dictionary"]) -> Iterator[Sequence[Items]]:
        """Yields batches of the items of a split from its processed files."""
        numberings = list(map(DictionaryNumbering, dictionaries.values()))
        with tqdm(desc=f"{DATA_BIN}/{split}", unit=" lines", disable=None) as progress:
            for batch in zip(*(batches(read_lines(path)) for path in self.files(self.config.stages[-1], split))):
                yield [number(lines) for number, lines in zip(numberings, batch)]
                progress.update(len(batch[0]))

    def _items_of_shard(
        self, shard: str, dictionaries: Mapping[str, "Dictionary"], workers: int
    ) -> Iterator[Sequence[Items]]:
        """Yields batches of the items of a shard of the training text, processed in memory."""
        config, files, pipelines = self.config, self.files("text", shard), self.pipelines.values()
        direct = config.edits_of is None and all(pipeline.has_pieces for pipeline in pipelines)
        stages = [stage for stage in config.stages[1:] if stage != EDITS and not (direct and stage == SUBWORD)]
        sides = [
            process_file(path, pipeline.encoder(self.models, workers, stages), title=f"{DATA_BIN}/{path.name}")
            for path, pipeline in zip(files, pipelines)
        ]
        if not direct:
            numberings = list(map(DictionaryNumbering, dictionaries.values()))
            for batch in zip(*sides):
                texts = self._as_edits(batch) if config.edits_of else batch
                yield [number(lines) for number, lines in zip(numberings, texts)]
            return
        pieces = [
            SentencePieceNumbering(
                self.models / str(pipeline.subword_file), dictionary, pipeline.language_token, workers
            )
            for pipeline, dictionary in zip(pipelines, dictionaries.values())
        ]
        first = 1
        for batch in zip(*sides):
            yield [number(lines, path, first) for number, lines, path in zip(pieces, batch, files)]
            first += len(batch[0])

    def counts(self, split: str, read: Step, bins: Sequence[Step]) -> Dict[str, Any]:
        """Returns the counts of a split for the manifest."""
        text = TextCounts(**read.values)
        tokens = [one.values[split] for one in bins if split in one.values]
        # Every line ends with one token, and a boundary has one for each level that it ends.
        other = text.sentences + 2 * text.paragraphs - text.documents + text.further_levels
        return {
            "documents": text.documents,
            "paragraphs": text.paragraphs,
            "sentences": text.sentences,
            "longest_document": text.longest_document,
            "dropped_pairs": text.dropped_pairs,
            "words": dict(zip(self.pipelines, text.words)),
            "subword_tokens": {side: sum(of_bins) - other for side, of_bins in zip(self.pipelines, zip(*tokens))},
        }


def sample_documents(
    shards: Sequence[Sequence[Path]], output: Sequence[Path], total: int, wanted: int, seed: int
) -> None:
    """Writes a random sample of the documents of shards in the order of the corpus.

    The sample depends on the seed only, not on the number of shards.
    """
    chosen = set(np.random.default_rng(seed).permutation(total)[:wanted].tolist())
    documents = [[_documents(read_lines(path)) for path in shard] for shard in shards]
    with atomic_files(*output) as streams:
        for number in tqdm(range(total), desc=f"text/{SAMPLE}", unit=" documents", disable=None):
            for stream, side in zip(streams, documents[number % len(shards)]):
                text = next(side)
                if number in chosen:
                    stream.writelines(f"{line}\n" for line in text)


def _documents(lines: Iterable[str]) -> Iterator[List[str]]:
    """Yields the lines of each document, including the empty line at its end."""
    document: List[str] = []
    for line in lines:
        document.append(line)
        if line == "":
            yield document
            document = []


def _descriptions(split: Split) -> List[Dict[str, Any]]:
    """Returns path, size and hash of every file of a split."""
    found = []
    for path in tqdm(split.paths, desc=f"inputs/{split.name}", unit=" files", disable=None):
        files = path.rglob("*") if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files if file.is_file())
        found.append({"path": str(path), "size": size, "sha256": sha256(path)})
    return found


def _versions() -> Dict[str, str]:
    versions = {"docnmt_fairseq": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions
