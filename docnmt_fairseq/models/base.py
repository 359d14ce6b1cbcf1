"""Base classes of document models and encoders: options, batches with layouts, training on packed target tokens."""

import logging
import re
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from dataclasses import fields
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Sequence, Tuple, Type, cast

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import BaseFairseqModel
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.learned_positional_embedding import LearnedPositionalEmbedding
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.func import functional_call

from docnmt_fairseq.batch.layout import DecodedTokens, DocumentLayout, PlanKey
from docnmt_fairseq.batch.sources import OfSentence
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, lengths_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.precision import Embedding, LayerNorm, is_half_on_cpu
from docnmt_fairseq.models.encoder_outputs import ENCODER_OUTPUTS, EncoderOut, EncoderOutputs
from docnmt_fairseq.multisource.packed import SourceStates
from docnmt_fairseq.options import default_of

NetOutput = Tuple[Tensor, Dict[str, Any]]
STOCK_FEED_FORWARD = re.compile(r"(layers\.\d+)\.(fc[12]\.(?:weight|bias))$")

logger = logging.getLogger(__name__)


class DocumentModel:
    """Mixin of document models, before fairseq's class in the bases.

    Class attributes:
        options: dataclass of the model's options.
        takes_layout: the model uses layouts; the task omits them for fairseq's own models.
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
        """Checks the task of a command line.

        Raises:
            InputError: the task lacks document options, like fairseq's default task ``translation``.
        """
        task = getattr(args, "task", None)  # absent in configurations from checkpoints
        if task is not None and not cls.fits(task):
            raise InputError(f"--task {task}: --arch {args.arch} needs documents; use --task document_translation")

    @classmethod
    def fits(cls, task: str) -> bool:
        """True if a task has the options that the model takes from it."""
        needed = [known.name for known in fields(cls.options) if str(known.default).startswith("${task.")]
        return all(hasattr(TASK_DATACLASS_REGISTRY.get(task), name) for name in needed)

    @classmethod
    def training_remarks(cls, cfg: Any) -> Iterator[str]:
        """Warnings about the options, shown when training starts."""
        return iter(())

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Called by fairseq before inference; warns about tasks without documents and unsuitable checkpoints."""
        super().prepare_for_inference_(cfg)  # type: ignore[misc]
        task = getattr(getattr(cfg, "task", None), "_name", None)
        if task is not None and not self.fits(task):
            logger.warning(
                f"--task {task}: every line is translated as a separate sentence, boundary lines included; use "
                "--task document_translation for documents"
            )
        remarks = (getattr(part, "inference_remark", None) for part in cast(nn.Module, self).modules())
        for remark in dict.fromkeys(make() for make in remarks if make is not None):
            if remark is not None:
                logger.warning(remark)

    @classmethod
    def complete(cls, cfg: Any) -> Any:
        """Plain namespace with every option; options that the checkpoint lacks get their defaults."""
        if OmegaConf.is_config(cfg):
            cfg = Namespace(**cast(Dict[str, Any], OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)))
        for known in fields(cls.options):
            if not hasattr(cfg, known.name):
                setattr(cfg, known.name, default_of(known))
        return cfg

    def plans(self) -> Iterable[PlanKey[Any]]:
        """Plans that a training step uses, each once."""
        return dict.fromkeys([DecodedTokens(), *self.encoder.plans(), *self.decoder.plans()])

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Renames the feed-forward parameters of a stock model's checkpoint."""
        super().upgrade_state_dict_named(state_dict, name)  # type: ignore[misc]
        for key in list(state_dict):
            renamed = STOCK_FEED_FORWARD.sub(r"\1.feed_forward.\2", key)
            if renamed != key:
                state_dict[renamed] = state_dict.pop(key)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor],
        prev_output_tokens: Tensor,
        layout: Optional[DocumentLayout] = None,
        features_only: bool = False,
        extra_sources: Sequence[Optional[ExtraSourceBatch]] = (),
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
        **unused: Any,
    ) -> NetOutput:
        """Logits under teacher forcing, and extras: in training packed [target tokens, V], else [S, m_t, V].

        Args:
            src_tokens: [S, m] decoded sentences.
            src_lengths: unused, for fairseq's callers.
            prev_output_tokens: right-padded [S, m_t]; in rescoring they differ from the batch's own.
            layout: the batch; None: sentences are independent.
            features_only: omit the output projection.
            extra_sources: data of every extra source, None for sentences of the document.
            alignment_layer, alignment_heads: attention weights of a Transformer to return; computed on padded states.
            unused: arguments of other models.
        """
        src_tokens, layout = self.encoder.with_layout(src_tokens, layout, self.plans)
        if alignment_layer is not None or alignment_heads is not None:
            encoder_out = self.encoder(src_tokens, layout=layout, extra_sources=extra_sources)
            wanted = {"alignment_layer": alignment_layer, "alignment_heads": alignment_heads}
            return self.decoder(prev_output_tokens, encoder_out=encoder_out, features_only=features_only, **wanted)
        if layout.targets is None or not self.training:
            layout = layout.with_targets(prev_output_tokens.ne(self.decoder.padding_idx).sum(1).cpu().numpy())
        sources = self.encoder.encode(src_tokens, layout, extra_sources)
        packed, extra = self.decoder.decode_packed(prev_output_tokens, sources, features_only)
        if self.training:
            return packed, {**extra, "targets": layout.targets}
        return layout.target_tokens.pad(packed, width=prev_output_tokens.size(1)), extra

    def get_targets(self, sample: Dict[str, Any], net_output: NetOutput) -> Tensor:
        """Targets, packed [target tokens] if the output is."""
        rows = net_output[1].get("targets")
        return sample["target"] if rows is None else rows.pack(sample["target"])


