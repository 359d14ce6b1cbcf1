"""Model card of an exported model: metadata of the Hugging Face hub, context settings and scores."""

import re
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import default_of, flag_of, plain

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble

LIBRARIES = {"huggingface": "transformers", "ctranslate2": "ctranslate2", "fairseq": "fairseq"}  # by export format
# Options of model and task that define what the model knows beyond a sentence.
CONTEXT_OPTIONS = re.compile(
    "context_(?!lr|init|kernel)|(sentence|paragraph|section|chapter|part)_positions$|concatenate_|extra_sources"
    "|max_document_sentences|positions_from$"
)
LICENCE = re.compile(r"[a-z0-9][a-z0-9.-]*")  # identifiers of the hub
DOWNLOAD = "hf download {repository} --local-dir FOLDER"
USE = """Translate a document, one sentence per line, empty lines between documents:

```bash
docnmt translate --path FOLDER/checkpoint.pt --data FOLDER --input talk.{source} --output talk.{target}
```
"""


@dataclass(frozen=True)
class CardOptions:
    """Facts of a model card that the model does not contain.

    Attributes:
        licence: identifier of the licence, as on the hub; None: that of the imported model, if it states one.
        metrics: scores by name.
        test_set: name of the test set of the scores.
    """

    licence: Optional[str] = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    test_set: str = "test"

    def __post_init__(self) -> None:
        if self.licence is not None and not LICENCE.fullmatch(self.licence):
            raise InputError(f"--license {self.licence}: not an identifier of the hub, such as apache-2.0 or cc-by-4.0")


def parse_metrics(texts: Sequence[str]) -> Dict[str, float]:
    """Returns names and values of ``NAME=VALUE``.

    Raises:
        InputError: a text has another form.
    """
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InputError(f"--metric {text}: give NAME=VALUE, such as bleu=31.2") from None
    return found


def model_card(ensemble: "Ensemble", format_name: str, repository: str, options: CardOptions, body: str = "") -> str:
    """Returns the card of a model.

    Args:
        ensemble: model.
        format_name: export format.
        repository: name on the hub, ``OWNER/MODEL``.
        options: licence and scores.
        body: instructions for use; empty: those of a checkpoint.
    """
    import yaml

    source, target = ensemble.languages
    settings = dict(context_settings(ensemble)) if format_name == "fairseq" else {}
    header = yaml.safe_dump(_metadata(ensemble, format_name, repository, options, settings), sort_keys=False)
    parts = [f"---\n{header}---\n"]
    title = f"# Machine translation of documents from {source} to {target}\n"
    parts.append(body or f"{title}\n{USE.format(source=source, target=target)}")
    if format_name == "huggingface":
        parts[-1] = parts[-1].replace("FOLDER", repository)
    else:
        parts.append(f"Download: `{DOWNLOAD.format(repository=repository)}`.\n")
    rows = [f"| `{flag_of(name)}` | {value} |" for name, value in settings.items()]
    if rows:
        parts.append("\n".join(["## Context", "", "| option | value |", "| --- | --- |", *rows, ""]))
    elif format_name != "fairseq":
        parts.append("## Context\n\nNone: the model translates every sentence separately.\n")
    rows = [f"| {name} | {value:g} |" for name, value in options.metrics.items()]
    if rows:
        parts.append("\n".join(["## Evaluation", "", f"| metric | {options.test_set} |", "| --- | ---: |", *rows, ""]))
    parts.append(f"Written by `docnmt export` of docnmt_fairseq {__version__}.\n")
    return "\n".join(parts)


def _metadata(
    ensemble: "Ensemble", format_name: str, repository: str, options: CardOptions, settings: Mapping[str, Any]
) -> Dict[str, Any]:
    """Returns the header of a card."""
    tags = ["translation", *(["document-level-translation"] if settings else [])]
    found: Dict[str, Any] = {
        "language": list(ensemble.languages),
        "library_name": LIBRARIES[format_name],
        "pipeline_tag": "translation",
        "tags": tags,
    }
    licence = options.licence or _imported_licence(ensemble.data)
    if licence is not None:
        found["license"] = licence
    if options.metrics:
        metrics: List[Dict[str, Any]] = [
            {"type": name.lower(), "name": name, "value": value} for name, value in options.metrics.items()
        ]
        result = {
            "task": {"type": "translation"},
            "dataset": {"type": options.test_set, "name": options.test_set},
            "metrics": metrics,
        }
        found["metrics"] = [one["type"] for one in metrics]
        found["model-index"] = [{"name": repository.rpartition("/")[2], "results": [result]}]
    return found


def _imported_licence(data: Path) -> Optional[str]:
    from docnmt_fairseq.corpus.prepared import imported_from, is_prepared

    about = imported_from(data) if is_prepared(data) else None
    return None if about is None else about.get("licence")


def context_settings(ensemble: "Ensemble") -> Iterator[Tuple[str, Any]]:
    """Yields the options of model and task about context that differ from their defaults."""
    from fairseq.models import MODEL_DATACLASS_REGISTRY
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    from docnmt_fairseq.checkpoints import read_checkpoint

    cfg = read_checkpoint(ensemble.paths[0])["cfg"]
    for part, registry in (("model", MODEL_DATACLASS_REGISTRY), ("task", TASK_DATACLASS_REGISTRY)):
        options = cfg[part]
        kind = registry.get(options["_name"])
        for known in fields(kind) if is_dataclass(kind) else ():
            value = plain(options.get(known.name))
            if CONTEXT_OPTIONS.search(known.name) and value not in (None, "none", plain(default_of(known))):
                yield known.name, value
