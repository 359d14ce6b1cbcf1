"""Copies the models from text to tokens into exported folders."""

from pathlib import Path

from docnmt_fairseq.corpus.prepared import MANIFEST
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.files import copy_file, write_json

TEXT_OPTIONS = (
    "source_lang", "target_lang", "tokenizer", "source_tokenizer", "target_tokenizer", "truecase", "subwords", "joint",
    "edits_of", "source_lang_token", "target_lang_token",
)  # fmt: skip


def copy_text_models(data: Path, folder: Path) -> TextCodec:
    """Copies the text models of an output of ``docnmt prepare`` in its layout; returns the codec of the output.

    Raises:
        InputError: a text model is missing; the targets are edit operations.
    """
    codec = TextCodec.of_output(data)
    codec.load()  # checks the models
    options = {name: codec.options[name] for name in TEXT_OPTIONS if name in codec.options}
    write_json(folder / MANIFEST, {"options": options}, indent=2)
    files = {name for side in codec.pipelines for name in (side.truecaser_file, side.subword_file) if name}
    for name in sorted(files):
        if (data / "models" / name).is_file():
            copy_file(data / "models" / name, folder / "models" / name)
    return codec
