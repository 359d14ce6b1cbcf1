"""mBART-50 as Hugging Face has it: learned positions, layer norm after embeddings.

mBART-25 (mbart-large-cc25 and its finetuned models) puts the language token behind the end of sentence; it is refused.
"""

from typing import Dict

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.multilingual import MultilingualFamily
from docnmt_fairseq.pretrained.released import FAMILIES, Request, read_json
from docnmt_fairseq.pretrained.tensors import Tensors

OFFSET = 2  # rows before the first position, in Hugging Face's tables and in fairseq's
TOKENIZER = "tokenizer_config.json"


@FAMILIES.register("mbart")
class MBart(MultilingualFamily):
    """See the module."""

    help = "mBART-50 (Hugging Face)"
    name = "mbart"
    own_structure = {"layernorm_embedding": True, "word_positions": "learned", "decoder_learned_pos": True}
    norms = ("layer_norm", "layernorm_embedding")

    def check(self, request: Request) -> None:
        """See :class:`MultilingualFamily`."""
        path = request.path / TOKENIZER
        kind = str(read_json(path).get("tokenizer_class", "")) if path.is_file() else ""
        if kind.startswith("MBartTokenizer"):
            raise InputError(
                f"{path}: tokenizer_class {kind}: language tokens of mBART-25 follow the end of sentence, which is "
                "not supported; mBART-50 is"
            )

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """Learned ones, of both sides."""
        names = [f"{side}.embed_positions.weight" for side in ("encoder", "decoder")]
        return {name: tensors.take(f"model.{name}", (rows + OFFSET, width)) for name in names}
