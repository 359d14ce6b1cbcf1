"""Context-aware layers ([Z] sec. 3.2, 3.5): each mixes two vectors by a context-free indicator χ of its input.

``decomposition`` is their common base, and trains χ and the vectors alternately. Importing the folder registers its
sentence encoders and feed-forwards. Pure PyTorch.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
