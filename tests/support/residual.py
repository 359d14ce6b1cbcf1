"""Blocks of context-aware layers as ``ca-res`` has them, of any widths and without the rest of a feed-forward."""

from docnmt_fairseq.ca_layers.feed_forward import ContextAwareResidual, joined_layers


def joined_residual(block, widths, activation):
    return ContextAwareResidual(block, joined_layers(block, widths, activation), widths)
