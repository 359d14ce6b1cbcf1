"""Text as token sequences in the chunks that a model takes, and its translated sentences."""

import logging
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np
from fairseq.data import FairseqDataset
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH
from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.errors import InputError

LINE_BITS = 40  # of a sentence id in a batch; the bits above are the number of its chunk in the batch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class EncodedText:
    """Documents as chunks of token sequences."""

    starts: Sequence[int]  # number of the first line of each document
    dataset: FairseqDataset  # chunks, or windows of sentences; sentence ids are line numbers
    decoded: np.ndarray  # [chunks] number of sentences to translate of each chunk
    batches: Sequence[Sequence[int]]  # numbers of the chunks that may be encoded together
    alone: bool = False  # every sentence is translated without context
    # By line, the tokens [·] that its translation starts with.
    target_prefix: Mapping[int, np.ndarray] = field(default_factory=dict)
    # By line, the tokens [·] that later sentences see instead of its translation, with end of sentence.
    target_context: Mapping[int, Tensor] = field(default_factory=dict)

    @property
    def chunks(self) -> "List[Chunk]":
        """All chunks, in the order of the lines."""
        return [Chunk(self, number) for number in sorted(number for batch in self.batches for number in batch)]

    @property
    def sentences(self) -> List[int]:
        """Line numbers of the sentences, ascending; other lines are boundaries."""
        return [int(item) for item in self.dataset.index.items]


class Chunk(NamedTuple):
    """Sentences of a text that are encoded together."""

    text: EncodedText
    number: int

    @property
    def tokens(self) -> int:
        """Number of source tokens, including context."""
        return int(self.text.dataset.num_tokens(self.number))

    @property
    def sentences(self) -> int:
        """Number of sentences to translate."""
        return int(self.text.decoded[self.number])


class Result(NamedTuple):
    """Translated sentence: hypotheses for a line of a text, best first."""

    text: EncodedText
    line: int
    hypotheses: List[Hypothesis]


class LineEncoder:
    """Encoder of lines as token sequences.

    Args:
        codec: text to subwords.
        task: task with the dictionaries.
        max_positions: maximum length of source and target in tokens.
    """

    def __init__(self, codec: TextCodec, task: FairseqTask, max_positions: Tuple[int, int]):
        self.codec, self.task, self.max_positions = codec, task, max_positions

    def source(self, lines: Sequence[str], name: str, empty_lines: str) -> List[Tensor]:
        """Returns the tokens of every line, and an empty line at the end of the document.

        Args:
            lines: lines of a document; a line that normalisation makes empty is an empty line.
            name: name of the document in messages.
            empty_lines: what an empty line ends.

        Raises:
            InputError: a sentence is too long for the model.
        """
        encoded = [text.strip() for text in self.codec.encode_lines(0, list(map(normalise, lines)))]
        for number, (line, text) in enumerate(zip(lines, encoded), start=1):
            if not text and line.strip():
                logger.warning(f"{name}:{number}: has no visible characters, read as an empty line")
        if empty_lines == "paragraph":
            encoded = [text or PARAGRAPH for text in encoded]
        tokens = token_ids([*encoded, DOCUMENT], self.task.source_dictionary)
        for number, sentence in enumerate(tokens, start=1):
            if len(sentence) > self.max_positions[0]:
                message = f"{len(sentence):,} tokens, more than the {self.max_positions[0]:,} of the model; divide it"
                raise InputError.at(name, number, message)
        return tokens

    def target(
        self, option: str, documents: Sequence[Sequence[str]], starts: Sequence[int], lines: Sequence[Sequence[str]]
    ) -> Dict[int, Tensor]:
        """Returns by line number the tokens [·] of target lines, with end of sentence.

        Args:
            option: option of the lines in messages.
            documents: source lines of each document.
            starts: number of the first line of each document.
            lines: a target line for each source line; empty ones are left out. Or no documents at all.

        Raises:
            InputError: windows of several target sentences.
            ValueError: another number of lines than in the documents.
        """
        if not lines:
            return {}
        if getattr(self.task, "window", (1, 1))[1] > 1:
            raise InputError(f"{option}: not supported with --concatenate-target over 1")
        found = {}
        for start, own, document in zip(starts, lines, documents, strict=True):
            encoded = self.codec.encode_lines(1, list(map(normalise, own)))
            tokens_of_lines = token_ids(encoded, self.task.target_dictionary)
            for number, (tokens, _) in enumerate(zip(tokens_of_lines, document, strict=True), start=start):
                if len(tokens) > 1:
                    found[number] = tokens
        return found


def sample_of(chunks: Sequence[Chunk]) -> Dict[str, Any]:
    """Returns the batch of some chunks; its ids are line numbers.

    ``texts`` has the text of each row, ``prefixes`` and ``target_context`` its target prefix and context or None.
    """
    items = [_numbered(chunk.text.dataset[chunk.number], place) for place, chunk in enumerate(chunks)]
    sample: Dict[str, Any] = chunks[0].text.dataset.collater(items)
    places, lines = sample["id"] >> LINE_BITS, sample["id"] & ((1 << LINE_BITS) - 1)
    rows = [(chunks[place].text, line) for place, line in zip(places.tolist(), lines.tolist())]
    return {
        **sample,
        "id": lines,
        "texts": [text for text, _ in rows],
        "prefixes": [text.target_prefix.get(line) for text, line in rows],
        "target_context": [text.target_context.get(line) for text, line in rows],
    }


def _numbered(item: Dict[str, Any], place: int) -> Dict[str, Any]:
    """Returns an item whose sentence ids contain the number of its chunk."""
    ids = "ids" if "ids" in item else "id"  # of several sentences, or of one
    return {**item, ids: item[ids] + (place << LINE_BITS)}
