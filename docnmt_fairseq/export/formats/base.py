"""The contract of formats to export, and the registry that ``docnmt export`` asks for them.

A format is one class in one file of this folder, registered under its name; importing the folder imports its files, so
they import libraries only where they use them.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docnmt_fairseq.registry import Registry

if TYPE_CHECKING:
    from docnmt_fairseq.export.trained import TrainedModel


class ExportFormat(ABC):
    """Contract: ``cls()``; writes one trained model, whole or not at all, the same bytes for the same model.

    Class attributes:
        help: in one line, what it is.
        folder: whether it is a folder of files; else a file.
        sentence_level: whether it has no context, so that document models must be exported without.
    """

    help: ClassVar[str]
    folder: ClassVar[bool] = False
    sentence_level: ClassVar[bool] = False

    @abstractmethod
    def write(self, trained: "TrainedModel", output: Path, precision: str) -> None:
        """Writes the model.

        Args:
            trained: the model, in float32.
            output: a file, or a folder that is there and empty.
            precision: of ``layers.rounding.PRECISIONS``, that weights are to be kept in.

        Raises:
            InputError: the format has no such model or precision; a library is not installed.
        """


EXPORT_FORMATS: Registry[ExportFormat] = Registry("export format")
