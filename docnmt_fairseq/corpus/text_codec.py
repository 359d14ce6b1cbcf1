"""Text processing of ``docnmt prepare`` applied to new text in memory, and its inverse."""

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.pipeline import BatchFunction, SidePipeline
from docnmt_fairseq.corpus.prepared import is_prepared, manifest_options
from docnmt_fairseq.corpus.subwords import join_subwords
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.tokenizers import SentenceFunction
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from torch import Tensor


class TextCodec:
    """Encodes sentences to tokens as ``docnmt prepare`` did and decodes tokens to text.

    Args:
        data: output of ``docnmt prepare``; with a data-bin alone, text is tokens separated by spaces.
        tokenized: text is tokens separated by spaces in any case.

    Raises:
        InputError: on first use: a model is missing, a library is not installed, or the target is edit operations.
    """

    def __init__(self, data: Path, tokenized: bool = False):
        self.data = data
        prepared = not tokenized and is_prepared(data)
        self.options: Dict[str, Any] = manifest_options(data, "--data") if prepared else {}
        self._encoders: Dict[int, BatchFunction] = {}

    @classmethod
    def of_output(cls, data: Path) -> "TextCodec":
        """Returns the codec of an output of ``docnmt prepare``; raises :class:`InputError` if the folder is not one."""
        manifest_options(data, "--data")
        return cls(data)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.options["source_lang"], self.options["target_lang"]

    @cached_property
    def pipelines(self) -> Tuple[SidePipeline, SidePipeline]:
        """Processing of source and target."""
        return SidePipeline.from_options(self.options, 0), SidePipeline.from_options(self.options, 1)

    def load(self) -> None:
        """Loads everything needed to translate, so that missing models are reported before the work starts."""
        self._encoder(0)
        self._decode  # noqa: B018

    def begin(self, side: int) -> List[str]:
        """Returns the tokens that sentences of the source (0) or target (1) start with: a language token or none."""
        token = self.pipelines[side].language_token if self.options else None
        return [token] if token else []

    def encode(self, side: int, sentences: List[str]) -> List[str]:
        """Encodes sentences of the source (0) or target (1) to tokens separated by spaces."""
        return self._encoder(side)(sentences) if sentences else []

    def encode_lines(self, side: int, lines: Sequence[str]) -> List[str]:
        """Encodes delimited text; boundaries are unchanged."""
        return map_sentences(lines, partial(self.encode, side))

    def decode(self, tokens: str) -> str:
        """Decodes the tokens of a target sentence to plain text."""
        return self._decode(tokens)

    def _encoder(self, side: int) -> BatchFunction:
        if side not in self._encoders and not self.options:
            self._encoders[side] = lambda sentences: [" ".join(sentence.split()) for sentence in sentences]
        if side not in self._encoders:
            if side == 1:
                self._refuse_edit_operations()
            encode = self.pipelines[side].encoder(self.data / "models")
            self._encoders[side] = lambda sentences: encode(list(map(normalise, sentences)))
        return self._encoders[side]

    @cached_property
    def _decode(self) -> SentenceFunction:
        if not self.options:
            return str
        self._refuse_edit_operations()
        joiner, to_text = self.pipelines[1].joiner, self.pipelines[1].decoder()
        begin = " ".join([*self.begin(1), ""])
        return lambda tokens: to_text(join_subwords(tokens.removeprefix(begin), joiner).strip())

    def _refuse_edit_operations(self) -> None:
        if self.options.get("edits_of"):
            raise InputError(
                f"the targets of {self.data} are edit operations (--edits-of {self.options['edits_of']}), not text; "
                "translate with fairseq-generate"
            )


def token_ids(lines: Sequence[str], dictionary: "Dictionary") -> "List[Tensor]":
    """Returns delimited lines of tokens as tensors of token ids, each with an end of sentence."""
    return [dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]
