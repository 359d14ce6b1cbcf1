"""The steps of ``docnmt prepare`` that make text: read and normalise, tokenise, truecase, split into subwords.

Each goes from a folder of delimited text to the next. What is learnt on the way is learnt from the training text, or
from a sample of its documents; training text in shards is not written any further than ``text/``.
"""

from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Mapping, NamedTuple, Optional

from tqdm import tqdm

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import TRAIN, PrepareConfig
from docnmt_fairseq.corpus.edits import write_operations
from docnmt_fairseq.corpus.files import copy_file
from docnmt_fairseq.corpus.language_tokens import beginning_with
from docnmt_fairseq.corpus.shares import Held, deal, sample
from docnmt_fairseq.corpus.sides import Side
from docnmt_fairseq.corpus.splits import Split, at_least_one
from docnmt_fairseq.corpus.steps import Step, Steps, sha256
from docnmt_fairseq.corpus.subwords import check_subword_model, subword_encoder, subword_model_name, train_subword_model
from docnmt_fairseq.corpus.text import TextCounts, normalise_documents
from docnmt_fairseq.corpus.tokenizers import SentenceFunction, tokenizer
from docnmt_fairseq.corpus.transform import BatchFunction, in_processes, transform_file
from docnmt_fairseq.corpus.truecasing import has_case, train_truecaser, truecaser, truecaser_name
from docnmt_fairseq.errors import InputError

Stage = Dict[str, Step]  # by split
Transform = Callable[[], ContextManager[BatchFunction]]
Transforms = Mapping[str, Transform]  # by side


class Folder(NamedTuple):
    """A folder of text that follows ``text/``.

    Attributes:
        name: of the folder.
        learn: makes what the transforms need from the folder before; returns what the text depends on.
        transforms: of a file of that folder into one of this.
    """

    name: str
    learn: Callable[[str, Stage], Dict[str, Any]]
    transforms: Transforms


