"""What a model did with one document: its translation, and what its mechanisms reported, by tokens and sentences."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.context.selected.base import drawn_contexts
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.capture import Capture, capture


@dataclass
class Sentence:
    """One sentence; its tokens have the end of sentence on both sides.

    Attributes:
        line: of the corpus, from 0.
        paragraph: its place in the document, from 0.
        source, translation: tokens.
        reference: tokens, None where there is none.
    """

    line: int
    paragraph: int
    source: List[str]
    translation: List[str]
    reference: Optional[List[str]] = None


@dataclass(frozen=True)
class Side:
    """Source or target of a piece of a document, in the numbering of the batch and of the document.

    Attributes:
        rows: tokens in sentences of the batch.
        sentences: [rows] the sentence of the document that each row is.
        tokens: [tokens] the token of the document that each is.
        decoded: [tokens] whether the token is of a sentence that this piece translates.
    """

    rows: Ragged
    sentences: np.ndarray
    tokens: np.ndarray
    decoded: np.ndarray


@dataclass(frozen=True)
class Piece:
    """A piece of the document as it went through the model. All of it, unless the document is long."""

    layout: DocumentLayout
    recording: Capture
    source: Side
    target: Side


@dataclass(frozen=True)
class Inspection:
    """A document that was translated, and what was recorded on the way."""

    sentences: List[Sentence]
    pieces: List[Piece]


def inspect(ensemble: Ensemble, dataset: DocumentDataset, document: int, beam: int = 4) -> Inspection:
    """Translates a document, then looks into it.

    Args:
        ensemble, dataset, document: see :func:`inspect_translated`.
        beam: of the search.

    Raises:
        InputError: no such document, or a sentence too long for the model.
    """
    return inspect_translated(ensemble, dataset, document, lambda batch: _translate(ensemble, batch, beam))


def inspect_translated(
    ensemble: Ensemble, dataset: DocumentDataset, document: int, translate: Callable[[Dict[str, Any]], List[Tensor]]
) -> Inspection:
    """Computes a document with its translation as the target, and records.

    Args:
        ensemble: of one model.
        dataset: holds the document.
        document: its number, from 0.
        translate: gives the translations of a batch's decoded sentences, tokens with an end of sentence.

    Raises:
        InputError: no such document, or a sentence too long for the model; or its context is not in the document.
    """
    if drawn_contexts(ensemble.model):
        raise InputError(
            "the model's context is drawn from the training set (--context-selection training-set): no word looks at "
            "another sentence of its document, and nothing can be shown"
        )
    index = dataset.index
    if not 0 <= document < len(index):
        raise InputError(f"--document {document + 1}: {dataset.name} has documents 1 to {len(index)}")
    first, last = int(index.documents[document]), int(index.documents[document + 1])
    long = dataset.too_long(*ensemble.model.max_positions())
    if len(long[(long >= first) & (long < last)]):
        raise InputError(f"{dataset.name}: document {document + 1} has a sentence that is too long for the model")
    starts = np.concatenate([[0], np.cumsum(dataset.source_sizes[first:last])])
    sentences: Dict[int, Sentence] = {}
    runs = [
        _run(ensemble, dataset, int(number), first, sentences, translate)
        for number in np.flatnonzero(dataset.pieces.document == document)
    ]
    ordered = [sentences[number] for number in sorted(sentences)]
    target_starts = np.cumsum([0, *(len(sentence.translation) for sentence in ordered)])
    pieces = []
    for layout, recording, rows in runs:
        assert layout.targets is not None  # they are the translations
        decoded = np.arange(len(rows)) if layout.decoded is None else layout.decoded
        source = _side(layout.tokens, rows, starts, np.isin(np.arange(len(rows)), decoded))
        target = _side(layout.targets, rows[decoded], target_starts, np.ones(len(decoded), dtype=bool))
        pieces.append(Piece(layout, recording, source, target))
    return Inspection(ordered, pieces)


def _side(rows: Ragged, sentences: np.ndarray, starts: np.ndarray, decoded: np.ndarray) -> Side:
    row, column = rows.item_row.numpy(), rows.item_column.numpy()
    return Side(rows, sentences, starts[sentences][row] + column, decoded[row])


def _run(
    ensemble: Ensemble,
    dataset: DocumentDataset,
    number: int,
    first: int,
    sentences: Dict[int, Sentence],
    translate: Callable[[Dict[str, Any]], List[Tensor]],
) -> Tuple[DocumentLayout, Capture, np.ndarray]:
    """Computes a piece: its layout, what was recorded, and which sentences of the document its rows are, [R].

    Args:
        number: of the piece; its sentences are put into ``sentences``.
        first: the document's first sentence in the corpus.
    """
    task, pieces = ensemble.task, dataset.pieces
    item: Dict[str, Any] = dataset[number]
    start = pieces.start if item["hidden"] else pieces.context_start
    rows = np.arange(len(item["source"])) + int(start[number]) - first
    batch: Dict[str, Any] = dataset.collater([item])
    translations = [tokens.long() for tokens in translate(batch)]
    source, target = task.source_dictionary, task.target_dictionary
    paragraphs = dataset.index.unit_positions(int(pieces.document[number]), first, first + int(rows[-1]) + 1)[0]
    for place, row in enumerate(np.flatnonzero(item["decoded"])):
        tokens = item["source"][row]
        reference = None if item["target"] is None else _symbols(item["target"][place], target)
        sentences[int(rows[row])] = Sentence(
            int(item["ids"][place]),
            int(paragraphs[rows[row]]),
            _symbols(tokens, source),
            _symbols(translations[place], target),
            reference,
        )
    lengths = np.array([len(tokens) for tokens in translations])
    layout = batch["net_input"]["layout"].with_targets(lengths)
    previous = [torch.cat([tokens.new_tensor([target.eos()]), tokens[:-1]]) for tokens in translations]
    padded = layout.targets.pad(torch.cat(previous), target.pad())
    inputs = batch["net_input"]
    with capture() as recording, torch.no_grad():
        ensemble.model(**{**inputs, "prev_output_tokens": padded, "layout": layout})
    return layout, recording, rows


def _translate(ensemble: Ensemble, batch: Dict[str, Any], beam: int) -> List[Tensor]:
    """The best translation of every decoded sentence of a batch, tokens with an end of sentence."""
    generator = ensemble.task.build_generator(ensemble.models, GenerationConfig(beam=beam))
    hypotheses = ensemble.task.inference_step(generator, ensemble.models, batch)
    return [of_sentence[0]["tokens"] for of_sentence in hypotheses]


def _symbols(tokens: Tensor, dictionary: Dictionary) -> List[str]:
    return [dictionary[int(token)] for token in tokens]
