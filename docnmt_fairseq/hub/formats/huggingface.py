"""Format ``huggingface``: a sentence-level Transformer for Hugging Face's ``transformers``, with its tokenizer.

The inverse of ``docnmt import`` for MarianMT, M2M-100, NLLB-200, mBART-50 and FSMT (fairseq's post-norm models).
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from docnmt_fairseq.errors import InputError, needs_extra
from docnmt_fairseq.files import write_bytes, write_json
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, ExportFormat

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.hub.hub_model import HubModel
    from docnmt_fairseq.hub.hub_text import HubText

NO_TOKENIZER = "no tokenizer of transformers makes the tokens of this model: the folder has vocabularies only"
PROGRAM = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
found = model.generate(**tokenizer(["BEGINA sentence.", "BEGINAnother one."], return_tensors="pt", padding=True))
print([tokenizer.decode(one, skip_special_tokens=TrueDECODE) for one in found])
"""

logger = logging.getLogger(__name__)


@EXPORT_FORMATS.register("huggingface")
class HuggingFaceFolder(ExportFormat):
    """Folder for ``transformers``."""

    help = "folder for transformers, sentence-level models"

    def write(self, ensemble: "Ensemble", folder: Path, precision: str, without_context: bool) -> None:
        """Writes configuration, tensors, vocabularies, tokenizer and page."""
        from docnmt_fairseq.hub.hub_model import ENGINE, HubModel
        from docnmt_fairseq.hub.sentence_level import SentenceTransformer

        if precision == "int8":
            raise InputError("--precision int8: --format huggingface supports float32 and bf16")
        model = HubModel(SentenceTransformer.of(ensemble, ENGINE, without_context), ensemble.paths[0])
        _write_model(ensemble, model, folder, precision)
        _write_text_files(ensemble.data, model, folder)


def _write_model(ensemble: "Ensemble", model: "HubModel", folder: Path, precision: str) -> None:
    """Writes configuration and tensors."""
    import torch

    from docnmt_fairseq.corpus.data_bin import read_language_tokens
    from docnmt_fairseq.corpus.prepared import data_bin
    from docnmt_fairseq.hub.base import CONFIG
    from docnmt_fairseq.hub.hub_text import hub_symbol
    from docnmt_fairseq.hub.tensors import SAFETENSORS

    with needs_extra("pretrained", "--format huggingface"):
        from safetensors.torch import save
    tensors = model.tensors()
    config = {**model.config, **({"torch_dtype": "bfloat16"} if precision == "bf16" else {})}
    generation = model.generation_config()
    token = read_language_tokens(data_bin(ensemble.data)).get(ensemble.languages[1])
    if token is not None:
        generation["forced_bos_token_id"] = model.vocabularies.ids(1)[hub_symbol(token)]
    write_json(folder / CONFIG, config, indent=2)
    write_json(folder / "generation_config.json", generation, indent=2)
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    content = {name: value.to(kind).contiguous() for name, value in sorted(tensors.items())}
    write_bytes(folder / SAFETENSORS, save(content, metadata={"format": "pt"}))


def tokenizer_of(text: "HubText") -> Optional[str]:
    """Returns the tokenizer of ``transformers`` with the steps of a text; None without one."""
    from docnmt_fairseq.corpus.subwords import WITH_CODES
    from docnmt_fairseq.hub.families import marian, multilingual

    options, (source, target) = text.codec.options, text.tokens
    other_steps = options["truecase"] or any(pipeline.tokenizer != "none" for pipeline in text.codec.pipelines)
    if other_steps or options["subwords"] in ("none", *WITH_CODES):
        return None
    if target is None:
        return marian.TOKENIZER if source is None or marian.CODE.fullmatch(source) else None
    return multilingual.tokenizer_for(text)


def _write_text_files(data: Path, model: "HubModel", folder: Path) -> None:
    """Writes vocabularies, tokenizer and page."""
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.corpus.prepared import is_prepared
    from docnmt_fairseq.hub.families import marian, multilingual
    from docnmt_fairseq.hub.hub_text import HubText

    vocabularies = model.vocabularies
    text = HubText(vocabularies, TextCodec.of_output(data)) if is_prepared(data) else None
    name = None if text is None else tokenizer_of(text)
    if name in (None, marian.TOKENIZER):
        for side, file in enumerate(["vocab.json"] if vocabularies.shared else ["vocab.json", "target_vocab.json"]):
            write_json(folder / file, vocabularies.ids(side), indent=2, sort_keys=False)
    lines = ["# Model for Hugging Face's transformers", "", f"Written by `docnmt export`: {model.architecture.name}."]
    if text is None or name is None:
        logger.warning(NO_TOKENIZER)
        lines.append("It has no tokenizer: the input consists of token ids of the vocabularies, followed by `</s>`.")
    else:
        is_marian = name == marian.TOKENIZER
        config = marian.write_tokenizer(text, folder) if is_marian else multilingual.write_tokenizer(text, name, folder)
        config["tokenizer_class"] = name
        write_json(folder / "tokenizer_config.json", config, indent=2)
        if name == multilingual.NLLB:
            multilingual.write_nllb(text, folder)
        decode = ", use_source_tokenizer=False" if is_marian else ""
        begin = f"{text.tokens[0]} " if is_marian and text.tokens[0] else ""
        lines += ["", "```python", f"{PROGRAM.replace('DECODE', decode).replace('BEGIN', begin)}```"]
    write_bytes(folder / "README.md", ("\n".join(lines) + "\n").encode())
