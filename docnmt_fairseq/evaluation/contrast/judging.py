"""The answers of a model to contrastive items: scores of all candidates, and whether the true one wins."""

import math
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import Document, GenerationItem, Item, together
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, Request, Tokens, as_tokens, previous_of
from docnmt_fairseq.evaluation.loading import Loaded, TextCodec, to_tokens
from docnmt_fairseq.marks import PARAGRAPH, is_mark

OUTCOMES = ("right", "wrong", "tie", "nan")
# Scores this near (nats) are equal: float32 sums of a sentence's words differ as much with the batch they are in.
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

    item: "Item | GenerationItem"
    outcome: str
    scores: Tuple[float, ...] = ()
    translation: str = ""


def outcome_of(scores: Sequence[float], right: int) -> str:
    """Returns whether the right candidate scores strictly better than every other one.

    A tie (within ``TIE``) and a score that is no number are outcomes of their own: a model that always says the same,
    or nothing, must not be right where the true candidate happens to come first.
    """
    if any(math.isnan(score) for score in scores) or math.isinf(scores[right]):
        return "nan"
    margin = scores[right] - max(score for number, score in enumerate(scores) if number != right)
    if margin > TIE:
        return "right"
    return "wrong" if margin < -TIE else "tie"


def answer(items: Sequence[Item], decoder: ForcedDecoder, codec: TextCodec, normalise: bool = False) -> List[Answer]:
    """Returns the model's answers, by force-decoding all candidates in their documents.

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
    """Returns the documents of items as one text of tokens, and what is asked: by item, candidate, judged sentence.

    Raises:
        InputError: see :func:`answer`.
    """
    texts = Texts([item.document for item in items], decoder.loaded, codec)
    texts.target([sentence for item in items for candidate in item.candidates for sentence in candidate.values()])
    numbers = [range(len(item.candidates)) for item in items]
    return texts.source, [
        [_requests(item, number, texts, decoder) for number in of_item] for item, of_item in zip(items, numbers)
    ]


class Texts:
    """The documents of items as tokens: the source as one delimited text, target sentences each encoded once.

    Args:
        documents: of the items, the same object for the same one.
        loaded: whose dictionaries are used; where they lack ``<p>``, paragraphs are not marked.
        codec: from text to tokens.
    """

    def __init__(self, documents: Sequence[Document], loaded: Loaded, codec: TextCodec):
        self.codec, self.dictionary = codec, loaded.dictionaries[1]
        lines, self.starts = together(list(dict.fromkeys(documents)))
        dictionary = loaded.dictionaries[0]
        if dictionary.index(PARAGRAPH) == dictionary.unk():
            kept = [number for number, line in enumerate(lines) if line != PARAGRAPH]
        else:
            kept = list(range(len(lines)))
        self.place = {number: place for place, number in enumerate(kept)}  # in the text, of a line of the documents
        self.source: List[Tensor] = to_tokens([lines[number] for number in kept], codec, 0, dictionary)
        self.encoded: Dict[str, Tokens] = {}

    def line(self, document: Document, line: int) -> int:
        """Returns where in the text a line of a document is."""
        return self.place[self.starts[document] + line]

    def target(self, sentences: Sequence[str]) -> List[Tokens]:
        """Returns target sentences as tokens."""
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.encoded]
        self.encoded.update(zip(new, as_tokens(to_tokens(new, self.codec, 1, self.dictionary))))
        return [self.encoded[sentence] for sentence in sentences]


def _requests(item: Item, candidate: int, texts: Texts, decoder: ForcedDecoder) -> List[Request]:
    """Returns what is asked about a candidate: its sentences, those before them as its document has them."""
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
        for side, tokens, longest in zip(("source", "target"), (source, target), decoder.longest):
            if len(tokens) > longest:
                raise InputError(f"{item.name}: {len(tokens)} {side} tokens; the model takes {longest}")
            if len(tokens) < 2:
                raise InputError(f"{item.name}: nothing is left of its {side} sentence as tokens")
        requests.append(Request(texts.line(document, line), target, tuple(previous)))
    return requests
