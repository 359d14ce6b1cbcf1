"""The contract of context mechanisms, their options, and the registry that the Transformer asks for them.

A mechanism is one class in one file of this folder, registered by name; importing the folder imports its files.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.registry import Registry

PLACEMENTS = ("block", "heads", "replace")
SELECTION_SCORES = ("level", "cumulative")


@dataclass(frozen=True)
class ContextConfig:
    """What a mechanism may need to know.

    Attributes:
        embed_dim: d.
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
        zero_init: start with an output of zero, so that a residual sub-layer begins as the identity.
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


class ContextMechanism(nn.Module):
    """Contract: ``cls(config)``; adds to every word what it needs from its document, and from no other.

    Class attributes:
        placements: the places of ``PLACEMENTS`` where it makes sense.
    """

    placements: Tuple[str, ...] = ()

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed word states x [N, d] of whole documents. No residual, no normalisation."""
        raise NotImplementedError


CONTEXT_MECHANISMS: Registry[ContextMechanism] = Registry("context mechanism")
