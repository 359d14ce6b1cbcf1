"""Label-smoothed cross-entropy that also logs the value of context during training."""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.ca_layers.decomposition import ReportsChi
from docnmt_fairseq.criterions.teacher_forcing import forced_bleu_sums, log_sums, top_k_sums
from docnmt_fairseq.layers.capture import Capture, ContextFreeIndicator, capture
from docnmt_fairseq.layers.precision import chunk_elements, computing_type
from docnmt_fairseq.options import option

FIRST, LATER = "first", "later"  # sentences of a document
HIDDEN = "no_context"
NetOutput = Tuple[Any, ...]  # of fairseq's models, starting with logits
CHUNK = 2**18  # logits per chunk on a CPU, so that they stay in its cache
CHI_SUM, CHI_COUNT = "_chi_sum", "_chi_count"


@dataclass
class DocumentLabelSmoothedCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """Options of fairseq's criterion, and those of the log."""

    report_cxmi: bool = option(
        False,
        "validate a second time without context and log that loss and CXMI, the value of context in bits per target "
        "token; needs a model trained with --context-dropout",
    )
    report_top_k: str = option(
        "", "log the percentage of target tokens among the k most probable ones given the reference prefix, e.g. "
        "5,10,100",
    )  # fmt: skip
    report_forced_bleu: bool = option(
        False, "log in validation the BLEU of the most probable tokens given the reference prefix, computed over the "
        "tokens of the data",
    )  # fmt: skip


