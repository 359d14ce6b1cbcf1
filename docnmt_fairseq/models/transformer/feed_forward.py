"""The feed-forward of a layer of ``document_transformer``."""

from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import nn

from docnmt_fairseq.layers.feed_forward import FEED_FORWARDS, FeedForward
from docnmt_fairseq.models.transformer.config import DocumentTransformerOptions, feed_forward_of, layer_config
from docnmt_fairseq.options import options_of


def feed_forward(cfg: DocumentTransformerOptions, side: str) -> nn.Module:
    """The feed-forward of a layer of the encoder or the decoder, with fairseq's dropout (``--retain-dropout``)."""
    variant = FEED_FORWARDS[feed_forward_of(cfg, side)]
    made = variant(layer_config(cfg, side), options_of(cfg, variant.Options))
    for part in made.modules():
        if isinstance(part, FeedForward):
            name = f"Document{side.capitalize()}Layer"
            part.activation_dropout = FairseqDropout(cfg.activation_dropout, module_name=name)
    return made
