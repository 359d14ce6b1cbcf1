"""Task ``concatenated_translation``: a sentence is translated together with previous ones, as one long sequence.

Baseline of context-aware models ([TS] Tiedemann and Scherrer, DiscoMT 2017): fairseq's datasets, models and search with
longer samples. The encoder reads every sentence once per window that contains it.
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

from docnmt_fairseq.data.concatenation import ConcatenationDataset, Hypothesis, keep_sentence, sentence_bounds
from docnmt_fairseq.data.index import LinesInMemory, Split, index_of
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.options import flag_of, option, problems_of
from docnmt_fairseq.tasks.documents import DocumentsConfig, DocumentsTask

logger = logging.getLogger(__name__)


@dataclass
class ConcatenatedTranslationConfig(DocumentsConfig):
    """Options of the task; they default to the values that the model was trained with."""

    concatenate_source: Optional[int] = option(
        None, "source sentences of a sample, including the sentence itself (default: as trained, else 2)", minimum=1
    )
    concatenate_target: Optional[int] = option(
        None, "target sentences of a sample, at most as many as source sentences; of a translation, the text after the "
        "last break is kept (default: as trained, else 1)", minimum=1,
    )  # fmt: skip
    break_symbol: Optional[str] = option(
        None, "symbol between sentences, added to dictionaries that lack it; dictionaries of docnmt prepare contain "
        "<p>, which allows fine-tuning a sentence-level model (default: as trained, else <brk>)"
    )  # fmt: skip


@register_task("concatenated_translation", dataclass=ConcatenatedTranslationConfig)
class ConcatenatedTranslationTask(DocumentsTask):
    """Translation task whose samples are windows of sentences."""

    cfg: ConcatenatedTranslationConfig
    interactive_state = ("open_lines",)
    view_defaults = {"concatenate_source": 2, "concatenate_target": 1, "break_symbol": "<brk>"}

    def __init__(self, cfg: ConcatenatedTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        refuse(problems_of(cfg, ConcatenatedTranslationConfig))
        self.open_lines: List[torch.Tensor] = []  # context of the next line in fairseq-interactive
        self.translated = self.wrong_breaks = 0

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), **{name: self.view(name) for name in self.view_defaults}}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.remember_view(state_dict)

    @property
    def window(self) -> Tuple[int, int]:
        """Maximum numbers of source and target sentences in a window."""
        source = self.view("concatenate_source")
        return source, min(source, self.view("concatenate_target"))

    @property
    def break_symbol(self) -> str:
        """Symbol between sentences."""
        return str(self.view("break_symbol"))

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Builds the model for dictionaries with the break symbol, which is known now."""
        for dictionary in (self.src_dict, self.tgt_dict):
            dictionary.add_symbol(self.break_symbol)
        return super().build_model(cfg, from_checkpoint)

    def _dataset(
        self, split: Split, carried: int = 0, shuffle: bool = False, *, alone: bool = False
    ) -> ConcatenationDataset:
        longest = (self.cfg.max_source_positions, self.cfg.max_target_positions)
        dictionaries = (self.src_dict, self.tgt_dict)
        window = (1, 1) if alone else self.window
        return ConcatenationDataset(
            split, dictionaries, self.break_symbol, window, longest, carried=carried, shuffle=shuffle
        )

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        documents = self.read_split(split, epoch, combine)
        dataset = self._dataset(documents, shuffle=self.is_training_set(split))
        self.datasets[split] = dataset
        logger.info(
            f"{documents.name}: {len(documents.index):,} documents, {len(documents.index.items):,} sentences in "
            f"windows of up to {self.window[0]}; source tokens: "
            f"{dataset.src_sizes.sum() / dataset.src.tokens.sum():.2f} times as many"
        )

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Union[int, Tuple[int, int], None] = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """Samples whose sentence is not too long for the model; context is shortened to fit."""
        if max_positions is not None:
            pair = max_positions if isinstance(max_positions, (tuple, list)) else (max_positions, max_positions)
            dataset.fit(*pair)
        kept = super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        self.check_some_left(kept, dataset, max_positions)
        return kept

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], constraints: Optional[torch.Tensor] = None
    ) -> ConcatenationDataset:
        """Dataset of the input lines of fairseq-interactive; a document continues until an empty line."""
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
        for name in ("print_alignment", "prefix_size"):  # they would apply to the whole window
            if self.window[1] > 1 and getattr(args, name, None):
                raise InputError(f"{flag_of(name)}: not supported with --concatenate-target > 1")
        return super().build_generator(models, args, *more, **kwargs)

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Dict[str, Any],
        prefix_tokens: Optional[torch.Tensor] = None,
        constraints: Optional[torch.Tensor] = None,
    ) -> List[List[Hypothesis]]:
        """Hypotheses of the sentences, in the order of their windows' scores.

        The target of the batch is reduced to the sentences, too: fairseq prints it and computes BLEU with it.
        """
        hypotheses = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if sample.get("target") is not None:
            number, padding = self.tgt_dict.index(self.break_symbol), self.tgt_dict.pad()
            starts = [sentence_bounds(row, number, self.window[1])[0] for row in sample["target"]]
            rows = [row[start:] for row, start in zip(sample["target"], starts)]
            sample["target"] = collate_tokens([row[row.ne(padding)] for row in rows], padding)
        normalised = getattr(generator, "normalize_scores", True)  # the scorer of references always normalises
        penalty = getattr(generator, "len_penalty", 1.0) if normalised else None
        return self.of_sentences(sample["net_input"]["src_tokens"], hypotheses, penalty)

    def of_sentences(
        self, src_tokens: torch.Tensor, hypotheses: List[List[Hypothesis]], len_penalty: Optional[float]
    ) -> List[List[Hypothesis]]:
        number, eos = self.tgt_dict.index(self.break_symbol), self.tgt_dict.eos()
        breaks = src_tokens.eq(self.src_dict.index(self.break_symbol)).sum(1)
        places = breaks.clamp(max=self.window[1] - 1).tolist()  # of the sentences in the translations of the windows
        self._count_breaks(places, hypotheses, number)
        return [
            [keep_sentence(one, place, number, eos, len_penalty) for one in several]
            for place, several in zip(places, hypotheses)
        ]

    def _count_breaks(self, expected: List[int], hypotheses: List[List[Hypothesis]], number: int) -> None:
        """Counts translations with another number of breaks than expected; warns whenever their number has doubled."""
        before = self.wrong_breaks
        found = (int(several[0]["tokens"].eq(number).sum()) for several in hypotheses)
        self.translated += len(hypotheses)
        self.wrong_breaks += sum(one != other for one, other in zip(found, expected))
        if self.wrong_breaks.bit_length() > before.bit_length():
            logger.warning(
                f"{self.wrong_breaks:,} of {self.translated:,} translations have an unexpected number of "
                f"{self.break_symbol}; sentences too many are dropped, and of too few the last one is used"
            )
