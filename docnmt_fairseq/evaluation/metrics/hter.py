"""HTER (Snover et al. 2006), as WMT's tasks of automatic post-editing score it."""

from docnmt_fairseq.evaluation.metrics.base import METRICS
from docnmt_fairseq.evaluation.metrics.ter import Ter


@METRICS.register("hter")
class Hter(Ter):
    """TER over tokens as they stand, with case.

    It is human-targeted if the reference is a post-edit of the machine translation.
    """

    title = "HTER"
    help = "ter with case, against post-edits (as slow)"
    case_sensitive = True
