"""Dictionaries of data-bins: sentences may begin with language tokens, and pieces may be bytes."""

from pathlib import Path
from typing import Iterable, Optional, Union

from fairseq.data import Dictionary
from torch import Tensor

from docnmt_fairseq.corpus.dictionaries import damage_told
from docnmt_fairseq.corpus.joining import join_subwords
from docnmt_fairseq.corpus.language_tokens import read_language_tokens
from docnmt_fairseq.errors import InputError


class LanguageDictionary(Dictionary):
    """fairseq's dictionary, and the language token that sentences begin with, which their text does not show.

    Attributes:
        language_token: its number; None: there is none.
    """

    language_token: Optional[int] = None

    @classmethod
    def of_file(cls, path: Union[str, Path]) -> "LanguageDictionary":
        """The dictionary of a data-bin's file ``dict.SIDE.txt``.

        Raises:
            InputError: it is damaged, or lacks the language token that the data-bin names.
        """
        with damage_told(path):
            dictionary: LanguageDictionary = cls.load(str(path))
        side = Path(path).name.removeprefix("dict.").removesuffix(".txt")
        token = read_language_tokens(Path(path).parent).get(side)
        if token is not None:
            if token not in dictionary:
                raise InputError(f"{path}: lacks the language token {token}; give the model's own dictionary")
            dictionary.language_token = dictionary.index(token)
        return dictionary

    def string(
        self,
        tensor: Tensor,
        bpe_symbol: Optional[str] = None,
        escape_unk: bool = False,
        extra_symbols_to_ignore: Optional[Iterable[int]] = None,
        *args: object,
        **kwargs: object,
    ) -> str:
        """fairseq's, without the language token, and with characters for the pieces that are bytes."""
        ignored = set(extra_symbols_to_ignore or ())
        if self.language_token is not None:
            ignored.add(self.language_token)
        text: str = super().string(tensor, None, escape_unk, ignored, *args, **kwargs)
        return "\n".join(join_subwords(sentence, bpe_symbol) for sentence in text.split("\n"))
