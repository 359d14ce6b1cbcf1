"""Publishing on the Hugging Face hub: model card (metadata, context settings, scores) and upload of an export."""

import re
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError, first_line, needs_extra
from docnmt_fairseq.hub.base import CARD
from docnmt_fairseq.options import default_of, flag_of, option, plain

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble

LIBRARIES = {"huggingface": "transformers", "ctranslate2": "ctranslate2", "fairseq": "fairseq"}  # by export format
# Options of model and task that define what the model knows beyond a sentence.
CONTEXT_OPTIONS = re.compile(
    "context_(?!lr|init|kernel)|(sentence|paragraph|section|chapter|part)_positions$|concatenate_|extra_sources"
    "|max_document_sentences|positions_from$"
)
HUB = "Hugging Face hub"  # group of options
DOWNLOAD = "hf download {repository} --local-dir FOLDER"
USE = """Translate a document, one sentence per line, empty lines between documents:

```bash
docnmt translate --path FOLDER/checkpoint.pt --data FOLDER --input talk.{source} --output talk.{target}
```
"""


@dataclass(frozen=True)
class CardOptions:
    """Facts of a model card that the model does not contain, options of ``docnmt export``."""

    license: Optional[str] = option(
        None, "licence of the card, such as apache-2.0 (default: that of the imported model)", metavar="ID", group=HUB
    )
    metric: Tuple[str, ...] = option((), "scores of the card", metavar="NAME=VALUE", group=HUB)
    test_set: str = option("test", "test set of these scores", metavar="NAME", group=HUB)

    def __post_init__(self) -> None:
        self.scores()  # fails before the export

    def scores(self) -> Dict[str, float]:
        """Returns the scores by name of the metric."""
        pairs = (text.partition("=") for text in self.metric)
        return {name: float(value) for name, _, value in pairs}


def model_card(ensemble: "Ensemble", format_name: str, repository: str, options: CardOptions, body: str = "") -> str:
    """Returns the card of a model.

    Args:
        ensemble: model.
        format_name: export format.
        repository: name on the hub, ``OWNER/MODEL``.
        options: licence and scores.
        body: instructions for use; empty: those of a checkpoint.
    """
    source, target = ensemble.languages
    settings = dict(context_settings(ensemble)) if format_name == "fairseq" else {}
    parts = [f"---\n{_metadata(ensemble, format_name, repository, options, settings)}\n---\n"]
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
    rows = [f"| {name} | {value:g} |" for name, value in options.scores().items()]
    if rows:
        parts.append("\n".join(["## Evaluation", "", f"| metric | {options.test_set} |", "| --- | ---: |", *rows, ""]))
    parts.append(f"Written by `docnmt export` of docnmt_fairseq {__version__}.\n")
    return "\n".join(parts)


def _metadata(
    ensemble: "Ensemble", format_name: str, repository: str, options: CardOptions, settings: Mapping[str, Any]
) -> str:
    """Returns the header of a card in YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    from docnmt_fairseq.corpus.prepared import imported_from, is_prepared

    imported = imported_from(ensemble.data) if is_prepared(ensemble.data) else None
    scores = options.scores()
    results = [
        EvalResult("translation", options.test_set, options.test_set, name.lower(), value, metric_name=name)
        for name, value in scores.items()
    ]
    data = ModelCardData(
        language=list(ensemble.languages),
        license=options.license or (imported or {}).get("licence"),
        library_name=LIBRARIES[format_name],
        pipeline_tag="translation",
        tags=["translation", *(["document-level-translation"] if settings else [])],
        metrics=list(map(str.lower, scores)) or None,
        model_name=repository.rpartition("/")[2] if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())


def context_settings(ensemble: "Ensemble") -> Iterator[Tuple[str, Any]]:
    """Yields the options of model and task about context that differ from their defaults."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    from docnmt_fairseq.checkpoints import read_checkpoint

    cfg = read_checkpoint(ensemble.paths[0])["cfg"]
    for part, registry in (("model", MODEL_DATACLASS_REGISTRY), ("task", TASK_DATACLASS_REGISTRY)):
        options = cfg[part]
        kind = registry.get(ARCH_MODEL_NAME_REGISTRY.get(options["_name"], options["_name"]))
        for known in fields(kind) if is_dataclass(kind) else ():
            value = plain(options.get(known.name))
            if CONTEXT_OPTIONS.search(known.name) and value not in (None, "none", plain(default_of(known))):
                yield known.name, value


class Repository:
    """Model repository on the hub, created if it does not exist.

    Args:
        name: ``OWNER/MODEL``.
        private: a new repository is private.

    Raises:
        InputError: missing library, or no access.
    """

    def __init__(self, name: str, private: bool = False):
        with needs_extra("pretrained", f"--push {name}"):
            from huggingface_hub import HfApi
        self.name = name
        self.api: Any = HfApi(library_name="docnmt_fairseq")
        try:
            self.api.create_repo(name, exist_ok=True, private=private or None)
        except Exception as error:  # network, access, hub: no common class
            raise InputError(f"--push {name}: {first_line(error)}; log in with: hf auth login") from None

    def push(self, folder: Path, card: str) -> None:
        """Uploads a folder with a model card."""
        (folder / CARD).write_text(card, encoding="utf-8")
        self.api.upload_folder(repo_id=self.name, folder_path=str(folder), commit_message="Upload of docnmt export")
