"""The contracts of context mechanisms and the registry that the Transformer asks for them.

A mechanism is one class in one file of this folder or of a folder in it, registered by name; importing ``context``
imports them all. It always serves the encoder; one that derives from :class:`DecoderContextMechanism` or
:class:`TargetContextMechanism` serves the decoder as well.

    @CONTEXT_MECHANISMS.register("nearest")
    class Nearest(ContextMechanism):
        @dataclass(frozen=True)
        class Options(NoOptions):
            nearest_window: int = option(2, "sentences on either side", minimum=1)

        placements = ("block",)

        def __init__(self, layer: LayerConfig, options: "Nearest.Options"): ...

        def forward(self, x, layout): ...

is all there is to it: ``--context-attention nearest --nearest-window 3`` and the architectures
``document_transformer_nearest_…`` exist, the option is checked and documented.
"""

from dataclasses import dataclass
from typing import Any, Collection, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar

from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plans import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.layers.base import LayerConfig
from docnmt_fairseq.registry import Registry

ADDED = ("block", "heads")  # placements where context is added to what is there
GATED = ("gated-attention", "gated-feed-forward", "gated-output")  # where a gate weighs it against what is there
PLACEMENTS = (*ADDED, "replace", *GATED)
SIDES = ENCODER, DECODER, TARGET = ("encoder", "decoder", "target")  # where a mechanism stands; target: of targets

__all__ = [
    "CONTEXT_MECHANISMS",
    "PLACEMENTS",
    "ContextMechanism",
    "DecoderContextMechanism",
    "LayerConfig",
    "NoOptions",
    "TargetContextMechanism",
]  # fmt: skip


@dataclass(frozen=True)
class NoOptions:
    """The options of a mechanism that has none; those of others derive from it."""


class ContextMechanism(nn.Module):
    """Contract: ``cls(layer, options)``; adds to every token what it needs from its document, and from no other.

    Class attributes:
        Options: a frozen dataclass of the mechanism's own options, each declared by
            :func:`docnmt_fairseq.options.option`; mechanisms that share an option share the class that declares it.
        placements: the places of ``PLACEMENTS`` where it makes sense, the usual one first. In ``replace`` its
            projections are called ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``, with biases, as those of the
            self-attention whose place and weights it takes; a sentence without context gets just what that gives.
        top_layer_only: whether it stands in the last layer, and not in the upper half, if no layers are named.
        asks_attention: whether its queries are what self-attention alone gave, without the residual and the norm.
        reads_embeddings: whether ``forward`` takes the tokens as they entered the encoder, too.
    """

    Options: Type[Any] = NoOptions
    placements: Tuple[str, ...] = ()
    top_layer_only = False
    asks_attention = False
    reads_embeddings = False

    @classmethod
    def problems(cls, options: Any) -> Iterator[str]:
        """What is wrong with options that are right each by itself, by their flags."""
        return iter(())

    @classmethod
    def unread(cls, side: str) -> Collection[str]:
        """The names of those options of its that have no effect on a side.

        Args:
            side: where it stands, of ``SIDES``.
        """
        return ()

    @classmethod
    def remarks(cls, options: Any) -> Iterator[str]:
        """What a user of these options ought to know, each a warning."""
        return iter(())

    @classmethod
    def preset(cls, given: Mapping[str, Any]) -> Dict[str, Any]:
        """What architectures that are named after the mechanism set of its options; others have the defaults.

        The defaults are the paper's, presets what we found to work.

        Args:
            given: the options of the command line, None where one is left open.
        """
        return {}

    def plans(self) -> Iterator[PlanKey[Any]]:
        """The plans that ``forward`` will ask a batch's layout for: they are made where batches are collated."""
        return iter(())

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        """Context [N, d] of packed token states of whole documents. No residual with x, no normalisation of x.

        Args:
            x: [N, d], in a gated placement the input of the sub-layer that it stands beside, or of the next layer.
            layout: the batch.
            embeddings: if ``reads_embeddings``, one tensor [N, d]: the tokens as they entered the encoder.
        """
        raise NotImplementedError

    def has_context(self, layout: DocumentLayout) -> Optional[Tensor]:
        """Which tokens have context, [N]; None: all.

        A gate leaves the others as they are, whatever ``forward`` gives them; that must be finite all the same, or the
        gate's gradients are not. In the places of ``ADDED`` it is added: there ``forward`` gives them zeros.
        """
        return None


