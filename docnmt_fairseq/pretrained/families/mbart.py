"""mBART-50 as Hugging Face has it: learned positions, layer norm after embeddings.

mBART-25 (mbart-large-cc25 and its finetuned models) puts the language token behind the end of sentence; it is refused.
"""

from typing import Dict, Sequence

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.multilingual import MultilingualFamily, tokenizer_of
from docnmt_fairseq.pretrained.released import FAMILIES, Request
from docnmt_fairseq.pretrained.tensors import Tensors

OFFSET = 2  # rows before the first position, in Hugging Face's tables and in fairseq's
ONLY_IN_50 = {
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "gl_ES", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN",
    "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sl_SI", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK",
    "xh_ZA",
}  # fmt: skip


@FAMILIES.register("mbart")
class MBart(MultilingualFamily):
    """See the module."""

    name = "mbart"
    own_structure = {"layernorm_embedding": True, "word_positions": "learned", "decoder_learned_pos": True}
    norms = ("layer_norm", "layernorm_embedding")

    def check(self, request: Request, languages: Sequence[str]) -> None:
        """See :class:`MultilingualFamily`; mBART-50 must be known by its tokenizer, or by a language of its own."""
        path, tokenizer = tokenizer_of(request)
        kind = str(tokenizer.get("tokenizer_class") or "")
        if kind.startswith("MBartTokenizer"):
            raise InputError(
                f"{path}: tokenizer_class {kind}: language tokens of mBART-25 follow the end of sentence, which is "
                "not supported; mBART-50 is"
            )
        if not kind.startswith("MBart50Tokenizer") and not ONLY_IN_50 & {*languages}:
            raise InputError(
                f"{path}: nothing says that this is mBART-50, whose language tokens stand where they are supported: "
                "neither the tokenizer_class MBart50Tokenizer, nor a language that mBART-25 has not"
            )

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """Learned ones, of both sides."""
        names = [f"{side}.embed_positions.weight" for side in ("encoder", "decoder")]
        return {name: tensors.take(f"model.{name}", (rows + OFFSET, width)) for name in names}
