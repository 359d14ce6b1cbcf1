"""Task ``document_translation``: translate sentences in sight of their documents, through fairseq's own commands."""

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task

from docnmt_fairseq.data.document_dataset import DocumentDataset
from docnmt_fairseq.data.document_index import DocumentIndex
from docnmt_fairseq.data.open_document import OpenBatch, OpenDocument
from docnmt_fairseq.data.similar import how_to_make, read_similar, vectors_file
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.embedding.neighbours import neighbours_in_memory
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.modules.context_selection import similar_contexts
from docnmt_fairseq.modules.keep_schedule import KeepSchedule
from docnmt_fairseq.search.rounds import translate_in_rounds, with_target_context
from docnmt_fairseq.tasks.documents import DocumentsConfig, DocumentsTask, option

logger = logging.getLogger(__name__)


@dataclass
class DocumentTranslationConfig(DocumentsConfig):
    """Options of the task; an unset view of documents is the one that the model was trained with."""

    context: Optional[ChoiceEnum(["document", "none"])] = option(
        None, "none hides everything but the sentence itself (default: as trained, else document)"
    )
    context_dropout: float = option(0.0, "probability of hiding the context of a whole document in training")
    max_document_sentences: Optional[int] = option(
        None, "longer documents are cut into consecutive pieces; 0: no limit (default: as trained, else 128)"
    )
    max_document_tokens: Optional[int] = option(
        None, "documents of more source or target tokens are cut too; 0: no limit (default: as trained, else 4096)"
    )
    context_overlap: Optional[int] = option(
        None, "sentences before a piece that are encoded with it but not translated (default: as trained, else 0)"
    )
    context_overlap_after: Optional[int] = option(None, "the same after a piece")


