"""Task ``document_translation``: sentences translated with their documents as context, by fairseq's own commands."""

import logging
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from omegaconf import OmegaConf, open_dict
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import PlanKey
from docnmt_fairseq.data.batching import check_some_left
from docnmt_fairseq.data.context_dropout import ContextDropout
from docnmt_fairseq.data.dataset import DocumentDataset, Sample
from docnmt_fairseq.data.extra_source_specs import NONE, OPTION, SourceSpec, parse_specs
from docnmt_fairseq.data.extra_sources import ExtraSourceData, ExtraSourceInput
from docnmt_fairseq.data.interactive import OpenBatch, OpenDocument
from docnmt_fairseq.data.pieces import PieceLimits
from docnmt_fairseq.data.split import Split
from docnmt_fairseq.embedding.similar_context import SimilarContext
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.models.base import all_take_layouts, batch_for_model, takes_layout
from docnmt_fairseq.options import problems_of
from docnmt_fairseq.search.rounds import Hypotheses, translate_in_rounds, with_target_context
from docnmt_fairseq.tasks.auxiliary_losses import StepResult
from docnmt_fairseq.tasks.document_options import DocumentTranslationConfig
from docnmt_fairseq.tasks.documents import DocumentsTask
from docnmt_fairseq.tasks.drawn_context import DrawnContext
from docnmt_fairseq.tasks.selection_schedules import SelectionSchedules

