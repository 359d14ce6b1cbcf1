"""Export: trained models, the registry of formats, and ``docnmt export`` from end to end.

A format is a class in one file of ``formats/``. The command line imports these files to list the formats, so they
import large libraries inside their methods.
"""

import tempfile
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Optional

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import atomic_folder, copy_file, write_json
from docnmt_fairseq.hub.base import CARD
from docnmt_fairseq.hub.publishing import HUB, CardOptions, Repository, model_card
from docnmt_fairseq.options import CheckedOptions, Choices, option
from docnmt_fairseq.registry import Registry

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.corpus.pipeline import TextCodec

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


@dataclass(frozen=True)
class ExportOptions(CheckedOptions):
    """Options of ``docnmt export``."""

    path: str = option(MISSING, "checkpoint", metavar="FILE")
    output: Path = option(MISSING, "output file or folder", metavar="PATH")
    format: str = option("fairseq", "output format", names=EXPORT_FORMATS)
    precision: str = option(
        "float32",
        "precision of the weights, bf16: huggingface or ctranslate2, int8: ctranslate2",
        names=Choices(("float32", "bf16", "int8")),
    )
    data: Optional[Path] = option(
        None, "output folder of docnmt prepare, or data-bin (default: that of the training)", metavar="DIR"
    )
    without_context: bool = option(
        False, "export the sentence-level part of a document model (huggingface, ctranslate2)"
    )
    force: bool = option(False, "replace an existing export")
    push: Optional[str] = option(
        None,
        "upload the export with a model card; creates the repository if it does not exist",
        metavar="OWNER/MODEL",
        group=HUB,
    )
    private: bool = option(False, "create a private repository", group=HUB)
    card: CardOptions = CardOptions()


def export(options: ExportOptions) -> None:
    """Exports the model of a checkpoint.

    Raises:
        InputError: the output exists; the model cannot be read, or expressed in the format; no access to the hub.
    """
    from docnmt_fairseq.checkpoints import data_of_training, load_ensemble, read_checkpoint
    from docnmt_fairseq.corpus.prepared import prepared_folder

    path, output = options.path, options.output
    if output.resolve() in (Path(path).resolve(), *Path(path).resolve().parents):
        raise InputError(f"--output {output}: would replace --path {path}")
    kind = EXPORT_FORMATS[options.format]()
    if output.exists() and not (options.force and output.is_dir() == kind.folder and _is_export(output)):
        hint = "is not such an export" if options.force else "exists; use --force to replace an export"
        raise InputError(f"--output {output}: {hint}")
    data = options.data or data_of_training(read_checkpoint(path))
    ensemble = load_ensemble(path, data=prepared_folder(data))
    repository = None if options.push is None else Repository(options.push, options.private)
    if kind.folder:
        with atomic_folder(output) as folder:
            kind.write(ensemble, folder, options.precision, options.without_context)
            facts = {"format": options.format, "precision": options.precision}
            write_json(folder / MARKER, {**facts, "written_by": f"docnmt_fairseq {__version__}"}, indent=2)
    else:
        kind.write(ensemble, output, options.precision, options.without_context)
    if repository is not None:
        body = (output / CARD).read_text(encoding="utf-8") if kind.folder else ""
        text = model_card(ensemble, options.format, repository.name, options.card, body)
        with tempfile.TemporaryDirectory() as temporary:
            if not kind.folder:
                _add_checkpoint(ensemble, output, Path(temporary))
            repository.push(output if kind.folder else Path(temporary), text)


def _add_checkpoint(ensemble: "Ensemble", checkpoint: Path, folder: Path) -> None:
    """Copies a checkpoint and what ``docnmt translate`` needs to a folder in the layout of ``docnmt import``."""
    from docnmt_fairseq.corpus.data_bin import DATA_BIN, LANGUAGE_TOKENS
    from docnmt_fairseq.corpus.prepared import CHECKPOINT, data_bin, is_prepared

    copy_file(checkpoint, folder / CHECKPOINT)
    source = data_bin(ensemble.data)
    for path in (*source.glob("dict.*.txt"), source / LANGUAGE_TOKENS):
        if path.is_file():
            copy_file(path, folder / DATA_BIN / path.name)
    if is_prepared(ensemble.data):
        copy_text_models(ensemble.data, folder)


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


TEXT_OPTIONS = (
    "source_lang", "target_lang", "tokenizer", "source_tokenizer", "target_tokenizer", "truecase", "subwords", "joint",
    "edits_of", "source_lang_token", "target_lang_token",
)  # fmt: skip


def copy_text_models(data: Path, folder: Path) -> "TextCodec":
    """Copies the text models of an output of ``docnmt prepare`` in its layout; returns the codec of the output.

    Raises:
        InputError: a text model is missing; the targets are edit operations.
    """
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.corpus.prepared import MANIFEST

    codec = TextCodec.of_output(data)
    codec.load()  # checks the models
    options = {name: codec.options[name] for name in TEXT_OPTIONS if name in codec.options}
    write_json(folder / MANIFEST, {"options": options}, indent=2)
    files = {name for side in codec.pipelines for name in (side.truecaser_file, side.subword_file) if name}
    for name in sorted(files):
        if (data / "models" / name).is_file():
            copy_file(data / "models" / name, folder / "models" / name)
    return codec
