"""Blocks of context-aware layers as in ``ca-res``, of any widths."""

from docnmt_fairseq.ca_layers.feed_forward import ContextAwareResidual, joined_layers


def joined_residual(block, widths, activation):
    return ContextAwareResidual(block, joined_layers(block, widths, activation), widths)
