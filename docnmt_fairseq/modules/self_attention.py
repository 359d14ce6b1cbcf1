"""Multi-head self-attention sentence by sentence over packed words: the stock encoder's, without padding."""

from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.multi_head import MultiHeadAttention


class SentenceSelfAttention(MultiHeadAttention):
    """Every word attends to the words of its own sentence."""

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed word states x [N, d]."""
        return self.attend(x, x, layout.within_sentences)
