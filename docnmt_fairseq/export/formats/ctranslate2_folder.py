"""Format ``ctranslate2``: a model of CTranslate2, with what its text needs."""

from pathlib import Path
from typing import TYPE_CHECKING

from docnmt_fairseq.export.formats.base import EXPORT_FORMATS, ExportFormat

if TYPE_CHECKING:
    from docnmt_fairseq.export.trained import TrainedModel


@EXPORT_FORMATS.register("ctranslate2")
class CTranslate2Folder(ExportFormat):
    """https://opennmt.net/CTranslate2: sentence-level Transformers, without this package, fairseq or PyTorch."""

    help = "a folder for CTranslate2, of sentence-level models"
    folder = True
    sentence_level = True

    def write(self, trained: "TrainedModel", output: Path, precision: str) -> None:
        """See :class:`ExportFormat`."""
        from docnmt_fairseq.export.ctranslate2_model import ENGINE, write_model
        from docnmt_fairseq.export.sentence_level import SentenceTransformer
        from docnmt_fairseq.export.text_steps import write_text_steps

        write_model(SentenceTransformer.of(trained, ENGINE), output, precision)
        write_text_steps(trained.ensemble.data, output)
