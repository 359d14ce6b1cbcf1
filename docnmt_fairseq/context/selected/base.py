"""What mechanisms with selected context sentences have in common."""

from dataclasses import dataclass
from typing import Any, Iterator, Optional

from torch import Tensor, nn

from docnmt_fairseq.batch.context_sentences import CONTEXT_SELECTIONS, ContextRows, ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import ContextMechanism, LayerConfig, NoOptions
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class SelectedOptions(NoOptions):
    """Which sentences these are."""

    context_sentences: int = option(
        0, "sentences that a sentence has as context in memory, han (source or target), context-aware and ca-att; 0: "
        "3 for han, else 1", minimum=0,
    )  # fmt: skip
    context_selection: str = option(
        "previous", "which sentences these are: the previous, the next, others of the document at random, always the "
        "same for one --seed or drawn anew each epoch, the earlier ones that are most similar by their vectors (docnmt "
        "embed neighbours), or some of the training set at random, in training anew every epoch (ablation)",
        names=CONTEXT_SELECTIONS,
    )  # fmt: skip


class SelectedContext(ContextMechanism):
    """A mechanism whose context is some sentences, usually of the document, chosen by their place or by likeness.

    Class attributes:
        default_contexts: N where the option leaves it open.

    Attributes:
        contexts: how many context sentences a sentence has at most.
        context_sentences: which sentences these are.
    """

    Options = SelectedOptions
    top_layer_only = True
    default_contexts = 1

    def __init__(self, layer: LayerConfig, options: SelectedOptions):
        super().__init__()
        self.contexts = options.context_sentences or self.default_contexts
        self.context_sentences = ContextSentences(self.contexts, options.context_selection, layer.seed)

    @property
    def similar_contexts(self) -> int:
        """How many similar sentences of each the batch must know, see :func:`similar_contexts`."""
        return self.contexts if self.context_sentences.selection == "similar" else 0

    @property
    def drawn_contexts(self) -> int:
        """How many sentences of the training set the batch must bring along for each, see :func:`drawn_contexts`."""
        return self.contexts if self.context_sentences.selection == "training-set" else 0

    def select(self, layout: DocumentLayout) -> ContextRows:
        """The context of every row."""
        return layout.plan(self.context_sentences)

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`ContextMechanism`."""
        yield self.context_sentences

    def has_context(self, layout: DocumentLayout) -> Optional[Tensor]:
        """See :class:`ContextMechanism`."""
        return self.select(layout).has_context

    def nothing(self, x: Tensor) -> Tensor:
        """Zeros [N, d] for a batch in which no token has context; see :func:`zero_of`."""
        return 0 * x + zero_of(self)


def zero_of(module: nn.Module) -> Tensor:
    """0, as the result of a module that a batch has no use for.

    Every parameter takes part, with a gradient of zero: processes that train together exchange the same gradients. As
    the sum of no element: 0 times that of all is no number where half precision has no place for the sum of a table.
    """
    first, *others = (parameter.flatten()[:0].sum() for parameter in module.parameters())
    return sum(others, start=first)


def similar_contexts(model: nn.Module) -> int:
    """How many similar sentences of each a model wants to know at most; its parts say so by this name."""
    return max(getattr(module, "similar_contexts", 0) for module in model.modules())


def drawn_contexts(model: nn.Module) -> int:
    """How many sentences of the training set a model wants for each at most; its parts say so by this name."""
    return max(getattr(module, "drawn_contexts", 0) for module in model.modules())
