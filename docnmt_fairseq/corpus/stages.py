"""The steps of ``docnmt prepare`` that make text: read and normalise, tokenise, truecase, split into subwords."""

from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Mapping

from tqdm import tqdm

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import PrepareConfig, Split
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.edits import write_operations
from docnmt_fairseq.corpus.files import copy_file
from docnmt_fairseq.corpus.steps import Step, Steps, sha256
from docnmt_fairseq.corpus.subwords import load_subword_model, subword_encoder, subword_model_name, train_subword_model
from docnmt_fairseq.corpus.text import TextCounts, normalise_documents
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.corpus.transform import BatchFunction, in_processes, transform_file
from docnmt_fairseq.corpus.truecasing import has_case, train_truecaser, truecaser, truecaser_name
from docnmt_fairseq.errors import InputError

Stage = Dict[str, Step]  # by split
Transform = Callable[[], ContextManager[BatchFunction]]
Transforms = Mapping[str, Transform]  # by side


class Stages:
    """Makes one folder of delimited text after another; ``counts`` are those of the splits' text."""

    def __init__(self, config: PrepareConfig, steps: Steps) -> None:
        self.config = config
        self.steps = steps
        self.output = steps.folder
        self.counts: Dict[str, TextCounts] = {}

    @property
    def last(self) -> str:
        """The folder of text that is binarised."""
        return "edits" if self.config.edits_of else "subword"

    def path(self, stage: str, split: str, language: str) -> Path:
        """Returns the file of one side of a split."""
        return self.output / stage / f"{split}.{language}"

    def paths(self, stage: str, split: str) -> List[Path]:
        """Returns the files of all sides of a split."""
        return [self.path(stage, split, side.name) for side in self.config.sides]

    def read(self, split: Split, digests: List[str]) -> Step:
        """Writes ``text/``: one split, normalised.

        Raises:
            InputError: bad input; no sentence at all.
        """
        reading = self.config.reading

        def action() -> Dict[str, Any]:
            counts = TextCounts()
            native = chain.from_iterable(readers.read(split.format, corpus, reading) for corpus in split.corpora)
            documents = tqdm(native, desc=f"text/{split.name}", unit=" documents", disable=None)
            normalised = normalise_documents(documents, self.config.on_empty, counts)
            write_documents(_at_least_one(normalised, split), self.paths("text", split.name))
            return asdict(counts)

        inputs = {"files": digests, "format": split.format, "options": asdict(reading), "empty": self.config.on_empty}
        step = self.steps.run(f"text/{split.name}", inputs, self.paths("text", split.name), action)
        self.counts[split.name] = TextCounts(**step.values)
        return step

    def tokenize(self, stage: str, done: Stage) -> Stage:
        """Writes ``tokenized/``."""
        kinds = {side.name: side.tokenizer for side in self.config.sides}
        transforms = {
            name: partial(in_processes, partial(tokenizer, kind, language), self.config.workers)
            for name, kind, language in self.config.sides
        }
        return self._transform(stage, "tokenized", done, {"tokenizers": kinds}, transforms)

    def truecase(self, stage: str, done: Stage) -> Stage:
        """Writes ``truecased/``, and the truecaser models if they are not reused."""
        sides = self.config.sides
        models = {side.models_of: truecaser_name(side.models_of) for side in sides if has_case(side.tokenizer)}
        trained = [
            self.model(
                name,
                {"text": done["train"].digest} if not self.config.reuse else {},
                partial(train_truecaser, self.path(stage, "train", language), self.output / "models" / name),
            )
            for language, name in models.items()
        ]
        transforms: Dict[str, Transform] = {side.name: _unchanged for side in sides}
        for side in (side for side in sides if side.models_of in models):
            make = partial(truecaser, self.output / "models" / models[side.models_of])
            transforms[side.name] = partial(in_processes, make, self.config.workers)
        return self._transform(stage, "truecased", done, {"models": [step.digest for step in trained]}, transforms)

    def split(self, stage: str, done: Stage) -> Stage:
        """Writes ``subword/``, and the subword models if they are not reused; text already split is copied."""
        config = self.config
        if config.subwords == "none":
            unchanged: Transforms = {side.name: _unchanged for side in config.sides}
            return self._transform(stage, "subword", done, {"models": []}, unchanged)
        owners = list(dict.fromkeys(side.models_of for side in config.sides))
        if config.joint:
            owners.remove(config.target_lang)
        trained = [self._subword_model(owner, stage, done) for owner in owners]
        transforms = {
            side.name: partial(_encoding, self.subword_model_path(side.models_of), config.workers)
            for side in config.sides
        }
        return self._transform(stage, "subword", done, {"models": [step.digest for step in trained]}, transforms)

    def edits(self, stage: str, done: Stage) -> Stage:
        """Writes ``edits/``: the target as operations on the side that holds machine translations."""
        sides = [side.name for side in self.config.sides]
        target, translation = self.config.target_lang, self.config.edits_of
        assert translation is not None

        def action(split: str) -> Dict[str, Any]:
            tokens = dict(zip(sides, done[split].values["tokens"]))
            for side in sides:
                original, written = self.path(stage, split, side), self.path("edits", split, side)
                if side == target:
                    tokens[side] = write_operations(self.path(stage, split, translation), original, written)
                else:
                    copy_file(original, written)
            return {"tokens": list(tokens.values())}

        inputs = {"of": translation}
        return {
            split: self.steps.run(
                f"edits/{split}", {**inputs, "text": step.digest}, self.paths("edits", split), partial(action, split)
            )
            for split, step in done.items()
        }

    def subword_model_path(self, side: str) -> Path:
        """Returns where the SentencePiece model of a side with models of its own is."""
        joint = self.config.joint and side in self.config.languages
        return self.output / "models" / subword_model_name(joint, side)

    def training_texts(self, stage: str, side: str) -> List[Path]:
        """Returns the files from which the subword model or the dictionary of a side is learnt."""
        joint = self.config.joint and side in self.config.languages
        return [self.path(stage, "train", name) for name in (self.config.languages if joint else [side])]

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
            load_subword_model(given)  # refuses a file that is none
            return self.copied(path, Path(given))
        texts = self.training_texts(stage, side)
        inputs = {"text": done["train"].digest if "train" in done else "", "options": asdict(config.subword_options)}
        inputs["sides"] = [text.name for text in texts]
        return self.model(path.name, inputs, partial(train_subword_model, texts, path, config.subword_options))

    def _transform(
        self,
        source: str,
        target: str,
        done: Stage,
        inputs: Mapping[str, Any],
        transforms: Transforms,
    ) -> Stage:
        """Runs one step a split that takes each side from one folder to the next; values: tokens of each side."""

        def action(split: str) -> Dict[str, Any]:
            tokens = []
            for language, transform in transforms.items():
                files = self.path(source, split, language), self.path(target, split, language)
                with transform() as function:
                    total = self.lines(split)
                    tokens.append(transform_file(*files, function, total=total, title=f"{target}/{files[1].name}"))
            return {"tokens": tokens}

        return {
            split: self.steps.run(
                f"{target}/{split}",
                {**inputs, "text": step.digest},
                self.paths(target, split),
                partial(action, split),
            )
            for split, step in done.items()
        }

    def lines(self, split: str) -> int:
        """Returns the number of lines of a split: sentences, and a mark after every paragraph."""
        counts = self.counts[split]
        return counts.sentences + counts.paragraphs


def _unchanged() -> ContextManager[BatchFunction]:
    return nullcontext(list)


def _encoding(model: Path, workers: int) -> ContextManager[BatchFunction]:
    return nullcontext(subword_encoder(model, workers))


def _at_least_one(documents: Iterable[Document], split: Split) -> Iterator[Document]:
    none = True
    for document in documents:
        none = False
        yield document
    if none:
        raise InputError(f"{split.paths[0]}: no sentence in it (--{split.name.rstrip('0123456789')})")
