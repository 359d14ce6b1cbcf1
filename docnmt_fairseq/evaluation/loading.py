"""Trained models with their task, and the way from text to the symbols that they know."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.corpus.config import MANIFEST, manifest_options
from docnmt_fairseq.corpus.subwords import subword_encoder
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.corpus.transform import BatchFunction
from docnmt_fairseq.corpus.truecasing import truecaser
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import plain_text
from docnmt_fairseq.marks import is_mark


@dataclass(frozen=True)
class Loaded:
    """Models ready to score: the ensemble, in evaluation mode on its device, and the task they were trained for."""

    task: object
    models: List[nn.Module]

    @property
    def dictionaries(self) -> Tuple[object, object]:
        """Dictionaries of source and target."""
        return self.task.source_dictionary, self.task.target_dictionary


def load(paths: str, data: Path, cuda: bool = False, options: Optional[Mapping[str, object]] = None) -> Loaded:
    """Returns an ensemble, whatever task and model it is: they are those of its checkpoints.

    Args:
        paths: checkpoints, with colons between.
        data: the data-bin with its dictionaries, or the folder of ``docnmt prepare`` around it.
        cuda: move the models to the GPU.
        options: of the task, instead of what the checkpoints say, such as ``{"context": "none"}``.

    Raises:
        InputError: no such file, not a checkpoint, or models that do not fit the data.
    """
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    from docnmt_fairseq import register

    register()
    for path in paths.split(":"):
        if not Path(path).is_file():
            raise InputError(f"--path {path}: no such file")
    overrides = {"data": str(data_bin(data)), **(options or {})}
    try:
        models, _, task = load_model_ensemble_and_task(paths.split(":"), overrides)
    except InputError:
        raise
    except pickle.UnpicklingError:  # its own text advises to load what may execute anything
        raise InputError(f"--path {paths}: not a checkpoint, or one that cannot be loaded safely") from None
    except (OSError, RuntimeError, KeyError, AssertionError) as error:
        raise InputError(f"--path {paths}: cannot be loaded with --data {data}: {error}") from error
    return Loaded(task, [model.cuda().eval() if cuda else model.eval() for model in models])


def data_bin(data: Path) -> Path:
    """Returns the folder with the dictionaries: ``data`` itself, or the one that ``docnmt prepare`` made in it."""
    inner = data / "data-bin"
    found = inner if inner.is_dir() else data
    if not any(found.glob("dict.*.txt")):
        raise InputError(
            f"--data {data}: holds no dict.*.txt; give a data-bin, or the folder that docnmt prepare wrote"
        )
    return found


class TextCodec:
    """Turns sentences into tokens and back as ``docnmt prepare`` did, or leaves both as they are.

    Args:
        data: the folder that ``docnmt prepare`` wrote; a data-bin alone: text is taken as tokens between spaces.
        tokenized: text is taken as such all the same.
    """

    def __init__(self, data: Path, tokenized: bool = False):
        self.options: Dict[str, object] = {}
        self.encoders: Dict[int, BatchFunction] = {}  # by side
        self.data = data
        if not tokenized and (data / MANIFEST).is_file():
            self.options = manifest_options(data, "--data")

    def encode(self, side: int, sentences: List[str]) -> List[str]:
        """Returns sentences of the source (0) or target (1) as tokens with spaces between."""
        if not sentences:
            return []
        if side not in self.encoders:
            self.encoders[side] = self._encoder(side)
        return self.encoders[side](sentences)

    def _encoder(self, side: int) -> BatchFunction:
        if not self.options:
            return lambda sentences: [" ".join(sentence.split()) for sentence in sentences]
        steps = self._steps(side)
        subwords: BatchFunction = list
        if self.options["subwords"] != "none":
            subwords = subword_encoder(self._subword_model(side))

        def encode(sentences: List[str]) -> List[str]:
            for step in steps:
                sentences = [step(sentence) for sentence in sentences]
            return subwords(sentences)

        return encode

    def decode(self, tokens: str) -> str:
        """Returns a target sentence of tokens as plain text."""
        if not self.options:
            return tokens
        if self.options["subwords"] != "none":
            from fairseq.data.data_utils import post_process

            tokens = post_process(tokens, "sentencepiece")
        restore = plain_text(str(self.options["target_lang"]), self._tokenizer(1), bool(self.options["truecase"]))
        return restore(tokens)

    def _tokenizer(self, side: int) -> str:
        name = ("source_tokenizer", "target_tokenizer")[side]
        return str(self.options.get(name) or self.options["tokenizer"])

    def _steps(self, side: int) -> List[Callable[[str], str]]:
        language = str(self.options[("source_lang", "target_lang")[side]])
        kind = self._tokenizer(side)
        steps: List[Callable[[str], str]] = [normalise, tokenizer(kind, language)]
        if self.options["truecase"] and kind != "jieba":
            steps.append(truecaser(self.data / "models" / f"truecaser.{language}"))
        return steps

    def _subword_model(self, side: int) -> Path:
        joint = self.data / "models" / "subword.model"
        language = self.options[("source_lang", "target_lang")[side]]
        return joint if joint.is_file() else self.data / "models" / f"subword.{language}.model"


def to_tokens(lines: List[str], codec: TextCodec, side: int, dictionary: object) -> List[Tensor]:
    """Returns delimited text as token tensors with an end of sentence each; marks never pass through the codec."""
    encoded = iter(codec.encode(side, [line for line in lines if not is_mark(line)]))
    texts = (line if is_mark(line) else next(encoded) for line in lines)
    return [dictionary.encode_line(text, add_if_not_exist=False).long() for text in texts]
