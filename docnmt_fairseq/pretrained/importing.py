"""``docnmt import`` from end to end."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained import families  # noqa: F401  (registers them)
from docnmt_fairseq.pretrained.folder import Origin, write_imported
from docnmt_fairseq.pretrained.released import CONFIGURATION, FAMILIES, Family, Request
from docnmt_fairseq.pretrained.sources import find

FAIRSEQ = "fairseq"


def import_model(
    source: str,
    request: Request,
    output: Path,
    revision: Optional[str] = None,
    architecture: str = "document_transformer",
) -> Dict[str, Any]:
    """Imports a released model and returns the manifest of the folder that it becomes.

    Args:
        source: folder, file, or name of the hub.
        request: what is wanted of it; its path is found here.
        output: the folder to write.
        revision: of the hub.
        architecture: of the checkpoint.

    Raises:
        InputError: see the parts.
    """
    if request.languages[0] == request.languages[1]:
        raise InputError("--source-lang and --target-lang must differ")
    if output.exists():
        raise InputError(f"--output {output}: is there already; remove it, or give another place")
    found = find(source, revision)
    request = replace(request, path=found.path)
    family = family_of(request)
    if not isinstance(family, FAMILIES[FAIRSEQ]) and (request.subwords or request.tokenizer):
        raise InputError("--subwords, --tokenizer: this model brings its own")
    released = family.read(request)
    origin = Origin(source, found.revision, found.licence)
    return write_imported(released, request.languages, output, origin, architecture)


def family_of(request: Request) -> Family:
    """The family that reads a model.

    Raises:
        InputError: there is none for its architecture.
    """
    config = request.configuration() if request.path.is_dir() else {}
    if not config:
        return FAMILIES[FAIRSEQ]()
    kind = str(config.get("model_type"))
    if kind not in FAMILIES or kind == FAIRSEQ:
        known = ", ".join(name for name in FAMILIES.names() if name != FAIRSEQ)
        raise InputError(
            f"{request.path / CONFIGURATION}: model_type {kind} cannot be imported; {known} and checkpoints of "
            "fairseq can"
        )
    return FAMILIES[kind]()
