"""Contracts of context mechanisms, and their registry.

A mechanism is one class in one file of this folder or its subfolders, registered by name. It always serves the encoder;
subclasses of :class:`DecoderContextMechanism` and :class:`TargetContextMechanism` serve the decoder as well. Example:

    @CONTEXT_MECHANISMS.register("nearest")
    class Nearest(ContextMechanism):
        @dataclass(frozen=True)
        class Options(NoOptions):
            nearest_window: int = option(2, "sentences on either side", minimum=1)

        placements = ("block",)

        def __init__(self, layer: LayerConfig, options: "Nearest.Options"): ...

        def forward(self, x, layout): ...

This defines ``--context-attention nearest --nearest-window 3`` and the architectures
``document_transformer_nearest_…``; the option is validated and documented.
"""

from abc import ABC, abstractmethod
from typing import Any, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar

from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionPlan
from docnmt_fairseq.layers.base import LayerConfig, NoOptions
from docnmt_fairseq.registry import Registry

ADDED = ("block", "heads")  # placements where context is added to the states
GATED = ("gated-attention", "gated-feed-forward", "gated-output")  # placements where a gate mixes it with the states
PLACEMENTS = (*ADDED, "replace", *GATED)

__all__ = [
    "CONTEXT_MECHANISMS",
    "PLACEMENTS",
    "ContextMechanism",
    "DecoderContextMechanism",
    "LayerConfig",
    "NoOptions",
    "TargetContextMechanism",
]  # fmt: skip


class ContextMechanism(nn.Module, ABC):
    """Contract: ``cls(layer, options)``; computes the context of every token from its own document only.

    Class attributes:
        Options: frozen dataclass of the mechanism's options, declared with :func:`docnmt_fairseq.options.option`;
            mechanisms that share an option share the class that declares it.
        placements: supported entries of ``PLACEMENTS``, the default first. In ``replace``, projections are named
            ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, with biases, like those of the self-attention that it
            replaces and whose weights it loads; a sentence without context gets exactly the output of self-attention.
        top_layer_only: default layers: the last one instead of the upper half.
        asks_attention: whether queries are the output of self-attention alone, without residual and layer norm.
        reads_embeddings: whether ``forward`` also takes the input embeddings of the encoder.
    """

    Options: Type[Any] = NoOptions
    placements: Tuple[str, ...] = ()
    top_layer_only = False
    asks_attention = False
    reads_embeddings = False

    @classmethod
    def problems(cls, options: Any) -> Iterator[str]:
        """Yields errors in combinations of options, beginning with a flag."""
        return iter(())

    @classmethod
    def remarks(cls, options: Any) -> Iterator[str]:
        """Yields warnings about the options."""
        return iter(())

    @classmethod
    def preset(cls, given: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns options set by architectures named after the mechanism; defaults follow the paper, presets work best.

        Args:
            given: options of the command line; None for one that is not given.
        """
        return {}

    def plans(self) -> Iterator[PlanKey[Any]]:
        """Yields the plans that ``forward`` needs; they are made when a batch is collated."""
        return iter(())

    @abstractmethod
    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        """Returns the context [N, d] of packed token states; no residual connection, no normalisation of x.

        Args:
            x: [N, d]; in a gated placement the input of the gated sub-layer, or of the next layer.
            embeddings: if ``reads_embeddings``, one tensor [N, d]: input embeddings of the encoder.
        """

    def has_context(self, layout: DocumentLayout) -> Optional[Tensor]:
        """Returns a mask [N] of tokens that have context; None: all.

        A gate leaves other tokens unchanged; the output of ``forward`` for them must be finite, or the gate's gradients
        are not. In the placements of ``ADDED``, ``forward`` returns zeros for them.
        """
        return None


class DecoderContextMechanism(ContextMechanism):
    """Contract of mechanisms that also serve the decoder ([T] sec. 2): target tokens attend to the source document.

    Projections of the source are computed once per batch (:meth:`project`) and shared by all hypotheses and steps of a
    search.
    """

    @abstractmethod
    def project(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns the projections [R, w] that target tokens attend to, one per sentence, context-only ones included.

        Args:
            states: [N, d_source] packed final states of the encoder.
        """

    @abstractmethod
    def attend(self, x: Tensor, projected: Tensor, plan: AttentionPlan) -> Tensor:
        """Returns the context [M, d] of packed target tokens; no residual connection, no normalisation.

        Args:
            projected: [R, w] of :meth:`project`.
            plan: plan of the tokens over the sentences of their document.
        """

    @abstractmethod
    def attend_masked(self, x: Tensor, projected: Tensor, mask: Tensor) -> Tensor:
        """Returns the same context as :meth:`attend` for the few tokens of a search step.

        Args:
            x: [M, d] one token of every hypothesis.
            projected: [R, w] of :meth:`project`.
            mask: [M, R] True where a token sees a sentence.
        """


class TargetContextMechanism(ContextMechanism):
    """Contract of mechanisms by which target tokens attend to previous target sentences.

    In training ``forward`` takes packed target tokens with the layout of
    :class:`~docnmt_fairseq.batch.layout.OfTargets`. A search translates the sentences of a document one by one
    and passes the previous translations.

    Attributes:
        contexts: maximum number of previous sentences.
    """

    contexts: int

    @abstractmethod
    def project_targets(self, states: Tensor) -> Tensor:
        """Returns the projections [..., w] of target states [..., d] that tokens of later sentences attend to."""

    @abstractmethod
    def look_back(self, x: Tensor, projected: Tensor, padding: Tensor) -> Tensor:
        """Returns the same context as ``forward``, [S, b, d]; undefined for sentences without previous ones.

        Args:
            x: [S, b, d] tokens of S sentences, e.g. one token of each of b hypotheses.
            projected: [S, J, L, w] of :meth:`project_targets` of the J sentences before each.
            padding: [S, J, L] True at padding, which includes missing sentences.
        """


CONTEXT_MECHANISMS: Registry[ContextMechanism] = Registry("context mechanism")
C = TypeVar("C", bound=ContextMechanism)


class MechanismsOf(Generic[C]):
    """Registered mechanisms that fulfil a contract."""

    def __init__(self, contract: type):
        self.contract = contract

    def __getitem__(self, name: str) -> Type[C]:
        return CONTEXT_MECHANISMS[name]  # type: ignore[return-value]  # options accept the names below only

    def names(self) -> List[str]:
        """Returns the names, sorted."""
        return [name for name in CONTEXT_MECHANISMS.names() if issubclass(CONTEXT_MECHANISMS[name], self.contract)]

    def __contains__(self, name: object) -> bool:
        return name in self.names()


DECODER_MECHANISMS: MechanismsOf[DecoderContextMechanism] = MechanismsOf(DecoderContextMechanism)
TARGET_MECHANISMS: MechanismsOf[TargetContextMechanism] = MechanismsOf(TargetContextMechanism)
