"""Base class of the tasks: data-bins with document boundaries, and the view of documents that models have."""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.configs import GenerationConfig
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel, FairseqLanguageModel
from fairseq.optim import FairseqOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.translation import TranslationTask
from omegaconf import II
from torch import Tensor

from docnmt_fairseq.boundaries import is_boundary, paragraph_symbol
from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates
from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.data.index import LinesInMemory, Marks, Split, index_of
from docnmt_fairseq.data.loading import load_required_side, load_side, read_index
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.fairseq_patches.training import PREEMPTION
from docnmt_fairseq.models.base import DocumentModel, accumulate_in_fp32
from docnmt_fairseq.native import cpu
from docnmt_fairseq.options import flag_of, option
from docnmt_fairseq.tasks.auxiliary_losses import StepResult, auxiliary_means, drop_empty_meters, with_auxiliary_losses
from docnmt_fairseq.tasks.dictionaries import DIGESTS, LANGUAGES, LanguageDictionary, check_trained, digest_of

FAIRSEQ_ONLY = ("print_alignment", "retain_dropout")  # options of the search that the engine does not support
logger = logging.getLogger(__name__)


@dataclass
class DocumentsConfig(FairseqDataclass):
    """Options of the data-bin and of BLEU in validation, named as in fairseq's translation task."""

    data: Optional[str] = option(
        None, "data-bins, separated by colons: one per epoch in training; validation and test sets are in the first"
    )
    source_lang: Optional[str] = field(default=None, metadata={"help": "source language", "argparse_alias": "-s"})
    target_lang: Optional[str] = field(default=None, metadata={"help": "target language", "argparse_alias": "-t"})
    max_source_positions: int = option(1024, "maximum length of a source sentence, in tokens")
    max_target_positions: int = option(1024, "maximum length of a target sentence, in tokens")
    upsample_primary: int = option(1, "repetitions of train if train1, train2, ... exist")
    # fairseq takes the choices of an option from its annotation
    unmarked_corpus: ChoiceEnum(["document", "line"]) = option(  # type: ignore[valid-type]
        "document", "interpretation of a corpus without an empty line: one document, or one document per line"
    )

    save_on_signals: str = option(
        "USR1", "signals, separated by commas, on which training saves a checkpoint and exits with status 75, e.g. "
        "USR1,TERM"
    )  # fmt: skip

    train_subset: str = II("dataset.train_subset")
    max_tokens: Optional[int] = II("dataset.max_tokens")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II(  # type: ignore[valid-type]
        "dataset.dataset_impl"
    )
    seed: int = II("common.seed")

    search: ChoiceEnum(["engine", "fairseq"]) = option(  # type: ignore[valid-type]
        "engine", "beam search of fairseq's commands and --eval-bleu: the package's engine, which replaces finished "
        "sentences, or fairseq's; translations are the same"
    )  # fmt: skip

    eval_bleu: bool = option(False, "translate the validation set and report BLEU")
    eval_bleu_args: Optional[str] = option("{}", "options of that search as JSON, e.g. '{\"beam\": 4}'")
    eval_bleu_detok: str = option("space", "detokeniser before BLEU, e.g. moses; space: none")
    eval_bleu_detok_args: Optional[str] = option("{}", "options of the detokeniser as JSON")
    eval_tokenized_bleu: bool = option(False, "BLEU of tokens instead of sacreBLEU")
    eval_bleu_remove_bpe: Optional[str] = field(
        default=None,
        metadata={"help": "remove subwords before BLEU, e.g. sentencepiece or '@@ '", "argparse_const": "@@ "},
    )
    eval_bleu_print_samples: bool = option(False, "print a translation of every validation batch")