@register_criterion("document_label_smoothed_cross_entropy", dataclass=DocumentLabelSmoothedCrossEntropyConfig)
class DocumentLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """The loss of ``label_smoothed_cross_entropy`` in less time and memory, with additional values in the log.

    In bits per token: ``first_nll_loss`` and ``later_nll_loss`` of the first sentences of documents and of all others
    (task ``document_translation``); with ``report_cxmi``, in validation, ``no_context_loss``, ``no_context_nll_loss``
    and ``cxmi``. In validation: ``chi_LAYER``, the mean χ of a χ-gated layer over the tokens, by the layer's name
    without ``layers``. With ``report_top_k`` ``topK_accuracy``, with ``report_forced_bleu``, in validation,
    ``forced_bleu``.

    Conditional cross-mutual information ([F] Fernandes et al., Measuring and Increasing Context Usage in Context-Aware
    Machine Translation, ACL 2021) is the mean over target tokens of log2 p(y|x, C) − log2 p(y|x), both by this model.
    Above zero, context helps.
    """

    def __init__(
        self,
        task: FairseqTask,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        report_cxmi: bool = False,
        report_top_k: str = "",
        report_forced_bleu: bool = False,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.report_cxmi = report_cxmi
        self.ranks = sorted({int(rank) for rank in filter(None, report_top_k.split(","))})
        self.dictionary = task.target_dictionary if report_forced_bleu else None

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Loss (summed, or [real target tokens] if not reduced), sample size and logging output."""
        with nullcontext() if model.training else capture(ContextFreeIndicator) as recording:
            net_output = model(**sample["net_input"])
        logits, target = self._logits_and_target(model, net_output, sample)
        loss, nll = label_smoothed_nll(logits, target, self.eps)
        sample_size = len(sample["target"]) if self.sentence_avg else sample["ntokens"]
        log = {"ntokens": sample["ntokens"], "nsentences": len(sample["target"]), "sample_size": sample_size}
        log.update(self._nll_by_place(model, net_output, sample, nll))
        with torch.no_grad():
            if self.report_accuracy:
                log.update(n_correct=int(logits.argmax(1).eq(target).sum()), total=len(target))
            if self.ranks:
                log.update(top_k_sums(logits, target, self.ranks))
            if self.dictionary is not None and not model.training:
                best, real = net_output[0].argmax(-1), self._real(sample["target"])
                log.update(forced_bleu_sums(best, sample["target"], real, self.dictionary))
        if recording is not None:
            log.update(chi_by_layer(model, recording))
        if self.report_cxmi and not model.training and "layout" in sample["net_input"]:
            log.update(self._without_context(model, sample))
        if reduce:
            loss, nll = loss.sum(), nll.sum()
        return loss, sample_size, {"loss": loss.data, "nll_loss": nll.data, **log}

    def _logits_and_target(
        self, model: BaseFairseqModel, net_output: NetOutput, sample: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor]:
        """Logits [real target tokens, V] and targets [real target tokens]."""
        target = model.get_targets(sample, net_output)
        if target.dim() == 1:  # packed already
            return net_output[0], target
        real = self._real(target)
        return net_output[0][real], target[real]

    def _real(self, target: Tensor) -> Tensor:
        """Mask of the real tokens in padded targets [S, m_t]."""
        real = target.ne(self.padding_idx)
        real[:, : self.ignore_prefix_size] = False
        return real

    def _nll_by_place(
        self, model: BaseFairseqModel, net_output: NetOutput, sample: Dict[str, Any], nll: Tensor
    ) -> Dict[str, Tensor]:
        """Sums over the tokens of the first sentences of documents, and of all others."""
        if "opens_document" not in sample:
            return {}
        opens = sample["opens_document"][:, None].expand_as(sample["target"])  # [S, m_t]
        first = model.get_targets({"target": opens}, net_output)
        if first.dim() == 2:
            first = first[self._real(sample["target"])]
        sums = {}
        for name, tokens in ((FIRST, first), (LATER, ~first)):
            sums[f"{name}_nll_loss"] = nll.mul(tokens).sum()
            sums[f"{name}_ntokens"] = tokens.sum()
        return sums

    def _without_context(self, model: BaseFairseqModel, sample: Dict[str, Any]) -> Dict[str, Tensor]:
        """Sums of the same sentences without context."""
        alone = sample["net_input"]["layout"].without_context()
        net_output = model(**{**sample["net_input"], "layout": alone})
        loss, nll = label_smoothed_nll(*self._logits_and_target(model, net_output, sample), self.eps)
        return {f"{HIDDEN}_loss": loss.detach().sum(), f"{HIDDEN}_nll_loss": nll.sum()}

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        log_sums(logging_outputs)

        def total(name: str) -> float:
            return float(sum(log.get(name, 0) for log in logging_outputs))

        def mean(name: str, nats: float, count: float) -> None:
            metrics.log_scalar(name, nats / count / math.log(2), count, round=3)

        for place in (FIRST, LATER):
            tokens = total(f"{place}_ntokens")
            if tokens > 0:
                mean(f"{place}_nll_loss", total(f"{place}_nll_loss"), tokens)
        if any(f"{HIDDEN}_loss" in log for log in logging_outputs):
            tokens, hidden = total("ntokens"), total(f"{HIDDEN}_nll_loss")
            mean(f"{HIDDEN}_loss", total(f"{HIDDEN}_loss"), total("sample_size"))
            mean(f"{HIDDEN}_nll_loss", hidden, tokens)
            mean("cxmi", hidden - total("nll_loss"), tokens)
        for key in sorted({key for log in logging_outputs for key in log if key.endswith(CHI_COUNT)}):
            layer, inputs = key[: -len(CHI_COUNT)], total(key)
            if inputs > 0:
                metrics.log_scalar(f"chi_{layer}", total(f"{layer}{CHI_SUM}") / inputs, inputs, round=4)


def chi_by_layer(model: BaseFairseqModel, recording: Capture) -> Dict[str, Tensor]:
    """Sum and number of the recorded χ of every χ-gated layer; zeros for layers without input.

    All batches have the same keys on the same device, since processes add up their logging outputs.
    """
    sums = {}
    for name, layer in model.named_modules():
        if isinstance(layer, ReportsChi):
            name = "_".join(part for part in name.split(".") if part not in ("module", "layers"))
            indicators = [evidence for evidence in recording.of(layer) if isinstance(evidence, ContextFreeIndicator)]
            chi = [indicator.chi[~indicator.chi.isnan()].double() for indicator in indicators]
            nothing = torch.zeros((), device=next(layer.parameters()).device)
            sums[f"{name}{CHI_SUM}"] = sum((values.sum() for values in chi), nothing)
            sums[f"{name}{CHI_COUNT}"] = torch.tensor(sum(len(values) for values in chi))
    return sums


def label_smoothed_nll(logits: Tensor, target: Tensor, smoothing: float) -> Tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood of each token in nats, [N] and [N], at least in float32.

    With p = softmax(x), ε_i = ε/(V − 1): loss = −(1 − ε − ε_i) log p(y) − ε_i Σ_v log p(v), as fairseq's criterion. The
    gradient of the loss is p − ε_i − (1 − ε − ε_i)·[v = y]; the negative log-likelihood has none.

    Args:
        logits: x [N, V].
        target: y [N].
        smoothing: ε.
    """
    return _LabelSmoothedNll.apply(logits, target, smoothing)


class _LabelSmoothedNll(torch.autograd.Function):
    """Processes rows in chunks in both directions; p is recomputed for the gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, smoothing: float) -> Tuple[Tensor, Tensor]:
        ctx.smoothing = smoothing
        ctx.save_for_backward(logits, target)
        of_target, of_all = _weights(logits, smoothing)
        loss = torch.empty(len(logits), dtype=computing_type(logits.dtype), device=logits.device)
        nll = torch.empty_like(loss)
        for x, y, loss_part, nll_part in _chunks(logits, target, loss, nll):
            log_p = x.log_softmax(1, dtype=loss.dtype)
            torch.neg(log_p.gather(1, y.unsqueeze(1)).squeeze(1), out=nll_part)
            torch.sub(of_target * nll_part, of_all * log_p.sum(1), out=loss_part)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> Tuple[Tensor, None, None]:
        logits, target = ctx.saved_tensors
        of_target, of_all = _weights(logits, ctx.smoothing)
        gradient = torch.empty_like(logits)
        for x, y, factor, written in _chunks(logits, target, grad_loss, gradient):
            p = x.softmax(1, dtype=grad_loss.dtype)
            right = torch.full((len(y), 1), of_target, dtype=p.dtype, device=p.device)
            p.sub_(of_all).scatter_add_(1, y.unsqueeze(1), right.neg_())
            torch.mul(p, factor.unsqueeze(1), out=p)
            written.copy_(p)
        return gradient, None, None


def _weights(logits: Tensor, smoothing: float) -> Tuple[float, float]:
    """Weights of the target's log-probability and of every word's."""
    of_all = smoothing / (logits.size(1) - 1)
    return 1 - smoothing - of_all, of_all


def _chunks(logits: Tensor, *others: Tensor) -> Iterator[Tuple[Tensor, ...]]:
    rows = max(1, chunk_elements(logits.device, CHUNK) // logits.size(1))
    return zip(*(tensor.split(rows) for tensor in (logits, *others)))