@register_task("document_translation", dataclass=DocumentTranslationConfig)
class DocumentTranslationTask(DocumentsTask):
    """A stock translation task whose datasets are documents."""

    cfg: DocumentTranslationConfig
    view_defaults = {
        "context": "document",
        "max_document_sentences": 128,
        "max_document_tokens": 4096,
        "context_overlap": 0,
        "context_overlap_after": 0,
    }

    def __init__(self, cfg: DocumentTranslationConfig, src_dict: object, tgt_dict: object):
        super().__init__(cfg, src_dict, tgt_dict)
        self.similar_contexts = 0  # similar sentences of each that the model wants to know
        self.open_document = OpenDocument(
            src_dict.pad(), src_dict.eos(), self.paragraph_symbols()[0], self._similar_in_memory
        )
        if not 0 <= cfg.context_dropout <= 1:
            raise InputError(f"--context-dropout {cfg.context_dropout}: a probability is between 0 and 1")
        for name in ("max_document_sentences", "max_document_tokens", "context_overlap", "context_overlap_after"):
            if (getattr(cfg, name) or 0) < 0:
                raise InputError(f"--{name.replace('_', '-')} {getattr(cfg, name)}: must not be negative")

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> torch.nn.Module:
        """Returns the model; one from a checkpoint brings its view of documents along."""
        if from_checkpoint:
            self.remember_view({name: getattr(cfg, name, None) for name in self.view_defaults})
        model = super().build_model(cfg, from_checkpoint)
        self.similar_contexts = max(self.similar_contexts, similar_contexts(model))
        return model

    def build_criterion(self, cfg: FairseqDataclass, *args, **kwargs) -> torch.nn.Module:
        """Returns the criterion; ``InputError`` for an option that needs padded outputs."""
        if getattr(cfg, "ignore_prefix_size", 0) > 0:
            raise InputError("--ignore-prefix-size needs padded batches; with document_translation it must be 0")
        return super().build_criterion(cfg, *args, **kwargs)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs) -> None:
        """Loads a split of the data-bin as documents.

        Raises:
            InputError: the marks of both sides differ, a misplaced ``<p>``, no sentence; the model's context sentences
                are the similar ones, and the data-bin does not say which these are.
        """
        pair, index, name = self.read_split(split, epoch, combine)
        similar = None
        if self.similar_contexts:
            folder, languages = self.folder_of(split, epoch), (self.cfg.source_lang, self.cfg.target_lang)
            similar = read_similar(folder, split, languages, pair.src, self.similar_contexts)
        self.datasets[split] = self._dataset(pair.src, pair.tgt, index, name, split == self.cfg.train_subset, similar)
        pieces, longest = len(self.datasets[split]), int(np.diff(index.documents).max())
        logger.info(
            f"{name}: {len(index):,} documents, {len(index.paragraphs):,} paragraphs, {len(index.items):,} sentences; "
            f"longest document {longest:,} sentences; {pieces:,} pieces"
        )

    def _dataset(
        self,
        source: object,
        target: Optional[object],
        index: DocumentIndex,
        name: str = "input",
        training: bool = False,
        similar: Optional[np.ndarray] = None,
    ) -> DocumentDataset:
        return DocumentDataset(
            source,
            target,
            index,
            self.src_dict.pad(),
            self.src_dict.eos(),
            max_sentences=self.view("max_document_sentences"),
            max_tokens=self.view("max_document_tokens"),
            overlap=(self.view("context_overlap"), self.view("context_overlap_after")),
            with_context=str(self.view("context")) == "document",
            context_dropout=self.cfg.context_dropout if training else 0.0,
            shuffle=training,
            seed=self.cfg.seed,
            name=name,
            similar=self._similar_in_memory(source, index) if similar is None else similar,
        )

    def _similar_in_memory(self, lines: object, index: DocumentIndex) -> Optional[np.ndarray]:
        """Returns which sentences are similar in text that is in no data-bin; None if the model does not ask."""
        if not self.similar_contexts:
            return None
        folder = self.folder_of()
        neighbours = self.sentence_vectors.settings.neighbours
        if neighbours < self.similar_contexts:
            command = how_to_make(folder, self.cfg.source_lang, self.similar_contexts)
            raise InputError(f"--memory-contexts {self.similar_contexts}: more than {neighbours}; {command} makes more")
        return neighbours_in_memory(self.sentence_vectors, lines, index, self.src_dict.symbols)

    @cached_property
    def sentence_vectors(self) -> SentenceEmbedding:
        """Returns the vectors by which sentences in memory are similar, those of the (first) data-bin.

        Raises:
            InputError: it has none.
        """
        folder = self.folder_of()
        file = vectors_file(folder, self.cfg.source_lang)
        if not file.is_file():
            command = how_to_make(folder, self.cfg.source_lang, self.similar_contexts)
            raise InputError(f"--memory-selection similar: there is no {file}; make it with {command}")
        return SentenceEmbedding.load(file, "--memory-selection similar:")

    def filter_indices_by_size(
        self, indices: np.ndarray, dataset: object, max_positions: object = None, ignore_invalid_inputs: bool = False
    ) -> np.ndarray:
        """Returns all pieces; sentences too long for the model are taken out of them where that is allowed."""
        if not isinstance(dataset, DocumentDataset) or max_positions is None:
            return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        longest = max_positions if isinstance(max_positions, (tuple, list)) else (max_positions, max_positions)
        long = dataset.too_long(*longest)
        if len(long) and not ignore_invalid_inputs:
            raise InputError(
                f"{dataset.name}: line {dataset.index.items[long[0]] + 1} (and {len(long) - 1:,} more) is longer than "
                f"{longest} tokens; raise --max-source-positions and --max-target-positions, or leave such sentences "
                "out with --skip-invalid-size-inputs-valid-test"
            )
        if len(long):
            ids = dataset.index.items[long[:10]].tolist()
            logger.warning(
                f"{dataset.name}: {len(long):,} sentences are longer than {longest} tokens and left out, "
                f"first ids: {ids}"
            )
        dataset.skip(long)
        return indices[dataset.decoded_sentences()[indices] > 0]

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], constraints: Optional[torch.Tensor] = None
    ) -> DocumentDataset:
        """Returns the lines of fairseq-interactive as documents; lines of an unfinished one see those before them."""
        context = str(self.view("context")) == "document"
        limits = (self.view("max_document_sentences"), self.view("max_document_tokens"))
        overlap = (self.view("context_overlap"), self.view("context_overlap_after"))
        return self.open_document.extend(src_tokens, context, *limits, overlap)

    def inference_step(
        self, generator: object, models: List, sample: Dict, prefix_tokens: object = None, constraints: object = None
    ) -> List:
        """Returns the hypotheses of a batch, completing what fairseq-interactive left of it."""
        takers = [takes_layout(model) for model in models]
        if any(takers) and not all(takers):
            raise InputError("--path: an ensemble of models with and without document context is not supported")
        typed: Optional[OpenBatch] = None
        if all(takers) and "layout" not in sample["net_input"]:
            typed = self.open_document.batch_of(sample["net_input"]["src_lengths"])
            sample["net_input"]["layout"] = typed.layout

        def search(batch: Dict, prefix_tokens: Optional[torch.Tensor]) -> List:
            return super(DocumentTranslationTask, self).inference_step(
                generator, models, batch, prefix_tokens, constraints
            )

        # To score a reference is no search: it stands in the sight of the references before it.
        if isinstance(generator, SequenceScorer) or not with_target_context(models):
            return search(for_model(models[0], sample), prefix_tokens)
        histories = {} if typed is None else dict(typed.histories)
        hypotheses = translate_in_rounds(search, models, sample, prefix_tokens, histories)
        if typed is not None and typed.stays_open is not None:
            self.open_document.history = histories[typed.stays_open]
        return hypotheses

    def train_step(self, sample: Dict, model: torch.nn.Module, *args, **kwargs) -> Tuple:
        """Returns fairseq's loss, sample size and log; logs how many sentences a word keeps while that number falls."""
        result = super().train_step(for_model(model, sample), model, *args, **kwargs)
        schedule = next((module for module in model.modules() if isinstance(module, KeepSchedule)), None)
        if schedule is not None and sample:
            kept = schedule.kept(sample["net_input"]["layout"].sentences.lengths)
            metrics.log_scalar("kept_sentences", float(kept.mean()), weight=len(kept), priority=500, round=2)
        return result

    def valid_step(self, sample: Dict, model: torch.nn.Module, criterion: torch.nn.Module) -> Tuple:
        """Returns fairseq's loss, sample size and log."""
        return super().valid_step(for_model(model, sample), model, criterion)


def takes_layout(model: torch.nn.Module) -> bool:
    """Returns whether the model looks across sentences; fairseq's own models translate each by itself."""
    return getattr(model, "takes_layout", False)


def for_model(model: torch.nn.Module, sample: Dict) -> Dict:
    """Returns the batch as the model takes it."""
    if takes_layout(model) or "net_input" not in sample:
        return sample
    net_input = {name: value for name, value in sample["net_input"].items() if name != "layout"}
    return {**sample, "net_input": net_input}
