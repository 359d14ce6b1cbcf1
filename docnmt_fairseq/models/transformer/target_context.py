"""What target tokens get from the target sentences before theirs, at the end of the decoder."""

from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plans import OfTargets
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.base import TargetContextMechanism
from docnmt_fairseq.layers.gate import ContextGate
from docnmt_fairseq.models.encoder_outputs import PreviousTargets
from docnmt_fairseq.models.transformer.config import (
    DocumentTransformerOptions,
    starts_at_identity,
    target_context_mechanism,
)


class TargetContext(nn.Module):
    """A :class:`TargetContextMechanism` over the decoder's final states, and the gate that weighs it against them.

    The states that are looked back at are those before the gate: no sentence's depend on the sentences before it, so
    that in training all sentences of a document are computed at once.
    """

    mechanism: TargetContextMechanism

    def __init__(self, cfg: DocumentTransformerOptions):
        super().__init__()
        self.mechanism = target_context_mechanism(cfg)
        self.gate = ContextGate(cfg.decoder_embed_dim, starts_at_identity(cfg))

    @property
    def targets(self) -> OfTargets:
        """Names the layout of the targets, with the plans that the mechanism will ask it for."""
        return OfTargets(tuple(self.mechanism.plans()))

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Packed states [N_t, d] from x [N_t, d], the target tokens of a batch."""
        targets = layout.plan(self.targets)
        return self.gate(x, self.mechanism(x, targets), self.mechanism.has_context(targets))

    def look_back(self, x: Tensor, previous: PreviousTargets) -> Tensor:
        """States [B, m, d] from x [B, m, d], those of hypotheses, as many of each sentence.

        Args:
            x: see above.
            previous: what stands before these sentences.
        """
        of_sentence = x.reshape(len(previous.projected), -1, x.size(-1))  # [S', b · m, d]
        context = self.mechanism.look_back(of_sentence, previous.projected, previous.padding).view_as(x)
        has_context = (~previous.padding).flatten(1).any(1).repeat_interleave(of_sentence.size(1))
        return self.gate(x.flatten(0, 1), context.flatten(0, 1), has_context).view_as(x)