class DocumentEncoder(ABC):
    """Mixin of document encoders, before fairseq's class in the bases.

    Attributes:
        embed_tokens: source embeddings.
        padding_idx: index of the padding symbol.
        max_source_positions: maximum source length, in tokens.
        extra_sources: :class:`~docnmt_fairseq.models.extra_sources.ExtraSources`.
    """

    embed_tokens: nn.Embedding
    padding_idx: int
    max_source_positions: int
    extra_sources: Any

    @abstractmethod
    def plans(self) -> Iterable[PlanKey[Any]]:
        """Plans that :meth:`encode` uses."""

    @abstractmethod
    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        """Packed states [N, d] of packed tokens [N], optionally with other embeddings."""

    def encode(
        self, src_tokens: Tensor, layout: DocumentLayout, extra_sources: Sequence[Optional[ExtraSourceBatch]] = ()
    ) -> EncoderOutputs:
        """States of all sources, for a decoder.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
            extra_sources: data of every extra source, None for sentences of the document.
        """
        lengths = lengths_of(extra_sources) if extra_sources else None
        if lengths is not None:
            layout = layout.with_extra_lengths(lengths)
        tokens = layout.pack_tokens(src_tokens)
        states = self.encode_tokens(tokens, layout)
        by_source = [SourceStates(layout.keep_decoded(states), OfSentence())]
        if self.extra_sources.specs:
            by_source += self.extra_sources.encode(tokens, layout, states, extra_sources, self)
        return EncoderOutputs(states, layout, by_source)

    def with_layout(
        self,
        src_tokens: Tensor,
        layout: Optional[DocumentLayout],
        plans: Optional[Callable[[], Iterable[PlanKey[Any]]]] = None,
    ) -> Tuple[Tensor, DocumentLayout]:
        """Right-padded tokens [S, m] and a layout on their device.

        Args:
            src_tokens: [S, m], without a layout padded on either side.
            layout: the batch; None: every sentence is its own document.
            plans: plans to prepare before a layout is moved to the device; None: those of the encoder.
        """
        device = src_tokens.device
        if layout is not None:
            if layout.device != device:
                layout = layout.with_plans((plans or self.plans)(), device).to(device)
            return src_tokens, layout
        real = src_tokens.ne(self.padding_idx)
        order = real.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # padding to the right
        lengths = real.sum(1).cpu().numpy()
        return src_tokens.gather(1, order), DocumentLayout.of_single_sentences(lengths).to(device)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        layout: Optional[DocumentLayout] = None,
        extra_sources: Sequence[Optional[ExtraSourceBatch]] = (),
        **unused: Any,
    ) -> EncoderOut:
        """Encoder output for decoding, with an :class:`EncoderOutputs`.

        Args:
            src_tokens: [S, m], padded on either side; without a layout, sentences are independent.
            src_lengths: unused, for fairseq's callers.
            layout: the batch.
            extra_sources: see :meth:`encode`.
            unused: arguments of other models.
        """
        src_tokens, layout = self.with_layout(src_tokens, layout)
        return self.encoder_out(self.encode(src_tokens, layout, extra_sources))

    def encoder_out(self, sources: EncoderOutputs) -> EncoderOut:
        """Dictionary with the encoder outputs."""
        return {ENCODER_OUTPUTS: [sources]}

    def forward_torchscript(self, net_input: Dict[str, Any]) -> EncoderOut:
        """Encoder output for beam search; sequential decoding passes one that it has computed."""
        encoded = net_input.get("encoded")
        if encoded is not None:
            return cast(EncoderOut, encoded[self])
        return cast(EncoderOut, super().forward_torchscript(net_input))  # type: ignore[misc]

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Encoder output for the rows ``new_order`` [B]; the hypotheses of a sentence share it."""
        return {ENCODER_OUTPUTS: [EncoderOutputs.of(encoder_out).reordered(new_order)[0]]}

    def max_positions(self) -> int:
        """Maximum source length, in tokens."""
        return self.max_source_positions


def takes_layout(model: BaseFairseqModel) -> bool:
    """True for document models; fairseq's own models translate sentence by sentence."""
    return getattr(model, "takes_layout", False)


