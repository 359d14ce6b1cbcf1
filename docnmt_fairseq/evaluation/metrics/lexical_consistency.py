"""Lexical translation consistency ratio, LTCR (Lyu et al. 2021), over word alignments of eflomal."""

from collections import Counter, defaultdict
from itertools import chain, islice
from math import comb
from typing import Dict, Iterable, List, Sequence, Set, Tuple

from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics, percent
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.evaluation.word_alignment import align, aligner, load_aligner
from docnmt_fairseq.evaluation.words import words_of

LETTERS = 4
DOCUMENTS = 4  # of fewer, no word is called too common


@METRICS.register("lexical-consistency")
class LexicalConsistency(Metric):
    """Pairs of occurrences of a source word in its document, in percent, that are translated by the same word.

    Pairs are counted over all content words. What these are is decided without a list of any language: words of at
    least four letters that are not in more than half of the documents, where there are at least four. Words are
    compared without case, in the forms that they have in the text; occurrences without a link are left out. The
    translation is aligned together with the references, from which the aligner learns, too, so a score depends on no
    other system; but eflomal's links differ a little from run to run, and so do scores. A document's row stands on its
    first sentence, so resample documents (``--test documents``); where a resample has no pair, the score is 0.

    It describes only: the wrong word, always, is consistent.

    Raises:
        InputError: no source is given, or eflomal is missing.
    """

    title = "LTCR"
    help = "repeated words translated alike, with --source FILE (pip install 'docnmt_fairseq[alignment]')"
    judges = False
    joins_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: MetricOptions):
        super().__init__(test_set, options)
        load_aligner()  # what is missing is said before other metrics work long
        self.source = [[words_of(sentence) for sentence in document] for document in test_set.source or []]
        self.content = content_words(self.source)

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """Pairs translated alike, and pairs; zeros but for the first sentence of each document."""
        return list(map(self._statistics, translations))

    def _statistics(self, translation: Stream) -> Statistics:
        target = [words_of(sentence) for sentence in segments(translation)]
        others = [words_of(sentence) for stream in self.test_set.streams for sentence in segments(stream)]
        source = list(chain.from_iterable(self.source))
        pairs = zip(source, target, align(source * (1 + len(self.test_set.streams)), target + others))
        rows: Statistics = []
        for document in self.source:
            rows += [self._row(islice(pairs, len(document))), *([0.0, 0.0] for _ in document[1:])]
        return rows

    def _row(self, document: Iterable[Tuple[List[str], List[str], Dict[int, int]]]) -> List[float]:
        found: Dict[str, Counter[str]] = defaultdict(Counter)  # how a word is translated, and how often
        for source, target, links in document:
            for i, word in enumerate(source):
                if i in links and word in self.content:
                    found[word][target[links[i]]] += 1
        alike = sum(comb(count, 2) for words in found.values() for count in words.values())
        return [float(alike), float(sum(comb(words.total(), 2) for words in found.values()))]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(sums[0], sums[1])

    def signed(self, details: Dict[str, object]) -> str:
        """See :meth:`Metric.signed`."""
        return super().signed({"aligner": aligner(), **details})


def content_words(documents: Sequence[Sequence[Sequence[str]]]) -> Set[str]:
    """The words of [documents, sentences, words] that are counted; see :class:`LexicalConsistency`."""
    common_to = Counter(word for document in documents for word in set(chain.from_iterable(document)))
    most = len(documents) / 2 if len(documents) >= DOCUMENTS else len(documents)
    return {word for word, count in common_to.items() if count <= most and len(word) >= LETTERS and word.isalpha()}
