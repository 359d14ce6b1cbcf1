"""Task ``concatenated_translation``: a sentence is read together with those before it, as one long sequence.

The baseline of all context-aware models ([TS] Tiedemann and Scherrer, DiscoMT 2017): fairseq's own datasets, models
and search; only the samples are longer. The encoder reads every sentence as often as it is in a window.
"""

import logging
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task

from docnmt_fairseq.data.batching import check_some_left
from docnmt_fairseq.data.concatenation import ConcatenationDataset, Hypothesis, keep_last_sentence, last_sentence_start
from docnmt_fairseq.data.interactive import LinesInMemory, index_of
from docnmt_fairseq.data.split import Split
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option
from docnmt_fairseq.tasks.documents import DocumentsConfig, DocumentsTask

logger = logging.getLogger(__name__)


@dataclass
class ConcatenatedTranslationConfig(DocumentsConfig):
    """Options of the task; unset ones are what the model was trained with."""

    concatenate_source: Optional[int] = option(
        None, "source sentences of a sample: the sentence and those before it in its document (default: as trained, "
        "else 2)"
    )  # fmt: skip
    concatenate_target: Optional[int] = option(
        None, "target sentences of a sample, 1: only the sentence itself; of a translation what follows the last break "
        "is kept (default: as trained, else 1)"
    )  # fmt: skip
    break_symbol: Optional[str] = option(
        None, "symbol between sentences, added to dictionaries that lack it; those of docnmt prepare have <p>, with "
        "which a sentence-level model can be the start (default: as trained, else <brk>)"
    )  # fmt: skip