class DocumentsTask(TranslationTask, ABC):
    """fairseq's translation task for data-bins with document boundaries.

    Attributes:
        view_defaults: options that define the model's view of documents, with their defaults. An option that is not
            given has the value that the model was trained with, or else its default.
        trained_view: values that the loaded models were trained with.
        interactive_state: attributes with the lines that are context of the next ones in fairseq-interactive.
        trains: whether a model is trained, not loaded; only then is ``--train-subset`` shuffled and regularised.
    """

    cfg: DocumentsConfig
    view_defaults: Mapping[str, Any] = {}
    interactive_state: Tuple[str, ...] = ()

    def __init__(self, cfg: DocumentsConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        self.trained_view: Dict[str, Any] = {}
        self.trains = False
        self.digests = [digest_of(src_dict), digest_of(tgt_dict)]  # before a subclass adds symbols

    @classmethod
    def setup_task(cls, cfg: DocumentsConfig, **kwargs: Any) -> "DocumentsTask":
        """Creates the task with the dictionaries, and if necessary the languages, of the first data-bin."""
        if not cfg.data:
            raise InputError("data: not given; name the data-bin that docnmt prepare wrote (in YAML: task.data)")
        if cfg.source_lang is None or cfg.target_lang is None:
            from docnmt_fairseq.corpus.prepared import languages_of

            cfg.source_lang, cfg.target_lang = languages_of(Path(utils.split_paths(cfg.data)[0]))
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str) -> LanguageDictionary:
        return LanguageDictionary.of_file(filename)

    # --- View of documents ---

    def view(self, name: str) -> Any:
        """Value of an option of the view: as given, else as trained, else the default."""
        given, trained = getattr(self.cfg, name), self.trained_view.get(name)
        if given is not None:
            return given
        return self.view_defaults[name] if trained is None else trained

    def remember_view(self, trained_view: Mapping[str, Any]) -> None:
        """Stores the view that a loaded model was trained with; warns if the command line differs.

        Raises:
            InputError: two models were trained with different views, and the option is not given.
        """
        for name, default in self.view_defaults.items():
            trained = trained_view.get(name)
            trained = default if trained is None else trained
            if str(self.trained_view.get(name, trained)) != str(trained) and getattr(self.cfg, name) is None:
                raise InputError(f"--path: models were trained with different {flag_of(name)}; give the option")
            self.trained_view[name] = trained
            if str(self.view(name)) != str(trained):
                logger.warning(f"{flag_of(name)} {self.view(name)}: the model was trained with {trained}")

    def state_dict(self) -> Dict[str, Any]:
        return {DIGESTS: self.digests, **dict(zip(LANGUAGES, self.languages))}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        check_trained(state_dict, self.state_dict(), Path(self.data_bin()))

    # The same state again, which fairseq compares when a training is resumed.
    def get_checkpoint_dict(self) -> Dict[str, Any]:
        return {type(self).__name__: self.state_dict()}

    def set_checkpoint_dict(self, state_dict: Dict[str, Any]) -> None:
        check_trained(state_dict, self.state_dict(), Path(self.data_bin()))

    # --- Data ---

    @property
    def language_tokens(self) -> Tuple[Optional[int], Optional[int]]:
        """Tokens that start source and target sentences, or None."""
        source, target = (getattr(one, "language_token", None) for one in (self.src_dict, self.tgt_dict))
        return source, target

    def paragraph_symbols(self) -> Tuple[Optional[int], Optional[int]]:
        """Index of ``<p>`` in the source and target dictionary, None if missing."""
        return paragraph_symbol(self.src_dict), paragraph_symbol(self.tgt_dict)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        assert self.cfg.source_lang is not None and self.cfg.target_lang is not None  # set by setup_task
        return self.cfg.source_lang, self.cfg.target_lang

    def is_training_set(self, split: str) -> bool:
        """Returns whether a split is the training set of a model that is being trained."""
        return self.trains and split == self.cfg.train_subset

    def read_split(self, split: str, epoch: int = 1, combine: bool = False) -> Split:
        """Reads the lines and documents of a split.

        Raises:
            InputError: the split is missing, damaged or empty, or its boundaries are misplaced or differ between sides.
        """
        cfg, path, languages = self.cfg, self.data_bin(split, epoch), self.languages
        parts = (cfg.dataset_impl, combine, cfg.upsample_primary)
        source = load_required_side(Path(path), split, languages, languages[0], self.src_dict, *parts)
        target = load_side(Path(path), split, languages, languages[1], self.tgt_dict, *parts)
        name = f"{path} {split}"
        index = read_index(source, target, self.paragraph_symbols(), name, str(cfg.unmarked_corpus))
        return Split(source, target, index, name)

    def options_of_length(self, longest: Sequence[int]) -> str:
        """Names of the options that limit sentences to these numbers of source and target tokens."""
        max_tokens = getattr(self.cfg, "max_tokens", None)  # in training fairseq takes it for a limit of sentences
        names = ["--max-tokens"] if max_tokens in longest else []
        names += ["--max-source-positions", "--max-target-positions"] if set(longest) != {max_tokens} else []
        return " and ".join(names)

    def check_some_left(
        self, kept: np.ndarray, dataset: FairseqDataset, max_positions: Union[int, Sequence[int], None]
    ) -> None:
        """Raises :class:`InputError` if no sentence of a split with targets is short enough for the model."""
        if not len(kept) and len(dataset) and getattr(dataset, "tgt", None) is not None:
            name = getattr(dataset, "name", self.data_bin())
            longest = max_positions if isinstance(max_positions, (tuple, list)) else (max_positions,)
            raise InputError(f"{name}: every sentence is too long; raise {self.options_of_length(longest)}")

    def data_bin(self, split: Optional[str] = None, epoch: int = 1) -> str:
        """Data-bin of a split: the training set is in all of them, one per epoch, other splits are in the first."""
        paths = utils.split_paths(self.cfg.data)
        return paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]

    def documents_in_memory(self, lines: List[Tensor], alone: bool = False) -> FairseqDataset:
        """Dataset of delimited text in memory; ids are line numbers, starting at 0.

        Args:
            lines: source tokens of each line with the end of sentence; a line with nothing else ends a document.
            alone: hide the context of every sentence, whatever the options say.
        """
        together = LinesInMemory(lines)
        split = Split(together, None, index_of(together, self.paragraph_symbols()[0]))
        return self._dataset(split, alone=alone)

    @property
    def files_of_context(self) -> List[Path]:
        """Files in addition to text and models that determine the context of sentences in memory."""
        return []

    @abstractmethod
    def _dataset(self, split: Split, *, alone: bool = False) -> FairseqDataset:
        """Samples of a corpus as the models see them, or of isolated sentences."""

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[[str], str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Tokens and lengths of input lines; boundaries bypass the subword model."""
        number = self.language_tokens[0]
        begin = "" if number is None else f"{self.src_dict[number]} "
        return super().get_interactive_tokens_and_lengths(
            lines, lambda line: line if is_boundary(line.strip()) else begin + encode_fn(line)
        )

    def are_sentences(self, lines: List[Tensor]) -> List[bool]:
        """Whether each line of tokens is a sentence, not a boundary."""
        found: List[bool] = Marks.read(LinesInMemory(lines), self.paragraph_symbols()[0]).is_sentence.tolist()
        return found

    # --- Training ---

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Builds the model, with sums in float32 also in half precision."""
        model = super().build_model(cfg, from_checkpoint)
        if not from_checkpoint:
            self.trains = True
            PREEMPTION.listen(self.cfg.save_on_signals)
            if isinstance(model, DocumentModel):
                for remark in model.training_remarks(cfg):
                    logger.warning(remark)
        accumulate_in_fp32(model)
        return model

    def begin_epoch(self, epoch: int, model: BaseFairseqModel) -> None:
        """Warns if the processor can only emulate the products of the model's type."""
        weight = next(model.parameters())
        if weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and not cpu.capabilities().bf16:
            logger.warning("--bf16: this processor emulates bfloat16 products; float32 is several times as fast")
        super().begin_epoch(epoch, model)

    def train_step(
        self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion, *args: Any, **kwargs: Any
    ) -> StepResult:
        loss, size, log = super().train_step(sample, model, with_auxiliary_losses(criterion), *args, **kwargs)
        PREEMPTION.report(log)
        return loss, size, log

    def valid_step(self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion) -> StepResult:
        return super().valid_step(sample, model, with_auxiliary_losses(criterion))

    def reduce_metrics(self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        PREEMPTION.agree(logging_outputs)
        for name, mean, count in auxiliary_means(logging_outputs):
            metrics.log_scalar(name, mean, count, priority=510, round=4)
        drop_empty_meters()

    def optimizer_step(self, optimizer: FairseqOptimizer, model: BaseFairseqModel, update_num: int) -> None:
        """Updates the parameters; χ-gated layers with alternating updates take turns.

        Raises:
            InputError: the optimizer holds a copy of all parameters, whose momentum and weight decay would continue.
        """
        for module in model.modules():
            if isinstance(module, AlternatingUpdates):
                if isinstance(optimizer, FP16Optimizer):
                    raise InputError(
                        f"--em-steps {module.em_steps}: --fp16 and --bf16 train a copy of all parameters at once; use "
                        "--amp, --memory-efficient-fp16 or --memory-efficient-bf16"
                    )
                module.clear_frozen()
        super().optimizer_step(optimizer, model, update_num)

    # --- Translation ---

    def build_generator(
        self, models: List[BaseFairseqModel], args: GenerationConfig, seq_gen_cls: Optional[type] = None, **kwargs: Any
    ) -> Union[SequenceGenerator, SequenceScorer]:
        """Search with the engine, or fairseq's if the engine does not support an option.

        Raises:
            InputError: constraints, or a language model with another dictionary.
        """
        if getattr(args, "constraints", None):
            raise InputError("--constraints: not supported for documents; use fairseq's translation task")
        language_model = (kwargs.get("extra_gen_cls_kwargs") or {}).get("lm_model")
        known = language_model.decoder.dictionary if isinstance(language_model, FairseqLanguageModel) else self.tgt_dict
        if digest_of(known) != digest_of(self.tgt_dict):
            raise InputError("--lm-path: the language model must have the target dictionary of the data-bin")
        if (
            seq_gen_cls is None
            and str(self.cfg.search) == "engine"
            and not any(getattr(args, name, None) for name in FAIRSEQ_ONLY)
        ):
            from docnmt_fairseq.search.generator import EngineGenerator

            seq_gen_cls = EngineGenerator
        return super().build_generator(models, args, seq_gen_cls, **kwargs)

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
    ) -> List[List[Hypothesis]]:
        """Hypotheses of a batch; they start with the target's language token, if there is one."""
        token = self.language_tokens[1]
        if prefix_tokens is None and token is not None:
            tokens = sample["net_input"]["src_tokens"]
            prefix_tokens = tokens.new_full((len(tokens), 1), token)
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def of_sentences(
        self, src_tokens: Tensor, hypotheses: List[List[Hypothesis]], len_penalty: Optional[float]
    ) -> List[List[Hypothesis]]:
        """Extracts the hypotheses of single sentences from the hypotheses of rows.

        Args:
            src_tokens: source of the rows [S, m].
            hypotheses: hypotheses per row.
            len_penalty: exponent of the length in the scores; None: not normalised.
        """
        return hypotheses
