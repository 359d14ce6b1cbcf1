"""Trained models with their task, and the way from text to the symbols that they know."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus import text_steps
from docnmt_fairseq.corpus.config import MANIFEST, manifest_options
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.transform import BatchFunction, SentenceFunction
from docnmt_fairseq.errors import InputError
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
    models, task = load_ensemble(paths.split(":"), data_bin(data), options)
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
        encode = text_steps.encoder(self.data, self.options, side)
        return lambda sentences: encode(list(map(normalise, sentences)))

    def decode(self, tokens: str) -> str:
        """Returns a target sentence of tokens as plain text."""
        if not self.options:
            return tokens
        from fairseq.data.data_utils import post_process

        return self._decoder(post_process(tokens, text_steps.joins_of(self.options)))

    @cached_property
    def _decoder(self) -> SentenceFunction:
        return text_steps.decoder(self.options)


def to_tokens(lines: List[str], codec: TextCodec, side: int, dictionary: object) -> List[Tensor]:
    """Returns delimited text as token tensors with an end of sentence each; marks never pass through the codec."""
    encoded = iter(codec.encode(side, [line for line in lines if not is_mark(line)]))
    texts = (line if is_mark(line) else next(encoded) for line in lines)
    return [dictionary.encode_line(text, add_if_not_exist=False).long() for text in texts]
