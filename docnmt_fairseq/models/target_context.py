"""What target words get from the target sentences before theirs, at the end of the decoder."""

from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.config import DocumentTransformerConfig
from docnmt_fairseq.models.context_config import target_context_config
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS
from docnmt_fairseq.modules.gate import ContextGate


class TargetContext(nn.Module):
    """A :class:`TargetContextMechanism` over the decoder's final states, and the gate that weighs it against them.

    The states that are looked back at are those before the gate: no sentence's depend on the sentences before it, so
    that in training all sentences of a document are computed at once.
    """

    def __init__(self, cfg: DocumentTransformerConfig):
        super().__init__()
        self.mechanism = CONTEXT_MECHANISMS[cfg.target_context_attention](target_context_config(cfg))
        self.gate = ContextGate(cfg.decoder_embed_dim, cfg.context_init == "zero")

    def forward(self, x: Tensor, targets: DocumentLayout) -> Tensor:
        """Returns packed states [N_t, d] from x [N_t, d], those of whole documents."""
        return self.gate(x, self.mechanism(x, targets), self.mechanism.reached(targets))

    def look_back(self, x: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """Returns padded states [S · b, m_t, d] from x [S · b, m_t, d], those of b hypotheses of each sentence.

        Args:
            x: see above.
            memory, padding: [S, J, L, w] and [S, J, L], see :meth:`TargetContextMechanism.look_back`.
        """
        of_sentence = x.reshape(len(memory), -1, x.size(-1))  # [S, b · m_t, d]
        context = self.mechanism.look_back(of_sentence, memory, padding).view_as(x)
        reached = (~padding).flatten(1).any(1).repeat_interleave(of_sentence.size(1))
        return self.gate(x.flatten(0, 1), context.flatten(0, 1), reached).view_as(x)
