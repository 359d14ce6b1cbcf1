"""The contracts of context mechanisms, their options, and the registry that the Transformer asks for them.

A mechanism is one class in one file of this folder, registered by name; importing the folder imports its files.
It always serves the encoder; one that derives from :class:`DecoderContextMechanism` or :class:`TargetContextMechanism`
serves the decoder as well.
"""

from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.modules.registry import Registry

ADDED = ("block", "heads")  # placements where context is added to what is there
GATED = ("gated-attention", "gated-feed-forward", "gated-output")  # where a gate weighs it against what is there
PLACEMENTS = (*ADDED, "replace", *GATED)
SELECTION_SCORES = ("level", "cumulative")
CONTEXT_SELECTIONS = ("previous", "next", "random", "similar")
COMBINATIONS = ("concatenate", "parallel")
MEMORY_SCOPES = ("own", "document", "batch")


@dataclass(frozen=True)
class MemoryConfig:
    """What mechanisms with selected context sentences may need to know.

    Attributes:
        contexts: N, context sentences a sentence; None: the mechanism's own number.
        selection: which, of ``CONTEXT_SELECTIONS``.
        seed: of a random selection.
        combination: how several make one context, of ``COMBINATIONS``.
        scope: whose context sentences a word sees, of ``MEMORY_SCOPES``.
        rnn: the context encoder, of ``CONTEXT_READERS``; None: none.
        attention: whether words attend to context words.
    """

    contexts: Optional[int] = None
    selection: str = "previous"
    seed: int = 1
    combination: str = "concatenate"
    scope: str = "own"
    rnn: Optional[str] = "gru"
    attention: bool = True


@dataclass(frozen=True)
class ContextConfig:
    """What a mechanism may need to know.

    Attributes:
        embed_dim: d, of the words that context is added to.
        source_dim: width of the source words that it comes from, None: d too (always, in the encoder).
        source_heads: H of the attention that encodes source sentences, None: d / d_k.
        heads: H, a divisor of d for ``block`` and ``replace``; the number of extra heads for ``heads``.
        head_dim: d_k.
        dropout: of attention weights.
        sentence_encoder: name in ``SENTENCE_ENCODERS``.
        kept_sentences: t at the end of the schedule; None keeps all.
        kept_start: t at its start, None: all sentences of the document.
        narrow_from: update at which t begins to fall.
        narrow_updates: how many updates it takes to reach ``kept_sentences``.
        always_keep_own: keep a word's own sentence besides the t selected ones.
        tree_merge: name in ``TREE_MERGES``.
        selection_score: what a height of the tree is cut by, of ``SELECTION_SCORES``.
        kernel: who computes selected attention, see ``modules/kernels``.
        zero_init: start with an output of zero, so that a residual sub-layer begins as the identity. (Where a gate
            weighs the output, the gate begins as the identity.)
        ffn_dim: width of a feed-forward.
        activation: of a feed-forward.
        activation_dropout: inside a feed-forward.
        residual_dropout: of a sub-layer's output, before it is added to what was there.
        memory: of mechanisms with selected context sentences.
    """

    embed_dim: int
    heads: int
    head_dim: int
    dropout: float = 0.0
    sentence_encoder: str = "source2token"
    kept_sentences: Optional[int] = 4
    kept_start: Optional[int] = None
    narrow_from: int = 0
    narrow_updates: int = 0
    always_keep_own: bool = False
    tree_merge: str = "source2token"
    selection_score: str = "level"
    kernel: str = "auto"
    zero_init: bool = False
    source_dim: Optional[int] = None
    source_heads: Optional[int] = None
    ffn_dim: int = 2048
    activation: Callable[[Tensor], Tensor] = torch.relu
    activation_dropout: float = 0.0
    residual_dropout: float = 0.0
    memory: MemoryConfig = MemoryConfig()


class ContextMechanism(nn.Module):
    """Contract: ``cls(config)``; adds to every word what it needs from its document, and from no other.

    Class attributes:
        placements: the places of ``PLACEMENTS`` where it makes sense, the usual one first.
        top_layer_only: whether it stands in the last layer, and not in the upper half, if no layers are named.
        reads_embeddings: whether ``forward`` takes the words as they entered the encoder, too.
    """

    placements: Tuple[str, ...] = ()
    top_layer_only = False
    reads_embeddings = False

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        """Returns [N, d] from packed word states of whole documents. No residual with x, no normalisation of x.

        Args:
            x: [N, d], in a gated placement the input of the sub-layer that it stands beside, or of the next layer.
            layout: the batch.
            embeddings: if ``reads_embeddings``, one tensor [N, d]: the words as they entered the encoder.
        """
        raise NotImplementedError

    def reached(self, layout: DocumentLayout) -> Optional[Tensor]:
        """Returns which words have context, [N]; None: all. What ``forward`` gives the others means nothing."""
        return None


class DecoderContextMechanism(ContextMechanism):
    """Contract of mechanisms that also serve the decoder ([T] sec. 2): target words look at the source document.

    The decoder asks for the memory once a batch, and attends to it at every step of the search: the memory is never
    repeated for hypotheses, which vanish and change places while it stays as it is.
    """

    def remember(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns the memory [R, w], something of every sentence, context-only ones included.

        Args:
            states: [N, d_source] packed final states of the encoder.
            layout: the batch.
        """
        raise NotImplementedError

    def attend(self, x: Tensor, memory: Tensor, sight: Union[AttentionPlan, Tensor]) -> Tensor:
        """Returns [M, d] from target words x [M, d]. No residual, no normalisation.

        Args:
            x: packed target words, or one word of every hypothesis.
            memory: of :meth:`remember`.
            sight: the sentences that each word sees, those of its document: a plan, or [M, R], True where it sees.
        """
        raise NotImplementedError


class TargetContextMechanism(ContextMechanism):
    """Contract of mechanisms by which target words also see the target sentences before theirs.

    In training ``forward`` takes packed target words, whose layout is :attr:`DocumentLayout.of_targets`. A search goes
    through the sentences of a document one by one, and gives what it wrote before.

    Attributes:
        contexts: how many sentences before it a sentence sees at most.
    """

    contexts: int

    def remember(self, states: Tensor) -> Tensor:
        """Returns [..., w], what the words of later sentences look at, from target words' states [..., d]."""
        raise NotImplementedError

    def look_back(self, x: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """Returns [S, b, d], as ``forward`` does; what it gives sentences with nothing before them means nothing.

        Args:
            x: [S, b, d] words of S sentences, e.g. one of each of b hypotheses.
            memory: [S, J, L, w] what was remembered of the J sentences before each.
            padding: [S, J, L] True at padding, all of it where there are fewer than J sentences.
        """
        raise NotImplementedError


CONTEXT_MECHANISMS: Registry[ContextMechanism] = Registry("context mechanism")


def decoder_mechanisms() -> List[str]:
    """Returns the names of the mechanisms that serve the decoder, sorted."""
    return _deriving_from(DecoderContextMechanism)


def target_mechanisms() -> List[str]:
    """Returns the names of the mechanisms by which target words see previous target sentences, sorted."""
    return _deriving_from(TargetContextMechanism)


def _deriving_from(contract: type) -> List[str]:
    return [name for name in CONTEXT_MECHANISMS.names() if issubclass(CONTEXT_MECHANISMS[name], contract)]
