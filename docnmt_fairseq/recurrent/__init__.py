"""Recurrent cells and layers, over whole sequences and step by step. Pure PyTorch.

Importing the folder registers its cells.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
