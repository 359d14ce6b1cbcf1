"""A test set as tokens, with its documents: what is measured, and what false context is drawn from."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple

from torch import Tensor

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.forced_decoding import Tokens, as_tokens
from docnmt_fairseq.evaluation.samples import longest_sentences

# A document: the numbers of its sentences; -k where k levels of structure end, -1 a paragraph.
Rows = List[int]


def sentences_of(rows: Rows) -> List[int]:
    """The sentences among the rows of a document."""
    return [row for row in rows if row >= 0]


@dataclass(frozen=True)
class Sentence:
    """One pair of sentences.

    Attributes:
        line: of both files, from 1.
        document: its number.
        texts: source and target.
        source: tokens with end of sentence.
        target: tokens with end of sentence.
    """

    line: int
    document: int
    texts: Tuple[str, ...]
    source: Tensor
    target: Tokens


@dataclass(frozen=True)
class TestSet:
    """Sentences in order, and documents of their numbers, which follow one another."""

    sentences: List[Sentence]
    documents: List[Rows]


def read_test_set(source: Path, target: Path, ensemble: Ensemble, codec: TextCodec) -> TestSet:
    """Reads two delimited files as tokens.

    Raises:
        InputError: they do not fit together, or a sentence is empty or too long for the model; names file and line.
    """
    documents: List[Rows] = []
    lines: List[int] = []
    owners: List[int] = []
    texts: List[Tuple[str, ...]] = []
    for number, document in enumerate(read_documents([source, target])):
        rows: Rows = []
        for place, (paragraph, of_paragraph) in enumerate(zip(document.paragraphs, document.lines)):
            rows += [-document.levels_before(place)] if place else []
            rows += range(len(texts), len(texts) + len(paragraph))
            texts += paragraph
            lines += [line for line, _ in of_paragraph]
        owners += [number] * len(document)
        documents.append(rows)
    if not texts:
        raise InputError(f"{source}: no sentences")
    sides = [
        token_ids(codec.encode_lines(side, [pair[side] for pair in texts]), ensemble.dictionaries[side])
        for side in (0, 1)
    ]
    for file, tokens, longest in zip((source, target), sides, longest_sentences(ensemble)):
        for line, sentence in zip(lines, tokens):
            if len(sentence) > longest:
                raise InputError.at(file, line, f"{len(sentence)} tokens; the model takes {longest}")
            if len(sentence) < 2:
                raise InputError.at(file, line, "nothing is left of this sentence as tokens")
    sentences = [Sentence(*fields) for fields in zip(lines, owners, texts, sides[0], as_tokens(sides[1]))]
    return TestSet(sentences, documents)
