"""What all models of documents have in common: their options, and training on packed target tokens."""

import logging
import re
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, fields
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Type,
    cast,
)

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.tasks import TASK_DATACLASS_REGISTRY, FairseqTask
from omegaconf import II, OmegaConf
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DecodedTokens, DocumentLayout, PlanKey
from docnmt_fairseq.batch.sources import OfSentence
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, ExtraSourceInput
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs
from docnmt_fairseq.models.extra_sources import ExtraSources, MainEncoder, with_extra_lengths
from docnmt_fairseq.models.extra_sources_config import extra_specs
from docnmt_fairseq.models.token_embeddings import token_embedding
from docnmt_fairseq.multisource.source_states import SourceStates
from docnmt_fairseq.options import default_of

NetOutput = Tuple[Tensor, Dict[str, Any]]
# fairseq's Transformer layers hold the feed-forward network's parameters themselves; ours have a module for it.
STOCK_FEED_FORWARD = re.compile(r"(layers\.\d+)\.(fc[12]\.(?:weight|bias))$")

logger = logging.getLogger(__name__)


class DocumentModel:
    """Stands before fairseq's own class among the bases of a model.

    Class attributes:
        options: the dataclass of its options.
        takes_layout: the task leaves the layout out for models that do not say so: fairseq's own.
    """

    options: Type[FairseqDataclass]
    takes_layout = True
    training: bool
    encoder: Any
    decoder: Any

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the options without defaults, so that architecture presets apply."""
        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def check_task(cls, args: Namespace) -> None:
        """Looks whether the task of a command line has what the model takes from it; architectures ask.

        Raises:
            InputError: it has not, as fairseq's ``translation``, which is the task where none is given.
        """
        task = getattr(args, "task", None)  # a checkpoint's configuration of the model has none
        if task is not None and not cls.fits(task):
            raise InputError(f"--task {task}: --arch {args.arch} needs documents; give --task document_translation")

    @classmethod
    def fits(cls, task: str) -> bool:
        """Whether a task of that name has what the model takes from it."""
        needed = [known.name for known in fields(cls.options) if str(known.default).startswith("${task.")]
        return all(hasattr(TASK_DATACLASS_REGISTRY.get(task), name) for name in needed)

    @classmethod
    def training_remarks(cls, cfg: Any) -> Iterator[str]:
        """What who trains a model with these options ought to know of them, and who translates with it need not."""
        return iter(())

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Called by fairseq before a model translates; says what users ought to know of this checkpoint."""
        super().prepare_for_inference_(cfg)  # type: ignore[misc]
        task = getattr(getattr(cfg, "task", None), "_name", None)
        if task is not None and not self.fits(task):
            logger.warning(
                f"--task {task}: every line, marks of documents among them, is translated as a sentence by itself; for "
                "documents give --task document_translation"
            )
        asked = (getattr(part, "inference_remark", None) for part in cast(nn.Module, self).modules())
        for remark in dict.fromkeys(ask() for ask in asked if ask is not None):  # of several layers once
            if remark is not None:
                logger.warning(remark)

    @classmethod
    def complete(cls, cfg: Any) -> Any:
        """A plain configuration with every option; one newer than the checkpoint is how it was before."""
        if OmegaConf.is_config(cfg):
            cfg = Namespace(**cast(Dict[str, Any], OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)))
        for known in fields(cls.options):
            if not hasattr(cfg, known.name):
                setattr(cfg, known.name, default_of(known))
        return cfg

    def plans(self) -> Iterable[PlanKey[Any]]:
        """The plans that a training step will ask a batch's layout for, each once."""
        return dict.fromkeys([DecodedTokens(), *self.encoder.plans(), *self.decoder.plans()])

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Renames the feed-forward parameters of a stock model's checkpoint."""
        super().upgrade_state_dict_named(state_dict, name)  # type: ignore[misc]
        for key in list(state_dict):
            renamed = STOCK_FEED_FORWARD.sub(r"\1.feed_forward.\2", key)
            if renamed != key:
                state_dict[renamed] = state_dict.pop(key)

    def encode_and_decode(
        self,
        src_tokens: Tensor,
        layout: DocumentLayout,
        prev_output_tokens: Tensor,
        extra_sources: Sequence[Optional[ExtraSourceBatch]] = (),
        features_only: bool = False,
    ) -> NetOutput:
        """Logits, or features, under teacher forcing: in training packed [target tokens, …], else [S, m_t, …]; extras.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
            prev_output_tokens: right-padded [S, m_t]; rescoring brings others than the batch's own.
            extra_sources: the batch's data of every extra source, None where the document holds it.
            features_only: leave out the output projection.
        """
        if layout.targets is None or not self.training:
            layout = layout.with_targets(prev_output_tokens.ne(self.decoder.padding_idx).sum(1).cpu().numpy())
        sources = self.encoder.encode(src_tokens, layout, extra_sources)
        packed, extra = self.decoder.decode_packed(prev_output_tokens, sources, features_only)
        if self.training:
            return packed, {**extra, "targets": layout.targets}
        return layout.target_tokens.pad(packed, width=prev_output_tokens.size(1)), extra

    def get_targets(self, sample: Dict[str, Any], net_output: NetOutput) -> Tensor:
        """The targets, packed [target tokens] if the output is: the loss is computed on real tokens only."""
        rows = net_output[1].get("targets")
        return sample["target"] if rows is None else rows.pack(sample["target"])


