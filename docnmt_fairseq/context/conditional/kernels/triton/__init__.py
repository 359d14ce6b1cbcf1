"""Kernel ``triton``: GPU programs in Triton, compiled at first use."""
