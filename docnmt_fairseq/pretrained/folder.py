"""Writes a released model as a folder that looks like an output of ``docnmt prepare``, with a checkpoint in it.

So all commands take it as they take any model: ``--path FOLDER/checkpoint.pt --data FOLDER``; its subwords and
dictionaries are used by ``docnmt prepare --reuse``. The manifest says what the model is and where it came from.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus.bpe_codes import bpe_encoder
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.data_bin import DATA_BIN, write_language_tokens
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.prepared import CHECKPOINT, IMPORTED, MANIFEST
from docnmt_fairseq.corpus.subwords import CODES
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import atomic_folder, copy_file, sha256
from docnmt_fairseq.pretrained.checkpoint import save_checkpoint
from docnmt_fairseq.pretrained.released import Released


@dataclass(frozen=True)
class Origin:
    """Where a released model is from.

    Attributes:
        name: as the user gave it.
        revision: of the hub, if it is from there.
        licence: as stated beside it; None: nothing is stated.
    """

    name: str
    revision: Optional[str] = None
    licence: Optional[str] = None


def write_imported(
    released: Released, languages: Tuple[str, str], output: Path, origin: Origin, architecture: str
) -> Dict[str, Any]:
    """Writes the folder, which appears when it is complete, and returns its manifest.

    Args:
        released: the model.
        languages: source and target, as files are to name them.
        output: the folder; it must not be there.
        origin: of the model.
        architecture: of the checkpoint: ``document_transformer``, or fairseq's own ``transformer``.

    Raises:
        InputError: the folder is there already, or cannot be written.
    """
    if output.exists():
        raise InputError(f"--output {output}: is there already; remove it, or give another place")
    with atomic_folder(output) as folder:
        _write_text_models(released, languages, folder)
        write_language_tokens(folder / DATA_BIN, dict(zip(languages, released.text.language_tokens)))
        save_checkpoint(released, languages, (output / DATA_BIN).absolute(), folder / CHECKPOINT, architecture)
        manifest = _manifest(released, languages, folder, origin, architecture)
        content = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(content, encoding="utf-8")
    return manifest


def _write_text_models(released: Released, languages: Tuple[str, str], folder: Path) -> None:
    """Subword models and dictionaries."""
    text = released.text
    for file, language in zip(text.files, languages):
        if text.subwords == CODES:
            bpe_encoder(file)  # refuses a file that is none
        pipeline = SidePipeline(language, subwords=text.subwords, joint=released.joint)
        copy_file(file, folder / "models" / str(pipeline.subword_file))
    for vocabulary, language in zip(released.vocabularies, languages):
        for place in ("models", DATA_BIN):
            vocabulary.write(folder / place / f"dict.{language}.txt")


def _manifest(
    released: Released, languages: Tuple[str, str], folder: Path, origin: Origin, architecture: str
) -> Dict[str, Any]:
    text = released.text
    settings = PrepareConfig(
        *languages,
        output=folder,
        tokenizer=text.tokenizer,
        subwords=text.subwords,
        vocab_size=len(released.vocabularies[0].symbols),
        joint=released.joint,
        source_lang_token=text.language_tokens[0],
        target_lang_token=text.language_tokens[1],
    )
    models: List[Path] = sorted((folder / "models").iterdir())
    imported: Mapping[str, Any] = {
        "family": released.family,
        "from": origin.name,
        "revision": origin.revision,
        "licence": origin.licence,
        "files": {path.name: sha256(path) for path in released.files},
        "architecture": architecture,
        "structure": dict(released.options),
        "positions": list(released.positions),
        "languages": released.languages,
    }
    return {
        IMPORTED: imported,
        "counts": {},
        "inputs": {},
        "models": {path.name: sha256(path) for path in models},
        "options": settings.as_options(),
        "versions": {"docnmt_fairseq": __version__},
    }
