"""Subwords back to text: as fairseq joins them, and pieces that are bytes as the characters that these make."""

import codecs
import re
from typing import List, Optional, Sequence

WORD_BEGINS = "\u2581"  # SentencePiece's, for the space before a word
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BYTES = re.compile(r"(?<!\S)<0x[0-9A-F]{2}>(?: <0x[0-9A-F]{2}>)*(?!\S)")
NO_TEXT = re.compile(r"[\s\x00-\x1f\x7f]")  # what a line of text holds as a space, if at all


def join_subwords(tokens: str, symbol: Optional[str]) -> str:
    """The text of tokens with spaces between.

    Args:
        tokens: of a sentence.
        symbol: what fairseq's ``--post-process`` takes; None: tokens stay apart.

    Raises:
        NotImplementedError: fairseq does not know the symbol.
    """
    from fairseq.data.data_utils import post_process

    if symbol == "sentencepiece" and "<0x" in tokens:
        tokens = BYTES.sub(lambda run: "".join(characters_of(run[0].split(" "))), tokens)
    text: str = post_process(tokens, symbol)
    return text


def characters_of(tokens: Sequence[str]) -> List[str]:
    """What each token shows: of the bytes of a character the last one shows it, those before nothing.

    Other tokens show themselves. Bytes that make no character show U+FFFD, as SentencePiece decodes them; one that is
    white space or a control sign, which no text was encoded to, begins a word.
    """
    shown, decoder = list(tokens), codecs.getincrementaldecoder("utf-8")(errors="replace")
    for number, token in enumerate(tokens):
        byte = BYTE.fullmatch(token)
        if byte is None:
            continue
        ends = number + 1 == len(tokens) or BYTE.fullmatch(tokens[number + 1]) is None
        shown[number] = NO_TEXT.sub(WORD_BEGINS, decoder.decode(bytes.fromhex(byte[1]), final=ends))
    return shown
