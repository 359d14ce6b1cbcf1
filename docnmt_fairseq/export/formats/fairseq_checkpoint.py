"""Format ``fairseq``: a checkpoint for inference."""

from pathlib import Path
from typing import TYPE_CHECKING

from docnmt_fairseq.export.formats.base import EXPORT_FORMATS, ExportFormat

if TYPE_CHECKING:
    from docnmt_fairseq.export.trained import TrainedModel


@EXPORT_FORMATS.register("fairseq")
class FairseqCheckpoint(ExportFormat):
    """fairseq's checkpoint without the state of the training, in float32."""

    help = "a checkpoint for inference, of any model, in float32"

    def write(self, trained: "TrainedModel", output: Path, precision: str) -> None:
        """See :class:`ExportFormat`."""
        from docnmt_fairseq.errors import InputError
        from docnmt_fairseq.export.checkpoint import write_checkpoint

        if precision != "float32":
            raise InputError(f"--precision {precision}: not for checkpoints; give it to docnmt translate instead")
        write_checkpoint(trained, output)
