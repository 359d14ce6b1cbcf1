"""Context mechanisms: how the tokens of a sentence look at other sentences of their document. Pure PyTorch.

Importing the folder registers every mechanism: each file here, in ``selected`` and in ``conditional``.
"""

from docnmt_fairseq import ca_layers  # noqa: F401  (registers its sentence encoders)
from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
