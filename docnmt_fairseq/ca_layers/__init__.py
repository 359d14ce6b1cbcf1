"""Context-aware layers ([Z] sec. 3.2, 3.5): each mixes two vectors by a context-free indicator χ of its input.

``decomposition`` is what they have in common, ``alternating_updates`` trains χ and the vectors in turn. Importing the
folder registers its sentence encoders. Pure PyTorch.
"""

from docnmt_fairseq.registry import import_folder

import_folder(__name__, __path__)
