"""Translation of one document and the captured computation of the context mechanisms."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.context.selected.base import needed_contexts
from docnmt_fairseq.corpus.pipeline import token_ids
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.capture import Capture, capture

# Translates the decoded sentences of a batch to tokens with end of sentence.
Translate = Callable[[Dict[str, Any]], List[Tensor]]


@dataclass
class InspectedSentence:
    """Sentence as tokens with end of sentence."""

    line: int  # in the corpus, from 0
    paragraph: int  # index in the document
    source: List[str]
    translation: List[str]
    reference: Optional[List[str]] = None


@dataclass(frozen=True)
class Side:
    """Source or target of a chunk: positions in the batch and in the document."""

    rows: Ragged  # tokens of the sentences of the batch
    sentences: np.ndarray  # [rows] sentence of the document
    tokens: np.ndarray  # [tokens] token of the document
    decoded: np.ndarray  # [tokens] whether its sentence is translated in this chunk


@dataclass(frozen=True)
class Chunk:
    """Chunk of the document as computed by the model; long documents have several."""

    layout: DocumentLayout
    capture: Capture
    source: Side
    target: Side


@dataclass(frozen=True)
class Inspection:
    """Translated document with its captured computation."""

    sentences: List[InspectedSentence]
    chunks: List[Chunk]


def dataset_of_lines(ensemble: Ensemble, lines: Sequence[str], name: str) -> DocumentDataset:
    """Delimited lines of tokens as documents, divided into pieces as in training.

    Args:
        ensemble: model.
        lines: delimited text.
        name: name of the text, for messages.

    Raises:
        InputError: a model that needs more than text.
    """
    dataset: DocumentDataset = ensemble.task.documents_in_memory(token_ids(lines, ensemble.dictionaries[0]))
    dataset.name = name
    return dataset


def inspect(
    ensemble: Ensemble,
    dataset: DocumentDataset,
    document: int,
    beam: int = 4,
    translate: Optional[Translate] = None,
    lines: Optional[Sequence[str]] = None,
) -> Inspection:
    """Translates a document, computes it with its translation as the target, and captures the computation.

    Args:
        ensemble: model.
        dataset: documents.
        document: index of the document.
        beam: beam of the search of the model.
        translate: replaces this search.
        lines: lines of tokens of the dataset; source tokens outside the vocabulary are then displayed as they are.

    Raises:
        InputError: a too long sentence, or a model whose context is not in the document.
    """

    def search(batch: Dict[str, Any]) -> List[Tensor]:
        generator = ensemble.task.build_generator(ensemble.models, GenerationConfig(beam=beam))
        hypotheses = ensemble.task.inference_step(generator, ensemble.models, batch)
        return [of_sentence[0]["tokens"] for of_sentence in hypotheses]

    if needed_contexts(ensemble.model, "training-set"):
        raise InputError(
            "--context-selection training-set: the context of this model is not in the document, nothing to inspect"
        )
    index = dataset.index
    first, last = int(index.documents[document]), int(index.documents[document + 1])
    long = dataset.too_long(*ensemble.model.max_positions())
    if len(long[(long >= first) & (long < last)]):
        raise InputError(f"{dataset.name}: document {document + 1} has a sentence beyond the length limit of the model")
    starts = np.concatenate([[0], np.cumsum(dataset.source_sizes[first:last])])
    sentences: Dict[int, InspectedSentence] = {}
    runs = [
        _run(ensemble, dataset, int(number), first, sentences, translate or search)
        for number in np.flatnonzero(dataset.chunks.document == document)
    ]
    ordered = [sentences[number] for number in sorted(sentences)]
    if lines is not None:
        for sentence in ordered:
            sentence.source[:-1] = lines[sentence.line].split()
    target_starts = np.cumsum([0, *(len(sentence.translation) for sentence in ordered)])
    chunks = []
    for layout, captured, rows in runs:
        assert layout.targets is not None  # the translations
        decoded = np.arange(len(rows)) if layout.decoded is None else layout.decoded
        source = _side(layout.tokens, rows, starts, np.isin(np.arange(len(rows)), decoded))
        target = _side(layout.targets, rows[decoded], target_starts, np.ones(len(decoded), dtype=bool))
        chunks.append(Chunk(layout, captured, source, target))
    return Inspection(ordered, chunks)


def _side(rows: Ragged, sentences: np.ndarray, starts: np.ndarray, decoded: np.ndarray) -> Side:
    row, column = rows.item_row.numpy(), rows.item_column.numpy()
    return Side(rows, sentences, starts[sentences][row] + column, decoded[row])


def _run(
    ensemble: Ensemble,
    dataset: DocumentDataset,
    number: int,
    first: int,
    sentences: Dict[int, InspectedSentence],
    translate: Translate,
) -> Tuple[DocumentLayout, Capture, np.ndarray]:
    """Computes a chunk, and returns its layout, the capture, and the sentence of the document of each row, [R].

    ``first`` is the first sentence of the document in the corpus; ``sentences`` receives the decoded sentences.
    """
    task, pieces = ensemble.task, dataset.chunks
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
        sentences[int(rows[row])] = InspectedSentence(
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
    with capture() as captured, torch.no_grad():
        ensemble.model(**{**inputs, "prev_output_tokens": padded, "layout": layout})
    return layout, captured, rows


def _symbols(tokens: Tensor, dictionary: Dictionary) -> List[str]:
    return [dictionary[int(token)] for token in tokens]
