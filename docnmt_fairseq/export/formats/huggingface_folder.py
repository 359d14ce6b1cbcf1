"""Format ``huggingface``: a folder that Hugging Face's ``transformers`` loads, with its tokenizer."""

from pathlib import Path
from typing import TYPE_CHECKING

from docnmt_fairseq.export.formats.base import EXPORT_FORMATS, ExportFormat

if TYPE_CHECKING:
    from docnmt_fairseq.export.trained import TrainedModel


@EXPORT_FORMATS.register("huggingface")
class HuggingFaceFolder(ExportFormat):
    """The way back of ``docnmt import``: MarianMT, M2M-100, NLLB-200, mBART-50; FSMT for fairseq's post-norm."""

    help = "a folder for transformers, of sentence-level models"
    folder = True
    sentence_level = True

    def write(self, trained: "TrainedModel", output: Path, precision: str) -> None:
        """See :class:`ExportFormat`."""
        from docnmt_fairseq.export.huggingface_model import ENGINE, write_model
        from docnmt_fairseq.export.huggingface_text import write_text_files
        from docnmt_fairseq.export.huggingface_vocabulary import vocabularies_of
        from docnmt_fairseq.export.sentence_level import SentenceTransformer

        transformer = SentenceTransformer.of(trained, ENGINE)
        vocabularies = vocabularies_of(transformer)
        architecture = write_model(trained, transformer, vocabularies, output, precision)
        write_text_files(trained, vocabularies, architecture, output)