class DecoderContextMechanism(ContextMechanism):
    """Contract of mechanisms that also serve the decoder ([T] sec. 2): target tokens look at the source document.

    What depends on the source alone is computed once a batch (:meth:`project`) and attended to at every step of the
    search: it is never repeated for hypotheses, which vanish and change places while it stays as it is.
    """

    def project(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """What target tokens attend to: [R, w], something of every sentence, context-only ones included.

        Args:
            states: [N, d_source] packed final states of the encoder.
            layout: the batch.
        """
        raise NotImplementedError

    def attend(self, x: Tensor, projected: Tensor, plan: AttentionPlan) -> Tensor:
        """Context [M, d] of packed target tokens x [M, d]. No residual, no normalisation.

        Args:
            x: the tokens.
            projected: [R, w] of :meth:`project`.
            plan: the sentences that each token sees, those of its document.
        """
        raise NotImplementedError

    def attend_masked(self, x: Tensor, projected: Tensor, mask: Tensor) -> Tensor:
        """Context [M, d] as :meth:`attend` gives it, of the few tokens that a step of a search adds.

        Args:
            x: [M, d] one token of every hypothesis.
            projected: [R, w] of :meth:`project`.
            mask: [M, R] True where a token sees a sentence.
        """
        raise NotImplementedError


class TargetContextMechanism(ContextMechanism):
    """Contract of mechanisms by which target tokens also see the target sentences before theirs.

    In training ``forward`` takes packed target tokens, whose layout is :class:`~docnmt_fairseq.batch.plans.OfTargets`.
    A search goes through the sentences of a document one by one, and gives what it wrote before.

    Attributes:
        contexts: how many sentences before it a sentence sees at most.
    """

    contexts: int

    @classmethod
    def unread(cls, side: str) -> Collection[str]:
        """See :class:`ContextMechanism`; a search knows no other target sentences than those before."""
        return ("context_selection",) if side == TARGET else ()

    def project_targets(self, states: Tensor) -> Tensor:
        """What the tokens of later sentences look at, [..., w], of target tokens' states [..., d]."""
        raise NotImplementedError

    def look_back(self, x: Tensor, projected: Tensor, padding: Tensor) -> Tensor:
        """Context [S, b, d] as ``forward`` gives it; of sentences with nothing before them it means nothing.

        Args:
            x: [S, b, d] tokens of S sentences, e.g. one of each of b hypotheses.
            projected: [S, J, L, w] of :meth:`project_targets` of the J sentences before each.
            padding: [S, J, L] True at padding, all of it where there are fewer than J sentences.
        """
        raise NotImplementedError


def _problem(mechanism: Type[ContextMechanism]) -> Optional[str]:
    places = mechanism.placements
    if places and all(place in PLACEMENTS for place in places):
        return None
    return f"placements {places!r}: must be some of {', '.join(PLACEMENTS)}"


CONTEXT_MECHANISMS: Registry[ContextMechanism] = Registry("context mechanism", _problem)
C = TypeVar("C", bound=ContextMechanism)


class MechanismsOf(Generic[C]):
    """The mechanisms that fulfil a contract, by name, as options are checked by.

    Args:
        contract: the class that they derive from.
    """

    def __init__(self, contract: Type[C]):
        self.contract = contract

    def __getitem__(self, name: str) -> Type[C]:
        mechanism = CONTEXT_MECHANISMS[name]
        if not issubclass(mechanism, self.contract):
            raise ValueError(f"{name!r} is no {self.contract.__name__}; there are: {', '.join(self.names())}")
        return mechanism

    def names(self) -> List[str]:
        """The names, sorted."""
        names = CONTEXT_MECHANISMS.names()
        return [name for name in names if issubclass(CONTEXT_MECHANISMS[name], self.contract)]

    def __contains__(self, name: object) -> bool:
        return name in self.names()


DECODER_MECHANISMS = MechanismsOf(DecoderContextMechanism)
TARGET_MECHANISMS = MechanismsOf(TargetContextMechanism)
