"""Export: trained models, the registry of formats, and ``docnmt export`` from end to end.

A format is a class in one file of ``formats/``. The command line imports these files to list the formats, so they
import large libraries inside their methods.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Optional

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, atomic_folder, write_json
from docnmt_fairseq.hub.model_card import CardOptions, model_card
from docnmt_fairseq.hub.pushing import Repository
from docnmt_fairseq.hub.source import CARD
from docnmt_fairseq.registry import Registry

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble

MARKER = "docnmt_export.json"  # identifies a folder as an export


class ExportFormat(ABC):
    """Contract of an export format: ``cls()``; writes the same bytes for the same model.

    Class attributes:
        help: description in one line.
        folder: writes a folder, not a file.
    """

    help: ClassVar[str]
    folder: ClassVar[bool] = True

    @abstractmethod
    def write(self, ensemble: "Ensemble", output: Path, precision: str, without_context: bool) -> None:
        """Writes a model.

        Args:
            ensemble: model in float32 on the CPU, with task and data.
            output: existing empty folder, or file.
            precision: precision of the weights, of ``layers.packed_linear.PRECISIONS``.
            without_context: write the sentence-level part only.

        Raises:
            InputError: the format cannot express the model or precision; a library is missing.
        """


EXPORT_FORMATS: Registry[ExportFormat] = Registry("export format")


def export(
    path: str,
    output: PathLike,
    format_name: str = "fairseq",
    precision: str = "float32",
    data: Optional[PathLike] = None,
    force: bool = False,
    without_context: bool = False,
    push: Optional[str] = None,
    private: bool = False,
    card: CardOptions = CardOptions(),
) -> None:
    """Exports the model of a checkpoint.

    Args:
        path: checkpoint.
        output: output folder or file.
        format_name: key of ``EXPORT_FORMATS``.
        precision, without_context: see :meth:`ExportFormat.write`.
        data: output folder of ``docnmt prepare`` or data-bin; None: that of the training.
        force: replace an existing export.
        push: repository on the Hugging Face hub, ``OWNER/MODEL``, to upload the export to.
        private: a new repository is private.
        card: facts of the model card of the repository.

    Raises:
        InputError: the output exists; the model cannot be read, or expressed in the format; the upload failed.
    """
    from docnmt_fairseq.checkpoints import data_of_training, load_ensemble, read_checkpoint
    from docnmt_fairseq.corpus.prepared import prepared_folder

    output, source = Path(output), Path(path).resolve()
    if ":" in path:
        raise InputError(f"--path {path}: an ensemble cannot be exported; export each model, or use docnmt average")
    if output.resolve() in (source, *source.parents):
        raise InputError(f"--output {output}: would replace --path {path}")
    kind = EXPORT_FORMATS[format_name]()
    if output.exists() and not (force and output.is_dir() == kind.folder and _is_export(output)):
        hint = "is not such an export" if force else "exists; use --force to replace an export"
        raise InputError(f"--output {output}: {hint}")
    data = prepared_folder(data_of_training(read_checkpoint(path)) if data is None else Path(data))
    ensemble = load_ensemble(path, data=data)
    repository = None if push is None else Repository(push, private)
    if kind.folder:
        with atomic_folder(output) as folder:
            kind.write(ensemble, folder, precision, without_context)
            facts = {"format": format_name, "precision": precision, "written_by": f"docnmt_fairseq {__version__}"}
            write_json(folder / MARKER, facts, indent=2)
    else:
        kind.write(ensemble, output, precision, without_context)
    if repository is not None:
        body = (output / CARD).read_text(encoding="utf-8") if kind.folder else ""
        repository.push(ensemble, output, model_card(ensemble, format_name, repository.name, card, body))


def _is_export(output: Path) -> bool:
    """Returns whether a path is an exported folder, or a checkpoint without the state of a training."""
    from docnmt_fairseq.checkpoints import read_checkpoint

    if output.is_dir():
        return (output / MARKER).is_file()
    try:
        return "last_optimizer_state" not in read_checkpoint(output)
    except InputError:  # not a checkpoint
        return False


def size_of(output: Path) -> int:
    """Returns the bytes of a file, or of all files of a folder."""
    files = output.rglob("*") if output.is_dir() else [output]
    return sum(file.stat().st_size for file in files if file.is_file())
