"""Answers of models to contrastive items: scores of all candidates by forced decoding."""

import logging
import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np
from tqdm import tqdm

from docnmt_fairseq.boundaries import is_boundary, levels_ended, paragraph_symbol
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import ContrastItem, GenerationItem, ItemDocument
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, ScoringRequest, Tokens, as_tokens, last_of

OUTCOMES = ("right", "wrong", "tie", "nan")
# Maximum difference (nats) of equal scores: float32 sums vary as much with the composition of the batch.
TIE = 1e-4
MANY_UNKNOWN = 0.1  # share of unknown tokens
IMPROBABLE = 0.7  # log-probability of correct translations relative to that of random tokens; trained models: below 0.4

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """Answer of a model to an item: scores of the candidates, or the translation of a generation item."""

    item: Union[ContrastItem, GenerationItem]
    outcome: str  # one of OUTCOMES; all but the first are incorrect
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
    texts = EncodedDocuments([item.document for item in items], decoder.ensemble, codec)
    texts.target([sentence for item in items for candidate in item.candidates for sentence in candidate.values()])
    texts.warn_of_unknown_tokens()
    requests = [[_requests(item, candidate, texts, decoder) for candidate in item.candidates] for item in items]
    flat = [request for of_item in requests for of_candidate in of_item for request in of_candidate]
    with tqdm(total=len(set(flat)), desc="contrast", unit=" sentences", disable=None) as progress:
        scored = iter(decoder.score(texts.source, flat, progress.update))
    answers, of_right = [], []
    for item, of_item in zip(items, requests):
        scores = []
        for number, of_candidate in enumerate(of_item):
            parts = [next(scored) for _ in of_candidate]
            of_right += parts if number == item.right else []
            total = float(sum(part.sum() for part in parts))
            scores.append(total / sum(map(len, parts)) if normalise else total)
        answers.append(Answer(item, outcome_of(scores, item.right), tuple(scores)))
    warn_of_improbable_texts(np.concatenate([*of_right, []]), decoder.ensemble)
    return answers


def warn_of_improbable_texts(scores: np.ndarray, ensemble: Ensemble) -> None:
    """Warns if correct translations are nearly as improbable as random tokens, as in items of another language."""
    mean, random = float(np.mean(scores)) if len(scores) else 0.0, -math.log(len(ensemble.dictionaries[1]))
    if mean < IMPROBABLE * random:
        logger.warning(
            f"--items: the model gives the correct translations {mean:.1f} nats per token (random: {random:.1f}); is "
            f"it trained, and are the items {' to '.join(ensemble.languages)}?"
        )


class EncodedDocuments:
    """Documents of items as tokens: the source as one delimited text, and each target sentence encoded once.

    Args:
        documents: of the items, one object per document.
        ensemble: models with dictionaries; paragraph boundaries are dropped if these lack ``<p>``.
        codec: text to tokens.

    Raises:
        InputError: an empty sentence, which would end its document.
    """

    def __init__(self, documents: Sequence[ItemDocument], ensemble: Ensemble, codec: TextCodec):
        self.codec, self.ensemble, self.dictionary = codec, ensemble, ensemble.dictionaries[1]
        has_paragraphs = paragraph_symbol(ensemble.dictionaries[0]) is not None
        self.places: Dict[Tuple[ItemDocument, int], int] = {}  # line in the text by document and its line
        lines: List[str] = []
        for document in dict.fromkeys(documents):
            if not all(sentence.strip() for sentence in (*document.source, *(document.target or ()))):
                raise InputError(f"{document.name}: empty sentence")
            for number, line in enumerate(document.source):
                if has_paragraphs or not levels_ended(line):
                    self.places[document, number] = len(lines)
                    lines.append(line)
            lines.append("")
        self.source = token_ids(codec.encode_lines(0, lines), ensemble.dictionaries[0])
        self.encoded: Dict[str, Tokens] = {}

    def target(self, sentences: Sequence[str]) -> List[Tokens]:
        """Tokens of target sentences."""
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.encoded]
        self.encoded.update(zip(new, as_tokens(token_ids(self.codec.encode_lines(1, new), self.dictionary))))
        return [self.encoded[sentence] for sentence in sentences]

    def warn_of_unknown_tokens(self) -> None:
        """Warns if many tokens are unknown to the model, as in items of other languages."""
        sides = (self.source, self.encoded.values())
        for language, dictionary, rows in zip(self.ensemble.languages, self.ensemble.dictionaries, sides):
            tokens = np.concatenate([np.asarray(row) for row in rows])
            share = float((tokens == dictionary.unk()).mean())
            if share > MANY_UNKNOWN:
                logger.warning(
                    f"--items: {share:.0%} of the {language} tokens are unknown to the model; its languages are "
                    f"{' to '.join(self.ensemble.languages)}"
                )


def _requests(
    item: ContrastItem, candidate: Mapping[int, str], texts: EncodedDocuments, decoder: ForcedDecoder
) -> List[ScoringRequest]:
    """Requests for the sentences of a candidate, after the other sentences of the document's target."""
    document, limit = item.document, decoder.target_sentences
    if limit and document.target is None:
        raise InputError(f"{item.name}: the model uses target-side context, which this set does not have")
    lines = list(document.target or [""] * len(document.source))
    for line, sentence in candidate.items():
        lines[line] = sentence
    requests = []
    for line in item.lines:
        before = [sentence for sentence in lines[:line] if not is_boundary(sentence)]
        *previous, target = texts.target([*last_of(before, limit), candidate[line]])
        place = texts.places[document, line]
        sizes = (len(texts.source[place]), len(target))
        for side, tokens, longest in zip(("source", "target"), sizes, decoder.longest):
            if not 2 <= tokens <= longest:
                raise InputError(f"{item.name}: {tokens} {side} tokens; the model takes 2 to {longest}")
        requests.append(ScoringRequest(place, target, tuple(previous)))
    return requests
