"""Lines of text as the tokens of a model, and what is told of their translations."""

import logging
from typing import Dict, List, Sequence, Tuple

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
        longest: tokens of a sentence that the model takes, and of a translation.
    """

    def __init__(self, codec: TextCodec, task: FairseqTask, longest: Tuple[int, int]):
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
            if len(sentence) > self.longest[0]:
                message = f"a sentence of {len(sentence):,} tokens, but the model takes {self.longest[0]:,}; divide it"
                raise InputError.at(name, number, message)
        return tokens

    def beside(
        self,
        option: str,
        documents: Sequence[Sequence[str]],
        starts: Sequence[int],
        told: Sequence[Sequence[str]],
    ) -> Dict[int, Tensor]:
        """The tokens [·] of target lines beside the text, the end of sentence included, by line number.

        Args:
            option: that they were given by, for messages.
            documents: as of :meth:`tokens`, each.
            starts: of each document, the number of its first line.
            told: a line for each line of the documents, of which empty ones are left out; or none at all.

        Raises:
            InputError: they are of other lines, for windows of several target sentences, too long for the model, or
                have the padding, which no translation has.
        """
        if not told:
            return {}
        if [len(lines) for lines in told] != [len(lines) for lines in documents]:
            raise InputError(f"{option}: as many lines as the text has")
        if getattr(self.task, "window", (1, 1))[1] > 1:
            raise InputError(f"{option}: not with --concatenate-target over 1")
        found = {}
        for start, lines in zip(starts, told):
            encoded, dictionary = self.codec.encode_lines(1, list(map(normalise, lines))), self.task.target_dictionary
            for number, tokens in enumerate(token_ids(encoded, dictionary), start=start):
                if len(tokens) > self.longest[1]:
                    message = f"a line of {len(tokens):,} tokens, but the model writes {self.longest[1]:,}"
                    raise InputError(f"{option}: {message}: {lines[number - start][:40]!r}")
                if tokens.eq(dictionary.pad()).any():
                    message = f"{dictionary.pad_word} is no word of a translation"
                    raise InputError(f"{option}: {lines[number - start][:40]!r}: {message}")
                if len(tokens) > 1:
                    found[number] = tokens
        return found