def all_take_layouts(models: Sequence[BaseFairseqModel]) -> bool:
    """True for an ensemble of document models; :class:`InputError` for a mixed ensemble."""
    takers = [takes_layout(model) for model in models]
    if any(takers) and not all(takers):
        raise InputError("--path: an ensemble of models with and without document context is not supported")
    return all(takers)


def batch_for_model(model: BaseFairseqModel, sample: Dict[str, Any]) -> Dict[str, Any]:
    """Batch without the inputs that fairseq's own models do not accept."""
    if takes_layout(model) or "net_input" not in sample:
        return sample
    net_input = {name: value for name, value in sample["net_input"].items() if name not in ("layout", "extra_sources")}
    return {**sample, "net_input": net_input}


class LearnedTable(LearnedPositionalEmbedding):
    """fairseq's learned positions, computed in float32 for half precision on CPUs."""

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """Embeddings [..., d] of tokens [...]."""
        if not is_half_on_cpu(self.weight):
            return super().forward(*args, **options)
        rows: Tensor = functional_call(self, {"weight": self.weight.float()}, args, options)
        return rows.to(self.weight.dtype)


def accumulate_in_fp32(model: nn.Module) -> None:
    """Replaces a model's embeddings and layer norms by those whose gradients accumulate in float32."""
    accumulating = {nn.Embedding: Embedding, nn.LayerNorm: LayerNorm, LearnedPositionalEmbedding: LearnedTable}
    for module in model.modules():
        module.__class__ = accumulating.get(type(module), type(module))


class ResidualLayer(nn.Module):
    """Base of encoder and decoder layers: residual sub-layers, with the layer norm before or after.

    Args:
        cfg: options of a Transformer.
        side: encoder or decoder.
    """

    def __init__(self, cfg: Any, side: str):
        super().__init__()
        self.normalize_before = bool(getattr(cfg, f"{side}_normalize_before"))
        self.dropout_module = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def enter(self, x: Tensor, norm: nn.Module) -> Tensor:
        """Input of a sub-layer: x, normalised in pre-norm models."""
        return norm(x) if self.normalize_before else x

    def leave(self, x: Tensor, y: Tensor, norm: nn.Module) -> Tensor:
        """Residual x + dropout(y) of a sub-layer's output y, normalised in post-norm models."""
        x = x + self.dropout_module(y)
        return x if self.normalize_before else norm(x)
