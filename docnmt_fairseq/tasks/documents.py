"""What the tasks have in common: data-bins whose empty lines divide documents, and how a model saw them in training."""

import logging
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple, Union

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.configs import GenerationConfig
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.optim import FairseqOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.translation import TranslationTask, load_langpair_dataset
from omegaconf import II
from torch import Tensor

from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates
from docnmt_fairseq.corpus.prepared import languages_of
from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.data.integrity import check_side, split_named
from docnmt_fairseq.data.interactive import LinesInMemory, index_of
from docnmt_fairseq.data.kept_index import read_index
from docnmt_fairseq.data.split import Split
from docnmt_fairseq.errors import InputError, refuse
from docnmt_fairseq.marks import PARAGRAPH, is_mark, paragraph_symbol
from docnmt_fairseq.models.base import DocumentModel
from docnmt_fairseq.models.fp32_accumulation import accumulate_in_fp32
from docnmt_fairseq.options import option
from docnmt_fairseq.stopping import REQUEST
from docnmt_fairseq.tasks.auxiliary_losses import StepResult, auxiliary_means, with_auxiliary_losses
from docnmt_fairseq.tasks.dictionaries import LanguageDictionary
from docnmt_fairseq.tasks.refused_options import problems_of_bleu, problems_of_language_model, problems_of_search
from docnmt_fairseq.tasks.trained_view import TrainedView
from docnmt_fairseq.trained_dictionaries import KEY, LANGUAGES, check_trained, digest_of
from docnmt_fairseq.training_data import TrainingData

logger = logging.getLogger(__name__)


@dataclass
class DocumentsConfig(FairseqDataclass):
    """Options about the data-bin and about BLEU in validation, named as in fairseq's translation task."""

    data: Optional[str] = option(
        None, "colon separated paths of data-bins, taken in turn in training; validation and test are in the first"
    )
    source_lang: Optional[str] = field(default=None, metadata={"help": "source language", "argparse_alias": "-s"})
    target_lang: Optional[str] = field(default=None, metadata={"help": "target language", "argparse_alias": "-t"})
    max_source_positions: int = option(1024, "longest source sentence, in tokens")
    max_target_positions: int = option(1024, "longest target sentence, in tokens")
    upsample_primary: int = option(1, "how often train is taken when train1, train2, ... are there")
    # fairseq makes an option's choices of its annotation
    unmarked_corpus: ChoiceEnum(["document", "line"]) = option(  # type: ignore[valid-type]
        "document", "what a file of a corpus without a single empty line is: one document, or a document a line"
    )

    save_on_signals: str = option(
        "USR1", "signals, with commas between, that let a training save a checkpoint after its update and end with "
        "status 75, e.g. USR1,TERM"
    )  # fmt: skip

    train_subset: str = II("dataset.train_subset")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II(  # type: ignore[valid-type]  # see above
        "dataset.dataset_impl"
    )
    seed: int = II("common.seed")

    eval_bleu: bool = option(False, "translate the validation set and report BLEU")
    eval_bleu_args: Optional[str] = option("{}", "options of that search as JSON, e.g. '{\"beam\": 4}'")
    eval_bleu_detok: str = option("space", "detokeniser before BLEU, e.g. moses; space: none")
    eval_bleu_detok_args: Optional[str] = option("{}", "options of the detokeniser as JSON")
    eval_tokenized_bleu: bool = option(False, "BLEU of tokens instead of sacreBLEU")
    eval_bleu_remove_bpe: Optional[str] = field(
        default=None,
        metadata={"help": "undo subwords before BLEU, e.g. sentencepiece or '@@ '", "argparse_const": "@@ "},
    )
    eval_bleu_print_samples: bool = option(False, "print a translation of every validation batch")


