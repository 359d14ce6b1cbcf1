"""Dictionaries of data-bins, with language tokens and byte pieces, and their comparison with those of a checkpoint."""

import hashlib
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

from fairseq.data import Dictionary
from torch import Tensor

from docnmt_fairseq.errors import InputError

DIGESTS = "dictionaries"  # key in a task's state: digests of the source and target dictionary
LANGUAGES = ("source_lang", "target_lang")  # further keys


class LanguageDictionary(Dictionary):
    """fairseq's dictionary with the language token that starts every sentence of its side.

    Attributes:
        language_token: index of the token, or None.
    """

    language_token: Optional[int] = None

    @classmethod
    def of_file(cls, path: Union[str, Path]) -> "LanguageDictionary":
        """Loads ``dict.SIDE.txt`` of a data-bin; :class:`InputError` if it is missing or damaged."""
        from docnmt_fairseq.corpus.data_bin import dictionary_errors, read_language_tokens

        with dictionary_errors(path):
            dictionary: LanguageDictionary = cls.load(str(path))
        side = Path(path).name.removeprefix("dict.").removesuffix(".txt")
        token = read_language_tokens(Path(path).parent).get(side)
        if token is not None:
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
        """Text of tokens without the language token, with byte pieces decoded."""
        from docnmt_fairseq.corpus.subwords import join_subwords

        ignored = set(extra_symbols_to_ignore or ())
        if self.language_token is not None:
            ignored.add(self.language_token)
        text: str = super().string(tensor, None, escape_unk, ignored, *args, **kwargs)
        return "\n".join(join_subwords(sentence, bpe_symbol) for sentence in text.split("\n"))


def digest_of(dictionary: Dictionary) -> str:
    """SHA-256 of the symbols in order; counts are ignored."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8")).hexdigest()


def check_trained(trained: Mapping[str, Any], given: Mapping[str, Any], folder: Path) -> None:
    """Compares the dictionaries and languages of a task with those that a model was trained with.

    fairseq compares sizes only: with another dictionary of the same size the model would read and write other words.

    Args:
        trained: state of the task in the checkpoint; that of fairseq's own tasks has no digests.
        given: state of the current task.
        folder: current data-bin.

    Raises:
        InputError: the dictionaries differ, or source and target language are swapped.
    """
    of_model, of_task = ([state.get(name) for name in LANGUAGES] for state in (trained, given))
    if of_model[0] != of_model[1] and of_model == of_task[::-1]:
        raise InputError(
            f"--source-lang {of_task[0]} --target-lang {of_task[1]}: the model translates from {of_model[0]} to "
            f"{of_model[1]}"
        )
    for side, language, old, new in zip(("source", "target"), of_task, trained.get(DIGESTS) or (), given[DIGESTS]):
        if old != new:
            raise InputError(
                f"{folder / f'dict.{language}.txt'}: the model was trained with another {side} dictionary; use the "
                "data-bin of its training"
            )
