"""Recurrent cells, over whole sequences and step by step, and what is built from them. Pure PyTorch.

Importing the folder registers the cells in it.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
