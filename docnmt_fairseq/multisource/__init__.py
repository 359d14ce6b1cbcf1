"""Attention of a decoder to several sources: scores for one source, and combinations over sources.

Source: ``[L]`` J. Libovický and J. Helcl, Attention Strategies for Multi-Source Sequence-to-Sequence Learning,
ACL 2017. Importing the folder registers its classes. Pure PyTorch.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