@register_task("concatenated_translation", dataclass=ConcatenatedTranslationConfig)
class ConcatenatedTranslationTask(DocumentsTask):
    """A stock translation task whose samples are windows of sentences."""

    cfg: ConcatenatedTranslationConfig
    view_defaults = {"concatenate_source": 2, "concatenate_target": 1, "break_symbol": "<brk>"}

    def __init__(self, cfg: ConcatenatedTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        self.open_lines: List[torch.Tensor] = []  # of fairseq-interactive: context of the next line
        self.translated = self.other_breaks = 0

    def state_dict(self) -> Dict[str, Any]:
        """How documents are seen, too; fairseq keeps it in the checkpoint."""
        return {**super().state_dict(), **{name: self.view(name) for name in self.view_defaults}}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes how the model of a checkpoint saw documents, too."""
        super().load_state_dict(state_dict)
        self.remember_view(state_dict)

    @property
    def window(self) -> Tuple[int, int]:
        """Sentences of a window at most, of source and target."""
        return self.view("concatenate_source"), self.view("concatenate_target")

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """The model, for dictionaries that hold the break symbol; checks the options, which are known now.

        Raises:
            InputError: options out of range.
        """
        source, target = self.window
        if source < 1 or not 1 <= target <= source:
            raise InputError(
                f"--concatenate-source {source} --concatenate-target {target}: both are at least 1, and no more target "
                "than source sentences"
            )
        symbol = str(self.view("break_symbol"))
        if symbol.split() != [symbol]:
            raise InputError(f"--break-symbol {symbol!r}: must be one symbol without spaces")
        for dictionary in (self.src_dict, self.tgt_dict):
            dictionary.add_symbol(symbol)
        return super().build_model(cfg, from_checkpoint)

    def _dataset(
        self,
        split: Split,
        carried: int = 0,
        shuffle: bool = False,
        *,
        alone: bool = False,
    ) -> ConcatenationDataset:
        longest = (self.cfg.max_source_positions, self.cfg.max_target_positions)
        dictionaries = (self.src_dict, self.tgt_dict)
        symbol = str(self.view("break_symbol"))
        window = (1, 1) if alone else self.window
        return ConcatenationDataset(split, dictionaries, symbol, window, longest, carried=carried, shuffle=shuffle)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split of the data-bin as windows.

        Raises:
            InputError: the marks of both sides differ, a misplaced ``<p>``, no sentence.
        """
        documents = self.read_split(split, epoch, combine)
        dataset, index = self._dataset(documents, shuffle=self.serves_training), documents.index
        self.datasets[self.place_of(split)] = dataset
        logger.info(
            f"{documents.name}: {len(index):,} documents, {len(index.items):,} sentences, read with up to "
            f"{self.window[0] - 1} before each; {dataset.src_sizes.sum() / dataset.src.tokens.sum():.2f} source tokens "
            "for one"
        )

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Union[int, Tuple[int, int], None] = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """The samples whose sentence is not too long for the model; context is shortened to what it takes."""
        if max_positions is not None:
            pair = max_positions if isinstance(max_positions, (tuple, list)) else (max_positions, max_positions)
            dataset.fit(*pair)
        kept = super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        check_some_left(kept, dataset, self.data_bin())
        return kept

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], constraints: Optional[torch.Tensor] = None
    ) -> ConcatenationDataset:
        """The lines of fairseq-interactive as windows; a document goes on until an empty line ends it."""
        carried, lines = self.open_lines, [*self.open_lines, *src_tokens]
        together = LinesInMemory(lines)
        index = index_of(together, self.paragraph_symbols()[0])
        ended = max((number for number, line in enumerate(lines) if len(line) == 1), default=-1)
        sentences = index.items[index.items > ended]
        self.open_lines = [lines[item] for item in sentences[max(0, len(sentences) + 1 - self.window[0]) :]]
        return self._dataset(Split(together, None, index), carried=len(carried))

    def build_generator(
        self, models: List[BaseFairseqModel], args: GenerationConfig, *more: Any, **kwargs: Any
    ) -> Union[SequenceGenerator, SequenceScorer]:
        """fairseq's search; ``InputError`` for options that do not fit targets of several sentences."""
        if self.window[1] > 1 and getattr(args, "print_alignment", None):
            raise InputError("--print-alignment: not supported with --concatenate-target over 1")
        return super().build_generator(models, args, *more, **kwargs)

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Dict[str, Any],
        prefix_tokens: Optional[torch.Tensor] = None,
        constraints: Optional[torch.Tensor] = None,
    ) -> List[List[Hypothesis]]:
        """The hypotheses of the sentences themselves, best first as the search ranks them with their context.

        The batch's target, too, becomes that of the sentences: fairseq prints it and computes BLEU with it.
        """
        if self.window[1] == 1:
            return super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if prefix_tokens is not None:
            raise InputError("--prefix-size: not supported with --concatenate-target over 1")
        hypotheses = super().inference_step(generator, models, sample, constraints=constraints)
        number = self.tgt_dict.index(str(self.view("break_symbol")))
        if sample.get("target") is not None:
            rows = [row[last_sentence_start(row, number) :] for row in sample["target"]]
            sample["target"] = collate_tokens([row[row.ne(self.tgt_dict.pad())] for row in rows], self.tgt_dict.pad())
        normalised = getattr(generator, "normalize_scores", True)  # a rescoring of the reference always is
        penalty = getattr(generator, "len_penalty", 1.0) if normalised else None
        return self.of_sentences(sample["net_input"]["src_tokens"], hypotheses, penalty)

    def of_sentences(
        self, src_tokens: torch.Tensor, hypotheses: List[List[Hypothesis]], len_penalty: Optional[float]
    ) -> List[List[Hypothesis]]:
        """The hypotheses of the sentences themselves, from those of windows [S, m]."""
        if self.window[1] == 1:
            return hypotheses
        symbol = str(self.view("break_symbol"))
        self._count_breaks(src_tokens, hypotheses, symbol)
        number = self.tgt_dict.index(symbol)
        return [[keep_last_sentence(one, number, len_penalty) for one in several] for several in hypotheses]

    def _count_breaks(self, src_tokens: torch.Tensor, hypotheses: List[List[Hypothesis]], symbol: str) -> None:
        """Counts the best hypotheses that have other breaks than their source has, and warns each time they doubled."""
        wanted = src_tokens.eq(self.src_dict.index(symbol)).sum(1).clamp(max=self.window[1] - 1)  # [S]
        number, before = self.tgt_dict.index(symbol), self.other_breaks
        found = (int(several[0]["tokens"].eq(number).sum()) for several in hypotheses)
        self.translated += len(hypotheses)
        self.other_breaks += sum(one != other for one, other in zip(found, wanted.tolist()))
        if self.other_breaks.bit_length() > before.bit_length():
            logger.warning(
                f"{self.other_breaks:,} of {self.translated:,} translations so far have more or fewer {symbol} than "
                "they should; what follows the last one is taken, all where there is none"
            )
