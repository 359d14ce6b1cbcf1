"""Task ``document_translation``: sentences translated with their documents as context, by fairseq's commands."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from torch import nn

from docnmt_fairseq.batch.layout import PlanKey
from docnmt_fairseq.context.base import ContextMechanism
from docnmt_fairseq.context.selected.base import needed_contexts
from docnmt_fairseq.data.chunking import ChunkLimits, ContextDropout
from docnmt_fairseq.data.dataset import DocumentDataset, Sample
from docnmt_fairseq.data.extra_sources import (
    FORMS,
    NONE,
    OPTION,
    ExtraSourceData,
    ExtraSourceInput,
    SourceSpec,
    parse_specs,
)
from docnmt_fairseq.data.index import DocumentIndex, Lines, Split
from docnmt_fairseq.data.loading import load_required_side
from docnmt_fairseq.data.selected_context import TrainingSentences
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.models.base import all_take_layouts, batch_for_model, takes_layout
from docnmt_fairseq.options import option, problems_of
from docnmt_fairseq.tasks.auxiliary_losses import SelectionSchedules, StepResult
from docnmt_fairseq.tasks.documents import DocumentsConfig, DocumentsTask

if TYPE_CHECKING:
    from docnmt_fairseq.data.interactive import OpenBatch, OpenDocument
    from docnmt_fairseq.embedding.neighbours import SimilarContext
    from docnmt_fairseq.search.sequential_decoding import Hypotheses

logger = logging.getLogger(__name__)


@dataclass
class DocumentTranslationConfig(DocumentsConfig):
    """Options of the task. The view of documents defaults to the one that the model was trained with."""

    # fairseq takes the choices of an option from its annotation
    context: Optional[ChoiceEnum(["document", "none"])] = option(  # type: ignore[valid-type]
        None, "none hides all other sentences (default: as trained, else document)"
    )
    context_dropout: float = option(
        0.0, "probability of hiding the context of a whole document in training", minimum=0, maximum=1
    )
    source_context_dropout: float = option(
        0.0, "probability of hiding the source context only, so that the model learns to use previous translations",
        minimum=0, maximum=1,
    )  # fmt: skip
    max_document_sentences: Optional[int] = option(
        None,
        "maximum number of sentences; longer documents are split into consecutive chunks; 0: no limit (default: as "
        "trained, else 128)",
        minimum=0,
    )
    max_document_tokens: Optional[int] = option(
        None,
        "maximum number of source tokens, in training also of target tokens; 0: no limit (default: as trained, else "
        "4096)",
        minimum=0,
    )
    context_overlap: Optional[int] = option(
        None,
        "sentences before a chunk that are encoded with it but not translated (default: as trained, else 0)",
        minimum=0,
    )
    context_overlap_after: Optional[int] = option(None, "the same after a chunk", minimum=0)
    extra_sources: Optional[str] = option(
        None,
        f"additional inputs of a sentence, separated by commas: {FORMS}; N sentences of its document (default: 1), a "
        "text in the data-bin, or matrices next to it; none (default: as trained, else none)",
    )


@register_task("document_translation", dataclass=DocumentTranslationConfig)
class DocumentTranslationTask(DocumentsTask):
    """Translation task whose samples are documents.

    Attributes:
        similar: similar sentences as context; None if no model uses them.
        training_sentences: random sentences of the training set as context; None if no model uses them.
    """

    cfg: DocumentTranslationConfig
    interactive_state = ("open_document",)
    view_defaults = {
        "context": "document",
        "max_document_sentences": 128,
        "max_document_tokens": 4096,
        "context_overlap": 0,
        "context_overlap_after": 0,
        "extra_sources": NONE,
    }

    def __init__(self, cfg: DocumentTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        refuse(problems_of(cfg, DocumentTranslationConfig))
        self.similar: Optional[SimilarContext] = None
        self.training_sentences: Optional[TrainingSentences] = None
        self.model: Optional[BaseFairseqModel] = None  # the model that batches are made for
        self.plans: Tuple[PlanKey[Any], ...] = ()  # plans that it requests from layouts
        self.device = torch.device("cpu")
        self.schedules = SelectionSchedules(nn.Module())
        self.in_train_step = True  # logging outputs are of training, not validation
        self.context_dropout = ContextDropout(cfg.context_dropout, cfg.source_context_dropout, cfg.seed)
        parse_specs(cfg.extra_sources)

    # --- Models ---

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Builds the model; a model from a checkpoint sets the view of documents."""
        if from_checkpoint:
            self._restore_view(cfg)
        elif self.extra_sources and hasattr(cfg, "extra_feature_dims") and not cfg.extra_feature_dims:
            widths = (given.width for given in self.extra_inputs(self.extra_sources))
            cfg.extra_feature_dims = [width for width in widths if width]  # saved in checkpoints
        model = super().build_model(cfg, from_checkpoint)
        if not from_checkpoint:
            self._report_no_context(model)
        self._read_similar_sentences(needed_contexts(model, "similar"))
        self._read_training_sentences(model, getattr(cfg, "seed", self.cfg.seed))
        if takes_layout(model):  # its plans are requested later, when its device is known
            self.model, self.schedules = model, SelectionSchedules(model)
        return model

    def _report_no_context(self, model: BaseFairseqModel) -> None:
        if any(spec.of_document for spec in self.extra_sources):
            return
        if str(self.view("context")) == NONE:
            logger.info("no context: --context none hides the other sentences of a document")
        elif not any(isinstance(part, ContextMechanism) for part in model.modules()):
            logger.info("no context: the model has no context mechanism; choose one with --context-attention or --arch")

    def _restore_view(self, cfg: Any) -> None:
        trained_view = {name: getattr(cfg, name, None) for name in self.view_defaults}
        self.remember_view(trained_view)
        trained = self.trained_view["extra_sources"]
        if self.extra_sources != parse_specs(trained):
            raise InputError(f"{OPTION} {self.view('extra_sources')}: the model was trained with {trained}; omit it")

    def _read_similar_sentences(self, needed: int) -> None:
        """Finds similar sentences from now on, ``needed`` or more per sentence."""
        if self.similar is None and needed:
            from docnmt_fairseq.embedding.neighbours import SimilarContext

            first = Path(self.data_bin())
            self.similar = SimilarContext(first, self.languages, self.src_dict.symbols, self.language_tokens[0])
        if self.similar is not None:
            self.similar.needed = max(self.similar.needed, needed)

    def _similar_in_memory(self, lines: Lines, index: DocumentIndex) -> Optional[np.ndarray]:
        return None if self.similar is None else self.similar.in_memory(lines, index)

    def _read_training_sentences(self, model: BaseFairseqModel, seed: int) -> None:
        """Reads the training set if the model uses random sentences of it as context."""
        needed = needed_contexts(model, "training-set")
        if needed <= (0 if self.training_sentences is None else self.training_sentences.contexts):
            return
        cfg, data_bin = self.cfg, Path(self.data_bin())
        lines = load_required_side(
            data_bin, cfg.train_subset, self.languages, self.languages[0], self.src_dict, cfg.dataset_impl
        )
        longest = model.max_positions()[0]  # not an option, which may differ from that of the training
        self.training_sentences = TrainingSentences(lines, self.paragraph_symbols()[0], needed, seed, longest)

    def request_plans(self) -> None:
        """Makes batches carry the plans that the model requests from layouts, on its device."""
        if self.model is None:
            return
        self.plans, self.device = tuple(self.model.plans()), next(self.model.parameters()).device
        for dataset in self.datasets.values():
            if isinstance(dataset, DocumentDataset):
                dataset.plans, dataset.device = self.plans, self.device

    def build_criterion(self, cfg: FairseqDataclass, *args: Any, **kwargs: Any) -> FairseqCriterion:
        if getattr(cfg, "ignore_prefix_size", 0) > 0:
            raise InputError("--ignore-prefix-size: needs padded batches; with document_translation it must be 0")
        return super().build_criterion(cfg, *args, **kwargs)

    # --- Extra sources ---

    @property
    def extra_sources(self) -> List[SourceSpec]:
        """Additional inputs of a sentence."""
        text = self.view("extra_sources")
        return [] if text == NONE else parse_specs(text)

    @cached_property
    def extra_data(self) -> ExtraSourceData:
        """Data of the extra sources."""
        cfg = self.cfg
        data_bins = list(map(Path, utils.split_paths(cfg.data)))
        return ExtraSourceData(data_bins, self.languages, self.src_dict, self.load_dictionary, cfg.dataset_impl)

    def extra_inputs(self, specs: List[SourceSpec], widths: Sequence[int] = ()) -> List[ExtraSourceInput]:
        """Properties of extra sources that a model needs; see :meth:`ExtraSourceData.inputs`."""
        return self.extra_data.inputs(specs, widths, self.cfg.train_subset)

    def refuse_data_of_lines(self) -> None:
        """Raises an error if the model needs extra data of every line, which text alone does not have."""
        needed = [str(spec) for spec in self.extra_sources if not spec.of_document]
        if needed:
            raise InputError(
                f"--path: the model needs {', '.join(needed)} of every line, which only a data-bin has; use "
                "fairseq-generate or fairseq-validate"
            )

    @property
    def files_of_context(self) -> List[Path]:
        return [] if self.similar is None else self.similar.files

    # --- Data ---

    @property
    def chunk_limits(self) -> ChunkLimits:
        """Maximum size of a chunk of a document."""
        overlap = (self.view("context_overlap"), self.view("context_overlap_after"))
        return ChunkLimits(self.view("max_document_sentences"), self.view("max_document_tokens"), *overlap)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        documents = self.read_split(split, epoch, combine)
        source, index = documents.source, documents.index
        path, upsample = Path(self.data_bin(split, epoch)), max(1, self.cfg.upsample_primary)
        specs = self.extra_sources
        extra = self.extra_data.lines(specs, path, split, source, upsample) if specs else []
        similar = None if self.similar is None else self.similar.of_split(path, split, source)
        dataset = self._of_documents(
            replace(documents, extra=extra, similar=similar), training=self.is_training_set(split)
        )
        self.datasets[split] = dataset
        logger.info(
            f"{documents.name}: {len(index):,} documents, {len(index.paragraphs):,} paragraphs, {len(index.items):,} "
            f"sentences; longest document {int(np.diff(index.documents).max()):,} sentences; {len(dataset):,} chunks"
        )

    def _dataset(self, split: Split, *, alone: bool = False) -> DocumentDataset:
        self.refuse_data_of_lines()
        self.request_plans()
        extra = [None for _ in self.extra_sources]
        similar = self._similar_in_memory(split.source, split.index)
        return self._of_documents(replace(split, extra=extra, similar=similar), alone)

    def _of_documents(self, split: Split, alone: bool = False, training: bool = False) -> DocumentDataset:
        dataset = DocumentDataset(
            split,
            self.src_dict.pad(),
            self.src_dict.eos(),
            self.chunk_limits,
            with_context=not alone and str(self.view("context")) == "document",
            context_dropout=self.context_dropout if training else ContextDropout(),
            shuffle=training,
            seed=self.cfg.seed,
            training_sentences=self.training_sentences,
        )
        dataset.plans, dataset.device = self.plans, self.device
        return dataset

    def get_batch_iterator(self, *args: Any, **kwargs: Any) -> EpochBatchIterator:
        self.request_plans()
        return super().get_batch_iterator(*args, **kwargs)

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Union[int, Tuple[int, int], None] = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """Keeps all chunks, without sentences that are too long for the model if these may be skipped."""
        if not isinstance(dataset, DocumentDataset) or max_positions is None:
            return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        longest = max_positions if isinstance(max_positions, (tuple, list)) else (max_positions, max_positions)
        long = dataset.too_long(*longest)
        if len(long) and not ignore_invalid_inputs:
            raise InputError(
                f"{dataset.name}: line {dataset.index.items[long[0]] + 1} (and {len(long) - 1:,} more): longer than "
                f"{longest} tokens; raise {self.options_of_length(longest)}, or give "
                "--skip-invalid-size-inputs-valid-test"
            )
        if len(long):
            ids = dataset.index.items[long[:10]].tolist()
            remedy = f"to keep them, raise {self.options_of_length(longest)}"
            logger.warning(
                f"{dataset.name}: {len(long):,} sentences longer than {longest} tokens skipped: {ids}, …; {remedy}"
            )
        dataset.skip(long)
        kept = indices[dataset.decoded_sentences()[indices] > 0]
        self.check_some_left(kept, dataset, longest)
        return kept

    # --- Translation ---

    @cached_property
    def open_document(self) -> "OpenDocument":
        """Document that is being typed in fairseq-interactive."""
        from docnmt_fairseq.data.interactive import OpenDocument

        symbols = self.src_dict.pad(), self.src_dict.eos(), self.paragraph_symbols()[0]
        return OpenDocument(*symbols, self._similar_in_memory, lambda: self.training_sentences)

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], constraints: Optional[torch.Tensor] = None
    ) -> DocumentDataset:
        """Dataset of the input lines of fairseq-interactive; an unfinished document continues with the next lines."""
        self.refuse_data_of_lines()
        context = str(self.view("context")) == "document"
        return self.open_document.extend(src_tokens, context, self.chunk_limits)

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Sample,
        prefix_tokens: Optional[torch.Tensor] = None,
        constraints: Optional[torch.Tensor] = None,
    ) -> "Hypotheses":
        """Hypotheses of a batch; adds the layout that fairseq-interactive drops."""
        from docnmt_fairseq.search.sequential_decoding import decode_sequentially, with_target_context

        typed: Optional[OpenBatch] = None
        if all_take_layouts(models) and "layout" not in sample["net_input"]:
            typed = self.open_document.batch_of(sample["net_input"]["src_lengths"])
            sample["net_input"]["layout"] = typed.layout

        def search(batch: Sample, prefix_tokens: Optional[torch.Tensor]) -> "Hypotheses":
            return super(DocumentTranslationTask, self).inference_step(
                generator, models, batch, prefix_tokens, constraints
            )

        # Scoring a reference uses the references of previous sentences; the engine waits for previous translations.
        ordered = isinstance(generator, SequenceScorer) or (typed is None and getattr(generator, "uses_engine", False))
        if ordered or not with_target_context(models):
            return search(batch_for_model(models[0], sample), prefix_tokens)
        histories = {} if typed is None else dict(typed.histories)
        hypotheses = decode_sequentially(search, models, sample, prefix_tokens, histories)
        if typed is not None and typed.stays_open is not None:
            self.open_document.history = histories[typed.stays_open]
        return hypotheses

    # --- Training ---

    def train_step(
        self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion, *args: Any, **kwargs: Any
    ) -> StepResult:
        self.in_train_step = True
        result = super().train_step(batch_for_model(model, sample), model, criterion, *args, **kwargs)
        if sample:
            self.schedules.log(sample["net_input"]["layout"])
        if self.schedules.changed():
            self.request_plans()
        return result

    def valid_step(self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion) -> StepResult:
        self.in_train_step = False
        return super().valid_step(batch_for_model(model, sample), model, criterion)

    def reduce_metrics(self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        if self.in_train_step:
            self.schedules.update(logging_outputs)
