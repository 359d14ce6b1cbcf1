"""M2M-100 and NLLB-200 as Hugging Face has them.

Nothing in them is foreign to fairseq's own ``transformer``: sinusoids begin at its offset.
"""

from typing import Dict

from torch import Tensor

from docnmt_fairseq.pretrained.multilingual import MultilingualFamily
from docnmt_fairseq.pretrained.released import FAMILIES
from docnmt_fairseq.pretrained.tensors import Tensors


@FAMILIES.register("m2m_100")
class M2M(MultilingualFamily):
    """See the module."""

    help = "M2M-100 and NLLB-200, dense (Hugging Face)"
    name = "m2m_100"

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """None: sinusoids are computed; old checkpoints hold them all the same."""
        tensors.leave(*(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder")))
        return {}
