"""COMET, sentence by sentence or with previous sentences as context (doc-COMET); the package is optional.

The context variant is that of Vernikos et al. (2022), "Embarrassingly easy document-level MT metrics": a sentence is
scored as it is, but encoded behind the sentences before it in its document.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import Stream
from docnmt_fairseq.evaluation.texts import References

CONTEXT_FROM = ("reference", "hypothesis")


@dataclass(frozen=True)
class CometOptions:
    """Which model, and what it sees.

    Attributes:
        model: a checkpoint, or the name of a published model, which is then downloaded.
        context: previous sentences that it sees (the paper: 2); 0 for the plain metric.
        context_from: whose sentences are a translation's context: the reference's, as in the paper, or its own.
        batch_size: sentences.
        gpus: 0 for the CPU.
    """

    model: str
    context: int = 0
    context_from: str = "reference"
    batch_size: int = 16
    gpus: int = 0

    @property
    def name(self) -> str:
        """What the score is called."""
        return "doc-COMET" if self.context else "COMET"


def load_model(options: CometOptions) -> Any:
    """Returns the model, ready to see context if it is to.

    Raises:
        InputError: the package is missing, or the model cannot be had or cannot use context.
    """
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise InputError(
            f"--comet needs the package unbabel-comet ({error}); pip install 'docnmt_fairseq[comet]', in an "
            "environment of its own if its versions do not go with yours"
        ) from error
    try:
        path = options.model if Path(options.model).is_file() else download_model(options.model)
        model = load_from_checkpoint(path)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise InputError(f"--comet {options.model}: cannot be loaded: {error}") from error
    if options.context:
        model.enable_context()
        if not model.use_context:  # COMET leaves it off where a model's pooling does not allow it
            raise InputError(f"--comet-context: {options.model} cannot use context (its pooling is not the average)")
    return model


def with_context(sentences: Stream, context: Stream, size: int, separator: str) -> List[str]:
    """Returns all sentences, each behind at most ``size`` sentences that precede it in its document.

    Args:
        sentences: by document.
        context: where preceding sentences are taken from: as many documents of as many sentences.
        size: at most so many.
        separator: between them; COMET scores what stands behind the last.
    """
    return [
        f" {separator} ".join([*before[max(0, i - size) : i], sentence])
        for document, before in zip(sentences, context)
        for i, sentence in enumerate(document)
    ]


def comet_scores(model: Any, translation: Stream, references: References, options: CometOptions) -> List[float]:
    """Returns the score of each sentence as COMET gives it; the system's score is their mean.

    Args:
        model: from :func:`load_model`.
        translation: the system's.
        references: with the source; COMET reads one reference, the first.
        options: the same that the model was loaded with.
    """
    reference = references.streams[0]
    separator = model.encoder.tokenizer.sep_token
    sides: Dict[str, List[str]] = {
        key: with_context(sentences, context, options.context, separator)
        for key, sentences, context in (
            ("src", references.source, references.source),
            ("mt", translation, reference if options.context_from == "reference" else translation),
            ("ref", reference, reference),
        )
    }
    samples = [dict(zip(sides, texts)) for texts in zip(*sides.values())]
    found = model.predict(samples, batch_size=options.batch_size, gpus=options.gpus, progress_bar=False)
    return [float(score) for score in found.scores]


def comet_signature(options: CometOptions, references: References) -> str:
    """Returns what makes the score reproducible, in the form of sacrebleu's signatures."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("unbabel-comet")
    except PackageNotFoundError:
        installed = "unknown"
    parts = [f"model:{options.model}", f"context:{options.context}"]
    parts += [f"context-from:{options.context_from}"] if options.context else []
    parts += [f"ref:1 of {len(references.files)}", f"version:{installed}"]
    return "|".join(parts)
