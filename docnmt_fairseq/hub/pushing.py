"""Uploads exported models to the Hugging Face hub."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import copy_file
from docnmt_fairseq.hub.source import CARD, HUB_NAME

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble


class Repository:
    """Model repository on the hub, created if it does not exist.

    Args:
        name: ``OWNER/MODEL``.
        private: a new repository is private.

    Raises:
        InputError: invalid name, missing library, no access.
    """

    def __init__(self, name: str, private: bool = False):
        if not HUB_NAME.fullmatch(name):
            raise InputError(f"--push {name}: not a name on the hub (OWNER/MODEL)")
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise InputError(f"--push {name}: pip install 'docnmt_fairseq[pretrained]'") from error
        self.name = name
        self.api: Any = HfApi(library_name="docnmt_fairseq")
        try:
            self.api.create_repo(name, exist_ok=True, private=private or None)
        except Exception as error:  # network, access, hub: no common class
            raise InputError(f"--push {name}: {first_line(error)}; log in with: hf auth login") from None

    def push(self, ensemble: "Ensemble", output: Path, card: str) -> None:
        """Uploads an exported folder, or an exported checkpoint with its dictionaries and text models.

        Args:
            ensemble: model.
            output: exported folder or file.
            card: model card.

        Raises:
            InputError: the upload failed.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = output
            if output.is_file():
                folder = Path(temporary)
                _add_checkpoint(ensemble, output, folder)
            (folder / CARD).write_text(card, encoding="utf-8")
            try:
                self.api.upload_folder(
                    repo_id=self.name, folder_path=str(folder), commit_message="Upload of docnmt export"
                )
            except Exception as error:  # network, access, hub: no common class
                raise InputError(f"--push {self.name}: {first_line(error)}; the export is in {output}") from None


def _add_checkpoint(ensemble: "Ensemble", checkpoint: Path, folder: Path) -> None:
    """Copies what ``docnmt translate`` needs: the layout of ``docnmt import``."""
    from docnmt_fairseq.corpus.data_bin import DATA_BIN, LANGUAGE_TOKENS
    from docnmt_fairseq.corpus.prepared import CHECKPOINT, data_bin, is_prepared
    from docnmt_fairseq.hub.text_models import copy_text_models

    copy_file(checkpoint, folder / CHECKPOINT)
    source = data_bin(ensemble.data)
    for path in (*source.glob("dict.*.txt"), source / LANGUAGE_TOKENS):
        if path.is_file():
            copy_file(path, folder / DATA_BIN / path.name)
    if is_prepared(ensemble.data):
        copy_text_models(ensemble.data, folder)
