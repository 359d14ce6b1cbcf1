"""How a decoder attends to several sources: scores of one source, and ways to combine them, one a file.

Source: ``[L]`` J. Libovický and J. Helcl, Attention Strategies for Multi-Source Sequence-to-Sequence Learning,
ACL 2017. Importing the folder registers what is in it. Pure PyTorch.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
