"""The answers of a model to contrastive items: scores of all candidates, and whether the true one wins."""

import math
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple, Union

from torch import Tensor

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import Document, GenerationItem, Item, together
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, Request, Tokens, as_tokens, previous_of
from docnmt_fairseq.marks import is_mark, levels_ended, paragraph_symbol

OUTCOMES = ("right", "wrong", "tie", "nan")
# Scores this near (nats) are equal: float32 sums of a sentence's tokens differ as much with the batch they are in.
TIE = 1e-4


@dataclass(frozen=True)
class Answer:
    """What a model says to an item.

    Attributes:
        item: the question.
        outcome: of ``OUTCOMES``; all but the first are wrong answers.
        scores: of the candidates; empty where a translation was asked for.
        translation: where it was.
    """

    item: Union[Item, GenerationItem]
    outcome: str
    scores: Tuple[float, ...] = ()
    translation: str = ""


def outcome_of(scores: Sequence[float], right: int) -> str:
    """Whether the right candidate scores strictly better than every other one.

    A tie (within ``TIE``) and a score that is no number are outcomes of their own: a model that always says the same,
    or nothing, must not be right where the true candidate happens to come first.
    """
    if any(math.isnan(score) for score in scores):
        return "nan"
    best = max(score for number, score in enumerate(scores) if number != right)
    if scores[right] == best or abs(scores[right] - best) <= TIE:  # also where both are impossible
        return "tie"
    return "right" if scores[right] > best else "wrong"


def answer(items: Sequence[Item], decoder: ForcedDecoder, codec: TextCodec, normalise: bool = False) -> List[Answer]:
    """The model's answers to items, by force-decoding all candidates in their documents.

    Args:
        items: in any order.
        decoder: with the models.
        codec: from text to tokens.
        normalise: divide scores by the number of target tokens, end of sentence included.

    Raises:
        InputError: a model with target-side context, but the set has none; a sentence too long; names the item.
    """
    source, requests = requests_of(items, decoder, codec)
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


def requests_of(
    items: Sequence[Item], decoder: ForcedDecoder, codec: TextCodec
) -> Tuple[List[Tensor], List[List[List[Request]]]]:
    """The documents of items as one text of tokens, and what is asked: by item, candidate, judged sentence.

    Raises:
        InputError: see :func:`answer`.
    """
    texts = Texts([item.document for item in items], decoder.ensemble, codec)
    texts.target([sentence for item in items for candidate in item.candidates for sentence in candidate.values()])
    numbers = [range(len(item.candidates)) for item in items]
    return texts.source, [
        [_requests(item, number, texts, decoder) for number in of_item] for item, of_item in zip(items, numbers)
    ]


class Texts:
    """The documents of items as tokens: the source as one delimited text, target sentences each encoded once.

    Args:
        documents: of the items, the same object for the same one.
        ensemble: whose dictionaries are used; where they lack ``<p>``, paragraphs are not marked.
        codec: from text to tokens.
    """

    def __init__(self, documents: Sequence[Document], ensemble: Ensemble, codec: TextCodec):
        self.codec, self.dictionary = codec, ensemble.dictionaries[1]
        lines, self.starts = together(list(dict.fromkeys(documents)))
        dictionary = ensemble.dictionaries[0]
        if paragraph_symbol(dictionary) is None:
            kept = [number for number, line in enumerate(lines) if not levels_ended(line)]
        else:
            kept = list(range(len(lines)))
        self.place = {number: place for place, number in enumerate(kept)}  # in the text, of a line of the documents
        self.source = token_ids(codec.encode_lines(0, [lines[number] for number in kept]), dictionary)
        for number, tokens in zip(kept, self.source):  # as tokens an empty line would end the document
            if len(tokens) < 2 and not is_mark(lines[number]):
                owner = max(
                    (document for document in self.starts if self.starts[document] <= number),
                    key=self.starts.__getitem__,
                )
                raise InputError(f"{owner.name}: nothing is left of source sentence '{lines[number]}' as tokens")
        self.encoded: Dict[str, Tokens] = {}

    def line(self, document: Document, line: int) -> int:
        """Where in the text a line of a document is."""
        return self.place[self.starts[document] + line]

    def target(self, sentences: Sequence[str]) -> List[Tokens]:
        """Target sentences as tokens."""
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.encoded]
        self.encoded.update(zip(new, as_tokens(token_ids(self.codec.encode_lines(1, new), self.dictionary))))
        return [self.encoded[sentence] for sentence in sentences]


def _requests(item: Item, candidate: int, texts: Texts, decoder: ForcedDecoder) -> List[Request]:
    """What is asked about a candidate: its sentences, those before them as its document has them."""
    chosen, document = item.candidates[candidate], item.document
    most = decoder.target_sentences
    if most and document.target is None:
        raise InputError(f"{item.name}: the model sees target sentences before, but this set has none")
    lines = [""] * len(document.source) if document.target is None else list(document.target)
    for line, sentence in chosen.items():
        lines[line] = sentence
    requests = []
    for line in item.lines:
        before = [sentence for sentence in lines[:line] if not is_mark(sentence)]
        *previous, target = texts.target([*previous_of(before, most), chosen[line]])
        source = texts.source[texts.line(document, line)]
        for side, tokens, longest in zip(("source", "target"), (len(source), len(target)), decoder.longest):
            if tokens > longest:
                raise InputError(f"{item.name}: {tokens} {side} tokens; the model takes {longest}")
            if tokens < 2:
                raise InputError(f"{item.name}: nothing is left of its {side} sentence as tokens")
        requests.append(Request(texts.line(document, line), target, tuple(previous)))
    return requests
