"""Lines of text as the tokens of a model, and the beginnings that translations are told to have."""

import logging
from typing import Dict, List, Sequence

import numpy as np
from fairseq.tasks import FairseqTask
from torch import Tensor

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import DOCUMENT, PARAGRAPH

logger = logging.getLogger(__name__)


class LineEncoder:
    """Turns lines into tokens.

    Args:
        codec: from text to subwords.
        task: that has the dictionaries.
        longest: tokens of a sentence that the model takes.
    """

    def __init__(self, codec: TextCodec, task: FairseqTask, longest: int):
        self.codec, self.task, self.longest = codec, task, longest

    def tokens(self, lines: Sequence[str], name: str, empty_lines: str) -> List[Tensor]:
        """The tokens of every line, and an empty line that ends the document.

        A line of which nothing is left by normalisation, which prepare refuses, is an empty line here.

        Args:
            lines: a sentence a line, and marks.
            name: of the document, for messages.
            empty_lines: what they end.

        Raises:
            InputError: a sentence that is too long for the model; names document and line.
        """
        encoded = [text.strip() for text in self.codec.encode_lines(0, list(map(normalise, lines)))]
        for number, (line, text) in enumerate(zip(lines, encoded), start=1):
            if not text and line.strip():
                logger.warning(f"{name}:{number}: nothing of this line can be seen: taken as an empty line")
        if empty_lines == "paragraph":
            encoded = [text or PARAGRAPH for text in encoded]
        tokens = token_ids([*encoded, DOCUMENT], self.task.source_dictionary)
        for number, sentence in enumerate(tokens, start=1):
            if len(sentence) > self.longest:
                message = f"a sentence of {len(sentence):,} tokens, but the model takes {self.longest:,}; divide it"
                raise InputError.at(name, number, message)
        return tokens

    def prefixes(
        self, documents: Sequence[Sequence[str]], starts: Sequence[int], prefixes: Sequence[Sequence[str]]
    ) -> Dict[int, np.ndarray]:
        """The tokens [·] that translations begin with, by line number.

        Args:
            documents: as of :meth:`tokens`, each.
            starts: of each document, the number of its first line.
            prefixes: a line for each line of the documents, or none at all.

        Raises:
            InputError: prefixes of other lines, or for windows of several target sentences.
        """
        if not prefixes:
            return {}
        if [len(lines) for lines in prefixes] != [len(lines) for lines in documents]:
            raise InputError("--prefixes: as many lines as the text has")
        if getattr(self.task, "window", (1, 1))[1] > 1:
            raise InputError("--prefixes: not with --concatenate-target over 1")
        found = {}
        for start, lines in zip(starts, prefixes):
            encoded = self.codec.encode_lines(1, list(map(normalise, lines)))
            for number, tokens in enumerate(token_ids(encoded, self.task.target_dictionary), start=start):
                if len(tokens) > 1:
                    found[number] = tokens[:-1].numpy()
        return found
