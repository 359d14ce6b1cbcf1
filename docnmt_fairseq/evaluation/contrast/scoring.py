"""Answers of models to contrastive items: scores of all candidates by forced decoding."""

import math
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple, Union

from torch import Tensor

from docnmt_fairseq.boundaries import is_boundary, levels_ended, paragraph_symbol
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import ContrastItem, GenerationItem, ItemDocument, concatenate
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, ScoringRequest, Tokens, as_tokens, last_of

OUTCOMES = ("right", "wrong", "tie", "nan")
# Maximum difference (nats) of equal scores: float32 sums vary as much with the composition of the batch.
TIE = 1e-4


@dataclass(frozen=True)
class Answer:
    """Answer of a model to an item.

    Attributes:
        item: contrastive or generation item.
        outcome: one of ``OUTCOMES``; all but the first are incorrect.
        scores: of the candidates; empty for generation items.
        translation: for generation items.
    """

    item: Union[ContrastItem, GenerationItem]
    outcome: str
    scores: Tuple[float, ...] = ()
    translation: str = ""


def outcome_of(scores: Sequence[float], right: int) -> str:
    """Returns "right" if the correct candidate scores strictly better than all others.

    Ties (within ``TIE``) and NaN are separate outcomes, so that a constant model has no correct answers.
    """
    if any(math.isnan(score) for score in scores):
        return "nan"
    best = max(score for number, score in enumerate(scores) if number != right)
    if scores[right] == best or abs(scores[right] - best) <= TIE:  # the former also for -inf
        return "tie"
    return "right" if scores[right] > best else "wrong"


def answer(
    items: Sequence[ContrastItem], decoder: ForcedDecoder, codec: TextCodec, normalise: bool = False
) -> List[Answer]:
    """Scores all candidates in their documents.

    Args:
        items: in any order.
        decoder: forced decoder with the models.
        codec: text to tokens.
        normalise: divide scores by the number of target tokens, with end of sentence.

    Raises:
        InputError: a set without the target-side context that the model needs, or too long sentences.
    """
    source, requests = build_requests(items, decoder, codec)
    flat = [request for of_item in requests for of_candidate in of_item for request in of_candidate]
    scored = iter(decoder.score(source, flat))
    answers = []
    for item, of_item in zip(items, requests):
        scores = []
        for of_candidate in of_item:
            parts = [next(scored) for _ in of_candidate]
            total = float(sum(part.sum() for part in parts))
            scores.append(total / sum(map(len, parts)) if normalise else total)
        answers.append(Answer(item, outcome_of(scores, item.right), tuple(scores)))
    return answers


def build_requests(
    items: Sequence[ContrastItem], decoder: ForcedDecoder, codec: TextCodec
) -> Tuple[List[Tensor], List[List[List[ScoringRequest]]]]:
    """Documents of the items as delimited tokens, and the requests by item, candidate and judged sentence."""
    texts = EncodedDocuments([item.document for item in items], decoder.ensemble, codec)
    texts.target([sentence for item in items for candidate in item.candidates for sentence in candidate.values()])
    requests = [
        [_candidate_requests(item, number, texts, decoder) for number in range(len(item.candidates))] for item in items
    ]
    return texts.source, requests


class EncodedDocuments:
    """Documents of items as tokens: the source as one delimited text, and each target sentence encoded once.

    Args:
        documents: of the items, one object per document.
        ensemble: models with dictionaries; paragraph boundaries are dropped if these lack ``<p>``.
        codec: text to tokens.
    """

    def __init__(self, documents: Sequence[ItemDocument], ensemble: Ensemble, codec: TextCodec):
        self.codec, self.dictionary = codec, ensemble.dictionaries[1]
        lines, self.starts = concatenate(list(dict.fromkeys(documents)))
        dictionary = ensemble.dictionaries[0]
        has_paragraphs = paragraph_symbol(dictionary) is not None
        kept = [number for number, line in enumerate(lines) if has_paragraphs or not levels_ended(line)]
        self.place = {number: place for place, number in enumerate(kept)}  # by line of the documents
        self.source = token_ids(codec.encode_lines(0, [lines[number] for number in kept]), dictionary)
        for number, tokens in zip(kept, self.source):  # an empty line would end the document
            if len(tokens) < 2 and not is_boundary(lines[number]):
                owners = [document for document in self.starts if self.starts[document] <= number]
                name = max(owners, key=self.starts.__getitem__).name
                raise InputError(f"{name}: source sentence '{lines[number]}' has no tokens")
        self.encoded: Dict[str, Tokens] = {}

    def line(self, document: ItemDocument, line: int) -> int:
        """Line number in the text of a line of a document."""
        return self.place[self.starts[document] + line]

    def target(self, sentences: Sequence[str]) -> List[Tokens]:
        """Tokens of target sentences."""
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.encoded]
        self.encoded.update(zip(new, as_tokens(token_ids(self.codec.encode_lines(1, new), self.dictionary))))
        return [self.encoded[sentence] for sentence in sentences]


def _candidate_requests(
    item: ContrastItem, candidate: int, texts: EncodedDocuments, decoder: ForcedDecoder
) -> List[ScoringRequest]:
    """Requests for the sentences of a candidate, after the other sentences of the document's target."""
    chosen, document = item.candidates[candidate], item.document
    limit = decoder.target_sentences
    if limit and document.target is None:
        raise InputError(f"{item.name}: the model uses target-side context, which this set does not have")
    lines = [""] * len(document.source) if document.target is None else list(document.target)
    for line, sentence in chosen.items():
        lines[line] = sentence
    requests = []
    for line in item.lines:
        before = [sentence for sentence in lines[:line] if not is_boundary(sentence)]
        *previous, target = texts.target([*last_of(before, limit), chosen[line]])
        source = texts.source[texts.line(document, line)]
        for side, tokens, longest in zip(("source", "target"), (len(source), len(target)), decoder.longest):
            if tokens > longest:
                raise InputError(f"{item.name}: {tokens} {side} tokens; the model's limit is {longest}")
            if tokens < 2:
                raise InputError(f"{item.name}: {side} sentence without tokens")
        requests.append(ScoringRequest(texts.line(document, line), target, tuple(previous)))
    return requests
