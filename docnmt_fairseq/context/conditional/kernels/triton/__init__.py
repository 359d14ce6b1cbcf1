"""Kernel ``triton``: GPU programs in Triton, compiled when they are first used."""
