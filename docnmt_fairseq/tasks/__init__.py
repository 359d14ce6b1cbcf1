"""fairseq tasks; fairseq imports every file of this folder, before any checkpoint is read."""

from docnmt_fairseq import compat  # noqa: F401
