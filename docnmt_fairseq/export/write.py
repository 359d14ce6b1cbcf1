"""Exporting from a checkpoint to a file or a folder that appears when it is complete."""

import json
from pathlib import Path
from typing import Optional

from docnmt_fairseq import __version__
from docnmt_fairseq.checkpoints import read_checkpoint
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.formats import EXPORT_FORMATS, ExportFormat
from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.files import PathLike, atomic_folder
from docnmt_fairseq.layers.rounding import FLOAT32

MARK = "docnmt_export.json"  # in a folder: that it is an export


def export(
    path: str,
    output: PathLike,
    format_name: str = "fairseq",
    precision: Optional[str] = None,
    data: Optional[PathLike] = None,
    force: bool = False,
    without_context: bool = False,
) -> None:
    """Exports the model of a checkpoint.

    Args:
        path: the checkpoint.
        output: file or folder to write.
        format_name: of ``EXPORT_FORMATS``.
        precision: of ``PRECISIONS``; None: float32.
        data: the folder that ``docnmt prepare`` wrote, or a data-bin; None: where it was in training.
        force: replace an export that is there.
        without_context: of a document model the sentence-level model inside alone.

    Raises:
        InputError: there is something at the output; the checkpoint cannot be read, or not be exported so.
    """
    output, kind = Path(output), EXPORT_FORMATS[format_name]()
    if without_context and not kind.sentence_level:
        raise InputError(f"--without-context: --format {format_name} takes document models as they are; leave it out")
    _check_output(output, kind, path, force)
    trained = TrainedModel.load(path, data, without_context)
    precision = precision or FLOAT32
    if not kind.folder:
        kind.write(trained, output, precision)
        return
    with atomic_folder(output) as folder:
        kind.write(trained, folder, precision)
        facts = {"format": format_name, "precision": precision, "written_by": f"docnmt_fairseq {__version__}"}
        (folder / MARK).write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def size_of(output: Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    files = output.rglob("*") if output.is_dir() else [output]
    return sum(file.stat().st_size for file in files if file.is_file())


def _check_output(output: Path, kind: ExportFormat, path: str, force: bool) -> None:
    """Makes sure that nothing but an export is replaced, and only if that is wanted."""
    if not output.exists():
        return
    source = Path(path).resolve()
    if output.resolve() in (source, *source.parents):
        raise InputError(f"--output {output}: would replace --path {path}; give another")
    if not force:
        raise InputError(f"--output {output}: is there already; give another, or --force to replace it")
    if output.is_dir() != kind.folder or not _is_export(output):
        raise InputError(f"--output {output}: is no such export, and so not replaced; give another")


def _is_export(output: Path) -> bool:
    if output.is_dir():
        return (output / MARK).is_file()
    try:
        return "last_optimizer_state" not in read_checkpoint(output)
    except InputError:  # no checkpoint
        return False