class Stages:
    """Makes one folder of delimited text after another.

    Attributes:
        counts: of the text of each split.
        held: what the files of each part of the text hold.
        inputs: what each folder after ``text/`` depends on beside the text, in order.
    """

    def __init__(self, config: PrepareConfig, steps: Steps) -> None:
        self.config = config
        self.steps = steps
        self.output = steps.folder
        self.counts: Dict[str, TextCounts] = {}
        self.held: Dict[str, Held] = {}
        self.inputs: List[Dict[str, Any]] = []

    @property
    def last(self) -> str:
        """The folder of text that is binarised."""
        return "edits" if self.config.edits_of else "subword"

    def path(self, stage: str, part: str, language: str) -> Path:
        """The file of one side of a split, or of a shard of it."""
        return self.output / stage / f"{part}.{language}"

    def paths(self, stage: str, part: str) -> List[Path]:
        """The files of all sides of a split, or of a shard of it."""
        return [self.path(stage, part, side.name) for side in self.config.sides]

    def read(self, split: Split, digests: List[str]) -> Step:
        """Writes ``text/``: one split, normalised, in as many parts as it is to have.

        Raises:
            InputError: bad input; no sentence at all, or fewer documents than parts.
        """
        reading, parts = self.config.reading, self.config.parts(split.name)
        files = [self.paths("text", part) for part in parts]

        def action() -> Dict[str, Any]:
            counts = TextCounts()
            native = chain.from_iterable(readers.read(split.format, corpus, reading) for corpus in split.corpora)
            documents = tqdm(native, desc=f"text/{split.name}", unit=" documents", disable=None)
            normalised = normalise_documents(documents, self.config.on_empty, counts)
            held = deal(at_least_one(normalised, split), files)
            return {"counts": asdict(counts), "held": held}

        inputs = {"files": digests, "format": split.format, "options": asdict(reading), "empty": self.config.on_empty}
        reader = readers.make_reader(split.format, reading)
        told = [reader.told_by_names(corpus) for corpus in split.corpora]
        if any(told):
            inputs["told_by_names"] = told
        outputs = list(chain.from_iterable(files))
        step = self.steps.run(f"text/{split.name}", {**inputs, "parts": len(parts)}, outputs, action)
        self.counts[split.name] = TextCounts(**step.values["counts"])
        self.held.update({part: Held(*held) for part, held in zip(parts, step.values["held"])})
        return step

    def sample(self, train: Step) -> Step:
        """Writes ``text/``: documents of the training text, from which everything is learnt."""
        name, wanted, seed = self.config.learnt_from, self.config.sampled, self.config.seed
        total = self.counts[TRAIN].documents
        files = [self.paths("text", part) for part in self.config.parts(TRAIN)]

        def action() -> Dict[str, Any]:
            return {"held": sample(files, self.paths("text", name), total, wanted, seed)}

        inputs = {"text": train.digest, "documents": wanted, "seed": seed}
        step = self.steps.run(f"text/{name}", inputs, self.paths("text", name), action)
        self.held[name] = Held(*step.values["held"])
        return step

    def transform(self, done: Stage) -> Stage:
        """Writes the folders after ``text/``, and learns what they need."""
        source = "text"
        for folder in self.folders():
            self.inputs.append({**folder.learn(source, done), **self._whose_models()})
            done = self._transform(source, folder.name, done, self.inputs[-1], folder.transforms)
            source = folder.name
        return self._edits(source, done) if self.config.edits_of else done

    def _whose_models(self) -> Dict[str, Any]:
        """What says which models are those of extra sides; nothing where there are none."""
        extra = {side.name: side.models_of for side in self.config.sides[2:]}
        return {"models_of": extra} if extra else {}

    def folders(self) -> List[Folder]:
        """What follows ``text/``, up to subwords."""
        config = self.config
        found = []
        if any(side.tokenizer != "none" for side in config.sides):
            tokenizers = {
                side.name: self._in_processes(partial(tokenizer, side.tokenizer, side.models_of))
                for side in config.sides
            }
            found.append(Folder("tokenized", self._tokenizer_kinds, tokenizers))
        if config.truecase:
            casers = {side.name: self._truecaser(side) for side in config.sides}
            found.append(Folder("truecased", self._learn_case, casers))
        encoders = {side.name: self._encoder(side) for side in config.sides}
        return [*found, Folder("subword", self._learn_subwords, encoders)]

    def _in_processes(self, make: Callable[[], SentenceFunction]) -> Transform:
        return partial(in_processes, make, self.config.workers)

    def _tokenizer_kinds(self, stage: str, done: Stage) -> Dict[str, Any]:
        return {"tokenizers": {side.name: side.tokenizer for side in self.config.sides}}

    def _truecaser(self, side: Side) -> Transform:
        if not has_case(side.tokenizer):
            return _unchanged
        return self._in_processes(partial(truecaser, self.output / "models" / truecaser_name(side.models_of)))

    def _learn_case(self, stage: str, done: Stage) -> Dict[str, Any]:
        """Makes the truecaser models, if they are not reused."""
        learnt_from = self.config.learnt_from
        models = []
        for language in dict.fromkeys(side.models_of for side in self.config.sides if has_case(side.tokenizer)):
            name = truecaser_name(language)
            action = partial(train_truecaser, self.path(stage, learnt_from, language), self.output / "models" / name)
            inputs = {} if self.config.reuse else {"text": done[learnt_from].digest}
            models.append(self.model(name, inputs, action))
        return {"models": [step.digest for step in models]}

    def _encoder(self, side: Side) -> Transform:
        config = self.config
        if config.subwords == "none":
            return _unchanged
        model, token = self.subword_model_path(side.models_of), config.language_tokens.get(side.models_of)
        return partial(_encoding, model, config.workers, config.subwords, token)

    def _learn_subwords(self, stage: str, done: Stage) -> Dict[str, Any]:
        """Makes the subword models, if they are not reused; text already split needs none."""
        config = self.config
        if config.subwords == "none":
            return {"models": []}
        owners = list(dict.fromkeys(side.models_of for side in config.sides))
        if config.joint:
            owners.remove(config.target_lang)
        inputs: Dict[str, Any] = {"models": [self._subword_model(owner, stage, done).digest for owner in owners]}
        if any(config.language_tokens.values()):
            inputs["language_tokens"] = config.language_tokens
        return inputs

    def _edits(self, stage: str, done: Stage) -> Stage:
        """Writes ``edits/``: the target as operations on the side that holds machine translations."""
        target, translation = self.config.target_lang, self.config.edits_of
        assert translation is not None

        def action(split: str) -> None:
            for side in self.config.sides:
                original, written = self.path(stage, split, side.name), self.path("edits", split, side.name)
                if side.name == target:
                    write_operations(self.path(stage, split, translation), original, written)
                else:
                    copy_file(original, written)

        inputs = {"of": translation}
        return {
            split: self.steps.run(
                f"edits/{split}", {**inputs, "text": step.digest}, self.paths("edits", split), partial(action, split)
            )
            for split, step in done.items()
        }

    def subword_model_path(self, side: str) -> Path:
        """Where the subword model of a side with models of its own is."""
        joint = self.config.joint and side in self.config.languages
        return self.output / "models" / subword_model_name(joint, side)

    def dictionary_path(self, side: str) -> Path:
        """Where the dictionary of a side is."""
        return self.output / "models" / f"dict.{side}.txt"

    def training_texts(self, stage: str, side: str) -> List[Path]:
        """The files from which the subword model or the dictionary of a side is learnt."""
        joint = self.config.joint and side in self.config.languages
        return [
            self.path(stage, self.config.learnt_from, name) for name in (self.config.languages if joint else [side])
        ]

    def model(self, name: str, inputs: Mapping[str, Any], train: Callable[[], Any]) -> Step:
        """Runs the step that makes ``models/name``: copied from the output to be reused, if there is one."""
        path = self.output / "models" / name
        if not self.config.reuse:

            def action() -> None:
                train()

            return self.steps.run(f"models/{name}", inputs, [path], action)
        return self.copied(path, Path(self.config.reuse) / "models" / name)

    def copied(self, path: Path, original: Path) -> Step:
        """Runs the step that copies a model from elsewhere.

        Raises:
            InputError: there is none.
        """
        if not original.is_file():
            raise InputError(f"{original}: no such file")

        return self.steps.run(
            f"models/{path.name}", {"copy of": sha256(original)}, [path], partial(copy_file, original, path)
        )

    def _subword_model(self, side: str, stage: str, done: Stage) -> Step:
        config, path = self.config, self.subword_model_path(side)
        if config.subword_model and side in config.languages:
            given = config.subword_model[config.languages.index(side)]
            check_subword_model(given, config.subwords)
            return self.copied(path, Path(given))
        texts = self.training_texts(stage, side)
        inputs = {"text": self.learnt_digest(done), "options": config.subword_options.as_inputs()}
        inputs["sides"] = [text.name for text in texts]
        return self.model(path.name, inputs, partial(train_subword_model, texts, path, config.subword_options))

    def learnt_digest(self, done: Stage) -> str:
        """What stands for the text that models are learnt from; nothing where there is none."""
        learnt_from = self.config.learnt_from
        return done[learnt_from].digest if learnt_from in done else ""

    def _transform(
        self, source: str, target: str, done: Stage, inputs: Mapping[str, Any], transforms: Transforms
    ) -> Stage:
        """Runs one step a split that takes each side from one folder to the next."""

        def action(split: str) -> None:
            for side, transform in transforms.items():
                files = self.path(source, split, side), self.path(target, split, side)
                with transform() as function:
                    total = self.held[split].lines
                    transform_file(*files, function, total=total, title=f"{target}/{files[1].name}")

        return {
            split: self.steps.run(
                f"{target}/{split}",
                {**inputs, "text": step.digest},
                self.paths(target, split),
                partial(action, split),
            )
            for split, step in done.items()
        }


def _unchanged() -> ContextManager[BatchFunction]:
    return nullcontext(list)


def _encoding(model: Path, workers: int, kind: str, token: Optional[str]) -> ContextManager[BatchFunction]:
    return nullcontext(beginning_with(token, subword_encoder(model, workers, kind)))
