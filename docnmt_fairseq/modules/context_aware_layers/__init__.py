"""Context-aware layers ([Z] sec. 3.2, 3.5): each mixes two vectors by a context-free indicator χ of its input.

``chi_gated`` is what they have in common, ``alternating_updates`` trains χ and the vectors in turn.
"""

from docnmt_fairseq.modules.context_aware_layers import bag_of_features, convolution  # noqa: F401  (sentence encoders)
