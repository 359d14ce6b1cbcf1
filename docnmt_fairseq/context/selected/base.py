"""Base class of mechanisms with selected context sentences."""

from dataclasses import dataclass
from typing import Any, Iterator, Optional

from torch import Tensor, nn

from docnmt_fairseq.batch.context_sentences import CONTEXT_SELECTIONS, ContextRows, ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import ContextMechanism, LayerConfig, NoOptions
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class SelectedOptions(NoOptions):
    """Options that select the context sentences."""

    context_sentences: int = option(
        0, "number of context sentences of memory, han (source or target), context-aware and ca-att; 0: 3 for han, "
        "otherwise 1", minimum=0,
    )  # fmt: skip
    context_selection: str = option(
        "previous", "context sentences: the previous ones, the next ones, random ones of the document (fixed by --seed "
        "or drawn again in each epoch), the most similar previous ones by sentence vectors (docnmt embed neighbours), "
        "or random ones of the training set, drawn again in each epoch (ablation)",
        names=CONTEXT_SELECTIONS,
    )  # fmt: skip


class SelectedContext(ContextMechanism):
    """Mechanism with N selected context sentences per sentence.

    Class attributes:
        default_contexts: N if the option is 0.

    Attributes:
        contexts: N, the maximum number of context sentences.
        context_sentences: plan key of the context sentences.
        context_keys: the same in a list, see :func:`needed_contexts`.
    """

    Options = SelectedOptions
    top_layer_only = True
    default_contexts = 1

    def __init__(self, layer: LayerConfig, options: SelectedOptions):
        super().__init__()
        self.contexts = options.context_sentences or self.default_contexts
        self.context_sentences = ContextSentences(self.contexts, options.context_selection, layer.seed)
        self.context_keys = [self.context_sentences]

    def select(self, layout: DocumentLayout) -> ContextRows:
        """Returns the context sentences of every row."""
        return layout.plan(self.context_sentences)

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield self.context_sentences

    def has_context(self, layout: DocumentLayout) -> Optional[Tensor]:
        return self.select(layout).has_context

    def nothing(self, x: Tensor) -> Tensor:
        """Returns zeros [N, d] for a batch without any context; see :func:`zero_of`."""
        return 0 * x + zero_of(self)


def zero_of(module: nn.Module) -> Tensor:
    """Returns 0 as a function of all parameters of a module that a batch does not need.

    Their gradients are zero instead of missing, so data-parallel processes exchange the same gradients. It is a sum
    over no elements, because 0 times a sum that overflows in half precision is NaN.
    """
    first, *others = (parameter.flatten()[:0].sum() for parameter in module.parameters())
    return sum(others, start=first)


def needed_contexts(model: nn.Module, selection: str) -> int:
    """Returns how many sentences of a selection the batch must contain for each sentence, e.g. of ``training-set``."""
    keys = (key for module in model.modules() for key in getattr(module, "context_keys", ()))
    return max((key.contexts for key in keys if key.selection == selection), default=0)
