"""Optimizers, registered by :func:`docnmt_fairseq.register`."""