logger = logging.getLogger(__name__)


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
        "extra_sources": NONE,
    }

    def __init__(self, cfg: DocumentTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        self.similar = SimilarContext(Path(self.data_bin()), self.languages, src_dict.symbols, self.language_tokens[0])
        paragraph_symbol = self.paragraph_symbols()[0]
        of_source = (self.languages, src_dict, paragraph_symbol)
        self.drawn = DrawnContext(Path(self.data_bin()), cfg.train_subset, *of_source, cfg.dataset_impl)
        self.model: Optional[BaseFairseqModel] = None  # whose plans batches come with
        self.plans: Tuple[PlanKey[Any], ...] = ()  # that the model asks layouts for, on its device
        self.device = torch.device("cpu")
        self.schedules = SelectionSchedules(nn.Module())  # of the model; none yet
        self.training = True  # or validating: what logs are of
        self.open_document = OpenDocument(
            src_dict.pad(), src_dict.eos(), paragraph_symbol, self.similar.in_memory, lambda: self.drawn.sentences
        )
        self.context_dropout = ContextDropout(cfg.context_dropout, cfg.source_context_dropout, cfg.seed)
        refuse(problems_of(cfg, DocumentTranslationConfig, self.view_defaults))
        parse_specs(cfg.extra_sources)

    @property
    def files_of_context(self) -> List[Path]:
        """Those by which sentences are similar."""
        return self.similar.files

    @property
    def extra_sources(self) -> List[SourceSpec]:
        """What sentences have beside themselves."""
        return parse_specs(self.view("extra_sources"))

    @cached_property
    def extra_data(self) -> ExtraSourceData:
        """The data of extra sources."""
        cfg = self.cfg
        data_bins = list(map(Path, utils.split_paths(cfg.data)))
        return ExtraSourceData(data_bins, self.languages, self.src_dict, self.load_dictionary, cfg.dataset_impl)

    def extra_inputs(self, specs: List[SourceSpec], widths: Sequence[int] = ()) -> List[ExtraSourceInput]:
        """What a model with these extra sources must know of them; see :meth:`ExtraSourceData.inputs`."""
        return self.extra_data.inputs(specs, widths, self.cfg.train_subset)

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """The model; one from a checkpoint brings its view of documents along."""
        if from_checkpoint:
            with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
                trained_view = {name: getattr(cfg, name, None) for name in self.view_defaults}
                for name in (name for name, value in trained_view.items() if value is None):
                    setattr(cfg, name, None)  # a checkpoint that is older than the option has nothing
            self.remember_view(trained_view)
            trained = parse_specs(self.trained_view["extra_sources"])
            if self.extra_sources != trained:
                raise InputError(
                    f"{OPTION} {self.view('extra_sources')}: the model was trained with "
                    f"{self.trained_view['extra_sources']}; leave the option out"
                )
        elif self.extra_sources and hasattr(cfg, "extra_feature_dims") and not cfg.extra_feature_dims:
            widths = (given.width for given in self.extra_inputs(self.extra_sources))
            cfg.extra_feature_dims = [width for width in widths if width]  # checkpoints keep it
        model = super().build_model(cfg, from_checkpoint)
        self.similar.serve(model)
        self.drawn.serve(model, getattr(cfg, "seed", self.cfg.seed))
        if takes_layout(model):  # plans are asked for with the batches: on which device it will be is not known yet
            self.model, self.schedules = model, SelectionSchedules(model)
        return model

    def request_plans(self, model: BaseFairseqModel) -> None:
        """Lets batches come with the plans that the model will ask their layouts for."""
        if not takes_layout(model):
            return
        self.plans, self.device = tuple(model.plans()), next(model.parameters()).device
        for dataset in self.datasets.values():
            if isinstance(dataset, DocumentDataset):
                dataset.plans, dataset.device = self.plans, self.device

    def documents_in_memory(self, lines: List[Tensor], alone: bool = False) -> FairseqDataset:
        """See :class:`DocumentsTask`; its batches have the plans that the model asks for, where it is by now."""
        if self.model is not None:
            self.request_plans(self.model)
        return super().documents_in_memory(lines, alone)

    def get_batch_iterator(self, *args: Any, **kwargs: Any) -> EpochBatchIterator:
        """fairseq's; its batches have the plans that the model asks for on the device where it is by now."""
        if self.model is not None:
            self.request_plans(self.model)
        return super().get_batch_iterator(*args, **kwargs)

    def build_criterion(self, cfg: FairseqDataclass, *args: Any, **kwargs: Any) -> FairseqCriterion:
        """The criterion; ``InputError`` for an option that needs padded outputs."""
        if getattr(cfg, "ignore_prefix_size", 0) > 0:
            raise InputError("--ignore-prefix-size needs padded batches; with document_translation it must be 0")
        return super().build_criterion(cfg, *args, **kwargs)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Loads a split of the data-bin as documents.

        Raises:
            InputError: the marks of both sides differ, a misplaced ``<p>``, no sentence; the model's context sentences
                are the similar ones, and the data-bin does not say which these are.
        """
        documents = self.read_split(split, epoch, combine)
        source, index = documents.source, documents.index
        path, upsample = Path(self.data_bin(split, epoch)), max(1, self.cfg.upsample_primary)
        extra = self.extra_data.lines(self.extra_sources, path, split, source, upsample)
        similar = self.similar.of_split(path, split, source)
        dataset = self._of_documents(replace(documents, extra=extra, similar=similar))
        self.datasets[self.place_of(split)] = dataset
        longest = int(np.diff(index.documents).max())
        logger.info(
            f"{documents.name}: {len(index):,} documents, {len(index.paragraphs):,} paragraphs, "
            f"{len(index.items):,} sentences; longest document {longest:,} sentences; {len(dataset):,} pieces"
        )

    @property
    def piece_limits(self) -> PieceLimits:
        """How long documents are divided."""
        overlap = (self.view("context_overlap"), self.view("context_overlap_after"))
        return PieceLimits(self.view("max_document_sentences"), self.view("max_document_tokens"), *overlap)

    def _dataset(self, split: Split, *, alone: bool = False) -> DocumentDataset:
        """The samples of text alone."""
        self.refuse_data_of_lines()
        extra = [None for _ in self.extra_sources]
        similar = self.similar.in_memory(split.source, split.index)
        return self._of_documents(replace(split, extra=extra, similar=similar), alone)

    def _of_documents(self, split: Split, alone: bool = False) -> DocumentDataset:
        dataset = DocumentDataset(
            split,
            self.src_dict.pad(),
            self.src_dict.eos(),
            self.piece_limits,
            with_context=not alone and str(self.view("context")) == "document",
            context_dropout=self.context_dropout if self.serves_training else ContextDropout(),
            shuffle=self.serves_training,
            seed=self.cfg.seed,
            training_sentences=self.drawn.sentences,
        )
        dataset.plans, dataset.device = self.plans, self.device
        return dataset

    def refuse_data_of_lines(self) -> None:
        """Raises :class:`InputError` if the model needs more than the text itself, which is all there is."""
        needed = [str(spec) for spec in self.extra_sources if not spec.of_document]
        if needed:
            raise InputError(
                f"--path: the model needs {', '.join(needed)} for every line, which only a data-bin has; use "
                "fairseq-generate or fairseq-validate"
            )

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Union[int, Tuple[int, int], None] = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """All pieces; sentences too long for the model are taken out of them where that is allowed."""
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
        kept = indices[dataset.decoded_sentences()[indices] > 0]
        check_some_left(kept, dataset, dataset.name)
        return kept

    def build_dataset_for_inference(
        self, src_tokens: List[torch.Tensor], src_lengths: List[int], constraints: Optional[torch.Tensor] = None
    ) -> DocumentDataset:
        """The lines of fairseq-interactive as documents; lines of an unfinished one see those before them."""
        self.refuse_data_of_lines()
        context = str(self.view("context")) == "document"
        return self.open_document.extend(src_tokens, context, self.piece_limits)

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Sample,
        prefix_tokens: Optional[torch.Tensor] = None,
        constraints: Optional[torch.Tensor] = None,
    ) -> Hypotheses:
        """The hypotheses of a batch, completing what fairseq-interactive left of it."""
        typed: Optional[OpenBatch] = None
        if all_take_layouts(models) and "layout" not in sample["net_input"]:
            typed = self.open_document.batch_of(sample["net_input"]["src_lengths"])
            sample["net_input"]["layout"] = typed.layout

        def search(batch: Sample, prefix_tokens: Optional[torch.Tensor]) -> Hypotheses:
            return super(DocumentTranslationTask, self).inference_step(
                generator, models, batch, prefix_tokens, constraints
            )

        # To score a reference is no search: it sees the references before it.
        if isinstance(generator, SequenceScorer) or not with_target_context(models):
            return search(batch_for_model(models[0], sample), prefix_tokens)
        histories = {} if typed is None else dict(typed.histories)
        hypotheses = translate_in_rounds(search, models, sample, prefix_tokens, histories)
        if typed is not None and typed.stays_open is not None:
            self.open_document.history = histories[typed.stays_open]
        return hypotheses

    def train_step(
        self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion, *args: Any, **kwargs: Any
    ) -> StepResult:
        """fairseq's loss, sample size and log; logs how many sentences a token keeps while that number falls."""
        self.training = True
        result = super().train_step(batch_for_model(model, sample), model, criterion, *args, **kwargs)
        if sample:
            self.schedules.log(sample["net_input"]["layout"])
        if self.schedules.moved():
            self.request_plans(model)
        return result

    def valid_step(self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion) -> StepResult:
        """fairseq's loss, sample size and log."""
        self.training = False
        return super().valid_step(batch_for_model(model, sample), model, criterion)

    def reduce_metrics(self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion) -> None:
        """Logs means over the batches of all processes, and tells the schedules what the selection finds."""
        super().reduce_metrics(logging_outputs, criterion)
        if self.training:
            self.schedules.saw(logging_outputs)
