"""Context mechanisms: attention of tokens to other sentences of their document. Pure PyTorch.

Importing the package registers every mechanism in this folder, in ``selected`` and in ``conditional``.
"""

from docnmt_fairseq import ca_layers  # noqa: F401  (registers its sentence encoders)
from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
