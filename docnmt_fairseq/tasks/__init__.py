"""fairseq tasks; fairseq imports every file of this folder, before any checkpoint is read."""

from docnmt_fairseq import compat  # noqa: F401
from docnmt_fairseq.criterions import document_label_smoothed_cross_entropy  # noqa: F401
from docnmt_fairseq.optim import fused_adamw  # noqa: F401
