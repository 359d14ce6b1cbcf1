"""Batches as models take them: with a layout or without, whatever the task gives."""

from typing import Any, Callable, Dict, Iterable, Optional, Sequence, Tuple

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.errors import InputError


def right_padded_with_layout(
    src_tokens: Tensor,
    layout: Optional[DocumentLayout],
    padding: int,
    plans: Callable[[], Iterable[PlanKey[Any]]] = tuple,
) -> Tuple[Tensor, DocumentLayout]:
    """Right-padded tokens [S, m] and a layout on their device, whatever the task gives.

    Args:
        src_tokens: [S, m], padded on either side if there is no layout.
        layout: of the batch; None: every sentence stands alone.
        padding: number of the padding.
        plans: those that will be asked for; a layout that has yet to be moved takes them along.
    """
    if layout is not None:
        there = src_tokens.device
        return src_tokens, layout if layout.device == there else layout.with_plans(plans(), there).to(there)
    real = src_tokens.ne(padding)
    order = real.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # pads to the right
    lengths = real.sum(1).cpu().numpy()
    return src_tokens.gather(1, order), DocumentLayout.of_single_sentences(lengths).to(src_tokens.device)


def takes_layout(model: BaseFairseqModel) -> bool:
    """Whether the model looks across sentences; fairseq's own models translate each by itself."""
    return getattr(model, "takes_layout", False)


def all_take_layouts(models: Sequence[BaseFairseqModel]) -> bool:
    """Whether the models of an ensemble look across sentences; :class:`InputError` if only some do."""
    takers = [takes_layout(model) for model in models]
    if any(takers) and not all(takers):
        raise InputError("--path: an ensemble of models with and without document context is not supported")
    return all(takers)


def batch_for_model(model: BaseFairseqModel, sample: Dict[str, Any]) -> Dict[str, Any]:
    """The batch as the model takes it."""
    if takes_layout(model) or "net_input" not in sample:
        return sample
    net_input = {name: value for name, value in sample["net_input"].items() if name not in ("layout", "extra_sources")}
    return {**sample, "net_input": net_input}
