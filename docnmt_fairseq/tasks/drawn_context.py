"""The sentences of the training set that a task's models have as context, read when the first model asks for them."""

from pathlib import Path
from typing import Optional, Tuple

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel

from docnmt_fairseq.context.selected.base import drawn_contexts
from docnmt_fairseq.data.training_sentences import TrainingSentences, read_training_sentences


class DrawnContext:
    """What a task's models want of the training set.

    Args:
        data_bin: the first, whose training set it is.
        split: the name of the training set.
        languages: source, target.
        dictionary: of the source.
        paragraph_symbol: number of ``<p>``, None if the dictionary lacks it.
        dataset_impl: fairseq's option.
    """

    def __init__(
        self,
        data_bin: Path,
        split: str,
        languages: Tuple[str, str],
        dictionary: Dictionary,
        paragraph_symbol: Optional[int],
        dataset_impl: Optional[str],
    ):
        self.where = (data_bin, split, languages, dictionary, dataset_impl)
        self.paragraph_symbol = paragraph_symbol
        self.sentences: Optional[TrainingSentences] = None

    def serve(self, model: BaseFairseqModel, seed: int) -> None:
        """Reads the training set if a model wants its sentences, as many as it wants for each.

        Args:
            model: which.
            seed: that it was trained with.

        Raises:
            InputError: there is no training set.
        """
        needed = drawn_contexts(model)
        if needed > (0 if self.sentences is None else self.sentences.contexts):
            lines = read_training_sentences(*self.where)
            # the model's own limit: options of the command line, which is not that of the training, must not matter
            longest = model.max_positions()[0]
            self.sentences = TrainingSentences(lines, self.paragraph_symbol, needed, seed, longest)
