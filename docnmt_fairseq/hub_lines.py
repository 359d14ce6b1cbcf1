"""Lines that a script gives to a model it has by ``from_pretrained``: they become tokens as those of
fairseq-interactive do.

fairseq's hub interface leaves that to tokenizer and subword model, which make a sentence of a mark, and begin none with
a language token; the task knows both, and is asked by fairseq-interactive alone.
"""

from typing import Any

from torch import Tensor


def patch_fairseq() -> None:
    """Lets fairseq's hub interface ask the task in this process."""
    from fairseq.hub_utils import GeneratorHubInterface

    def encode(self: Any, sentence: str) -> Tensor:
        (tokens,), _ = self.task.get_interactive_tokens_and_lengths(
            [sentence], lambda line: self.apply_bpe(self.tokenize(line))
        )
        return tokens

    GeneratorHubInterface.encode = encode