class DocumentsTask(TrainedView, TrainingData, TranslationTask):
    """A stock translation task that knows where documents begin; its subclasses make samples of them."""

    cfg: DocumentsConfig

    def __init__(self, cfg: DocumentsConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        self.trained_view = {}
        self.digests = [digest_of(src_dict), digest_of(tgt_dict)]  # before a subclass adds symbols of its own
        if cfg.upsample_primary < 1 and cfg.upsample_primary != -1:  # -1: fairseq's own default
            raise InputError(f"--upsample-primary {cfg.upsample_primary}: must be at least 1")
        symbols = self.paragraph_symbols()
        if (symbols[0] is None) != (symbols[1] is None):
            lacking = cfg.source_lang if symbols[0] is None else cfg.target_lang
            raise InputError(f"dict.{lacking}.txt lacks {PARAGRAPH}, which the other dictionary has; both need it")

    @classmethod
    def setup_task(cls, cfg: DocumentsConfig, **kwargs: Any) -> "DocumentsTask":
        """The task with the dictionaries of its first data-bin, which also says the languages that are not given."""
        if not cfg.data:
            raise InputError("data: not given; name the data-bin that docnmt prepare wrote (in YAML: task.data)")
        if cfg.source_lang is None or cfg.target_lang is None:
            cfg.source_lang, cfg.target_lang = languages_of(Path(utils.split_paths(cfg.data)[0]))
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str) -> LanguageDictionary:
        """A dictionary of a data-bin, which knows the language token of its side."""
        return LanguageDictionary.of_file(filename)

    def state_dict(self) -> Dict[str, Any]:
        """What fairseq keeps in checkpoints beside parameters: which dictionaries and languages these belong to."""
        return {KEY: self.digests, **dict(zip(LANGUAGES, self.languages))}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes up what a checkpoint keeps.

        Raises:
            InputError: its model was trained with other dictionaries, even if these have the same size, or the other
                way round.
        """
        check_trained(state_dict, self.state_dict(), Path(self.data_bin()))

    @property
    def language_tokens(self) -> Tuple[Optional[int], Optional[int]]:
        """What sentences of source and target begin with, None where that is open."""
        source, target = (getattr(one, "language_token", None) for one in (self.src_dict, self.tgt_dict))
        return source, target

    def build_model(self, cfg: FairseqDataclass, from_checkpoint: bool = False) -> BaseFairseqModel:
        """The model, fairseq's own too, whose parts add up in float32 also where it is of a half type."""
        if not from_checkpoint:
            refuse(problems_of_bleu(self.cfg))
        model = super().build_model(cfg, from_checkpoint)
        if isinstance(model, DocumentModel) and not from_checkpoint:
            for remark in model.training_remarks(cfg):
                logger.warning(remark)
        accumulate_in_fp32(model)
        return model

    def paragraph_symbols(self) -> Tuple[Optional[int], Optional[int]]:
        """The number of ``<p>`` in the source and the target dictionary, None where it is missing."""
        return paragraph_symbol(self.src_dict), paragraph_symbol(self.tgt_dict)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language; fairseq takes from the data-bin what is not given."""
        source, target = self.cfg.source_lang, self.cfg.target_lang
        if source is None or target is None:
            raise InputError("--source-lang and --target-lang: the languages are neither given nor in the data-bin")
        return source, target

    def dataset(self, split: str) -> FairseqDataset:
        """A split that was loaded: in training as that has it, else as it is."""
        return super().dataset(self.place_among(self.datasets, split))

    def read_split(self, split: str, epoch: int = 1, combine: bool = False) -> Split:
        """A split's lines and its documents.

        Raises:
            InputError: no such split, a damaged file, the marks of both sides differ, a misplaced ``<p>``, no sentence.
        """
        cfg, path = self.cfg, self.data_bin(split, epoch)
        self._check_files(path, split, combine)
        with split_named(path, split, self.languages):
            pair = load_langpair_dataset(
                path, split, cfg.source_lang, self.src_dict, cfg.target_lang, self.tgt_dict, combine=combine,
                dataset_impl=cfg.dataset_impl, upsample_primary=max(1, cfg.upsample_primary), left_pad_source=False,
                left_pad_target=False, max_source_positions=cfg.max_source_positions,
                max_target_positions=cfg.max_target_positions,
            )  # fmt: skip
        if getattr(pair.src, "supports_prefetch", False):
            raise InputError("--dataset-impl cached: documents need random access; use mmap or lazy")
        name = f"{path} {split}"
        index = read_index(pair.src, pair.tgt, self.paragraph_symbols(), name, str(cfg.unmarked_corpus))
        return Split(pair.src, pair.tgt, index, name)

    def _check_files(self, data_bin: str, split: str, combine: bool) -> None:
        languages = self.languages
        for pair in (languages, languages[::-1]):  # fairseq takes the files of either direction
            for language, dictionary in zip(languages, (self.src_dict, self.tgt_dict)):
                check_side(data_bin, split, "-".join(pair), language, len(dictionary), dictionary.eos(), combine)

    def data_bin(self, split: Optional[str] = None, epoch: int = 1) -> str:
        """The data-bin that has a split: in training one after another, else (also of None) the first."""
        paths = utils.split_paths(self.cfg.data)
        return paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0]

    def documents_in_memory(self, lines: List[Tensor], alone: bool = False) -> FairseqDataset:
        """Delimited text in memory as the samples that the model sees; ids are line numbers, from 0.

        Args:
            lines: source tokens, each line with its end of sentence; one of this alone ends a document.
            alone: every sentence is seen by itself, whatever the options say.
        """
        together = LinesInMemory(lines)
        split = Split(together, None, index_of(together, self.paragraph_symbols()[0]))
        return self._dataset(split, alone=alone)

    @property
    def files_of_context(self) -> List[Path]:
        """The files that tell what samples in memory have as context, beside the text and the models."""
        return []

    def of_sentences(
        self, src_tokens: Tensor, hypotheses: List[List[Hypothesis]], len_penalty: Optional[float]
    ) -> List[List[Hypothesis]]:
        """The hypotheses of the sentences themselves, from those that a search gives of a batch's rows.

        Args:
            src_tokens: [S, m] of the rows.
            hypotheses: of each row.
            len_penalty: exponent of the length that scores are divided by; None: they are not.
        """
        return hypotheses

    def train_step(
        self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion, *args: Any, **kwargs: Any
    ) -> StepResult:
        """fairseq's loss, sample size and log, with the losses that parts of the model add."""
        loss, size, log = super().train_step(sample, model, with_auxiliary_losses(criterion), *args, **kwargs)
        REQUEST.tell(log)
        return loss, size, log

    def valid_step(self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion) -> StepResult:
        """fairseq's loss, sample size and log; what parts of the model add is logged beside them."""
        return super().valid_step(sample, model, with_auxiliary_losses(criterion))

    def reduce_metrics(self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion) -> None:
        """Logs means over the batches of all processes, whose sums these are."""
        super().reduce_metrics(logging_outputs, criterion)
        REQUEST.hear(logging_outputs)
        for name, mean, count in auxiliary_means(logging_outputs):
            metrics.log_scalar(name, mean, count, priority=510, round=4)

    def optimizer_step(self, optimizer: FairseqOptimizer, model: BaseFairseqModel, update_num: int) -> None:
        """Updates what has a gradient; χ-gated layers that are trained in turn have theirs in turn.

        Raises:
            InputError: they would not be: momentum and weight decay would go on in a copy of the parameters.
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

    def inference_step(
        self,
        generator: Union[SequenceGenerator, SequenceScorer],
        models: List[BaseFairseqModel],
        sample: Dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
    ) -> List[List[Hypothesis]]:
        """The hypotheses of a batch; they begin with the target's language token, if it has one."""
        token = self.language_tokens[1]
        if prefix_tokens is None and token is not None:
            tokens = sample["net_input"]["src_tokens"]
            prefix_tokens = tokens.new_full((len(tokens), 1), token)
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def _dataset(self, split: Split, *, alone: bool = False) -> FairseqDataset:
        """The samples of a corpus as the task's models see them, or of sentences alone."""
        raise NotImplementedError

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[[str], str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Tokens and lengths of typed lines; the subword model, which knows no marks, does not see them."""
        number = self.language_tokens[0]
        begin = "" if number is None else f"{self.src_dict[number]} "
        return super().get_interactive_tokens_and_lengths(
            lines, lambda line: line if is_mark(line.strip()) else begin + encode_fn(line)
        )

    def build_generator(
        self, models: List[BaseFairseqModel], args: GenerationConfig, *more: Any, **kwargs: Any
    ) -> Union[SequenceGenerator, SequenceScorer]:
        """fairseq's search; ``InputError`` for what is refused of its options."""
        language_model = (kwargs.get("extra_gen_cls_kwargs") or {}).get("lm_model")
        refuse(chain(problems_of_search(models, args), problems_of_language_model(language_model, self.tgt_dict)))
        return super().build_generator(models, args, *more, **kwargs)

    def eval_lm_dataloader(self, *_: Any, **__: Any) -> NoReturn:
        """What ``fairseq-eval-lm`` asks for; ``InputError``: no task of translation has it."""
        raise InputError(
            "--task: fairseq-eval-lm is of language models; fairseq-generate --score-reference scores translations"
        )