class DocumentEncoder:
    """Stands before fairseq's own class among the bases of an encoder.

    Attributes:
        extra_sources: what encodes the sources besides the sentences; None: there is none.
    """

    extra_sources: Optional[ExtraSources]

    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        """Packed states [N, d] of packed tokens [N], those of a layout.

        Args:
            tokens: [N].
            layout: of them.
            embed_tokens: embeddings, None: the encoder's.
        """
        raise NotImplementedError

    def forward_torchscript(self, net_input: Dict[str, Any]) -> EncoderOut:
        """The encoder's output as a search asks for it; one that goes in rounds has it already."""
        encoded = net_input.get("encoded")
        if encoded is not None:
            return cast(EncoderOut, encoded[self])
        return cast(EncoderOut, super().forward_torchscript(net_input))  # type: ignore[misc]

    def encode(
        self, src_tokens: Tensor, layout: DocumentLayout, extra_sources: Sequence[Optional[ExtraSourceBatch]] = ()
    ) -> EncoderOutputs:
        """What a decoder may look at.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
            extra_sources: the batch's data of every extra source, None where the document holds it.
        """
        layout = with_extra_lengths(layout, extra_sources)
        tokens = layout.pack_tokens(src_tokens)
        states = self.encode_tokens(tokens, layout)
        by_source = [SourceStates(layout.keep_decoded(states), OfSentence())]
        if self.extra_sources is not None:
            by_source += self.extra_sources.encode(tokens, layout, states, extra_sources, cast(MainEncoder, self))
        return EncoderOutputs(states, layout, by_source)


@dataclass
class TrainedViewOptions:
    """How a model saw documents in training: restored at generation unless the command line says otherwise."""

    seed: int = II("common.seed")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")
    context: Optional[str] = II("task.context")
    max_document_sentences: Optional[int] = II("task.max_document_sentences")
    max_document_tokens: Optional[int] = II("task.max_document_tokens")
    context_overlap: Optional[int] = II("task.context_overlap")
    context_overlap_after: Optional[int] = II("task.context_overlap_after")


def embeddings_and_inputs(cfg: Any, task: FairseqTask) -> Tuple[nn.Embedding, nn.Embedding, List[ExtraSourceInput]]:
    """The embeddings of source and target, and what a model must know of its extra sources.

    Args:
        cfg: the model's options.
        task: with the dictionaries and the data of extra sources.

    Raises:
        InputError: ``--share-all-embeddings`` for different dictionaries or widths.
    """
    source, target, shared = task.source_dictionary, task.target_dictionary, cfg.share_all_embeddings
    if shared and source != target:
        raise InputError("--share-all-embeddings: needs one joined dictionary (fairseq-preprocess --joined-dictionary)")
    if shared and cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError("--share-all-embeddings: --encoder-embed-dim and --decoder-embed-dim differ")
    of_source = token_embedding(cfg, source, cfg.encoder_embed_dim)
    of_target = of_source if shared else token_embedding(cfg, target, cfg.decoder_embed_dim)
    specs = extra_specs(cfg)
    return of_source, of_target, task.extra_inputs(specs, cfg.extra_feature_dims) if specs else []


class AsksForPlans(Protocol):
    """A part that says which plans it will ask a layout for."""

    def plans(self) -> Iterable[PlanKey[Any]]:
        """The plans."""


def plans_of(modules: Iterable[nn.Module]) -> Iterator[PlanKey[Any]]:
    """The plans that the parts of some modules will ask for; parts say so by a method ``plans``."""
    for module in modules:
        for part in module.modules():
            if hasattr(type(part), "plans"):  # to ask whether it is an instance of the protocol takes far longer
                yield from cast(AsksForPlans, part).plans()
