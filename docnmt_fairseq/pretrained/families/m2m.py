"""M2M-100 and NLLB-200 as Hugging Face has them.

Nothing in them is foreign to fairseq's own ``transformer``: sinusoids begin at its offset. Relatives of the same
``model_type`` have language tokens in other places: SMaLL-100 has the target's before the source, NLLB-200 with
``legacy_behaviour`` the source's behind it; they are refused.
"""

from typing import Dict, Sequence

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.multilingual import MultilingualFamily, tokenizer_of
from docnmt_fairseq.pretrained.released import FAMILIES, Request
from docnmt_fairseq.pretrained.tensors import Tensors

# How the names of their tokenizers' classes begin, and those of classes that are anybody's.
TOKENIZERS = ("M2M100Tokenizer", "NllbTokenizer", "PreTrainedTokenizer", "TokenizersBackend")


@FAMILIES.register("m2m_100")
class M2M(MultilingualFamily):
    """See the module."""

    name = "m2m_100"

    def check(self, request: Request, languages: Sequence[str]) -> None:
        """See :class:`MultilingualFamily`."""
        path, tokenizer = tokenizer_of(request)
        kind = str(tokenizer.get("tokenizer_class") or TOKENIZERS[0])
        if not kind.startswith(TOKENIZERS):
            raise InputError(
                f"{path}: tokenizer_class {kind}: a relative of M2M-100 with a tokenizer of its own, such as SMaLL-100,"
                " is not supported"
            )
        if tokenizer.get("legacy_behaviour"):
            raise InputError(
                f"{path}: legacy_behaviour: language tokens behind the source sentence are not supported; if the model "
                "was not trained so, say false there"
            )

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """None: sinusoids are computed; old checkpoints hold them all the same."""
        tensors.leave(*(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder")))
        return {}
