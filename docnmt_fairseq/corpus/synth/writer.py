"""Writes an artificial corpus: delimited text, tables of undecidable words, contrastive sets, ceilings, lexicon.

The ceiling is the best accuracy of a model that sees one sentence at a time. The sentence of an undecidable word is
drawn independently of the right form, so that it only determines the source word. The best model without context
answers every source word with its most frequent right form; its expected accuracy is the share of that form (Bayes
accuracy). Shares are counted on the train split; the largest of several counted shares is on average slightly above the
largest true share, so that the count is conservative.

On a finite split any guesser may exceed its expected accuracy. The words of one document share their deciding
sentences, so that their guesses are correlated, but documents are independent. ``upper_bound`` treats the words of a
document as one draw, the worst case: the split is worth ``(Σ m)² / Σ m²`` independent draws for m words per document,
and the bound is the accuracy that so many draws with the expected accuracy exceed with a probability below 0.1 %.
"""

import json
import math
import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth.documents import Case, Document, documents
from docnmt_fairseq.corpus.synth.language import SynthOptions, build_lexicon
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import folder_lock

LEXICON = "lexicon.json"  # written last: if it exists, the corpus is complete
SENTENCE_JOINT = " _eos "
CONTRASTIVE_SENTENCES = 4  # minimum, as in the consistency sets of Voita et al.
COLUMNS = ("line", "id", "position", "kind", "distance", "right", "wrong", "source_word")
LUCK = 0.001  # probability of exceeding the upper bound of an accuracy

Counts = Counter[Tuple[str, str, str]]  # of kind, source word, right form


@dataclass
class SplitReport:
    """Content of a split.

    Attributes:
        documents, sentences: numbers of documents and sentences.
        tokens, types: number of tokens and distinct words of source and target.
        words: undecidable words by kind.
        ceiling: best accuracy without context, see :func:`ceiling`; not for train.
    """

    documents: int = 0
    sentences: int = 0
    tokens: List[int] = field(default_factory=lambda: [0, 0])
    types: List[Set[str]] = field(default_factory=lambda: [set(), set()])
    words: Counter[str] = field(default_factory=Counter)
    ceiling: Dict[str, Any] = field(default_factory=dict)


def write_corpus(options: SynthOptions, output: Path) -> Dict[str, SplitReport]:
    """Writes the corpus of ``options`` to the folder ``output`` and returns the content of each split."""
    with folder_lock(output):
        (output / LEXICON).unlink(missing_ok=True)
        counts: Counts = Counter()
        reports = {split: _write_split(options, split, output, counts) for split in ("train", "valid", "test")}
        _write_json(output / LEXICON, {"options": asdict(options), **asdict(build_lexicon(options))})
    return reports


def _write_split(options: SynthOptions, split: str, folder: Path, counts: Counts) -> SplitReport:
    """Writes the files of a split. ``counts`` are the right forms of the train split, to which it adds its own."""
    report, rng = SplitReport(), random.Random(f"{options.seed}/{split}/contrastive")
    cases: List[List[Case]] = []  # by document
    contrastive: List[Dict[str, Any]] = []
    line = 0
    with ExitStack() as stack:
        paths = [folder / f"{split}.{language}" for language in (options.source_lang, options.target_lang)]
        streams = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        for document in documents(options, split):
            of_document: List[Case] = []
            for place, sentence in enumerate(document.sentences):
                if place > 0 and place in document.openings:
                    line += 1
                    for stream in streams:
                        stream.write(f"{PARAGRAPH}\n")
                if sentence.case is not None:
                    case = replace(sentence.case, id=line)
                    of_document.append(case)
                    report.words[case.kind] += 1
                    if split != "train":
                        contrastive.append(_contrast(document, place, case, rng))
                for side, words in enumerate((sentence.source, sentence.target)):
                    streams[side].write(" ".join(words) + "\n")
                    report.tokens[side] += len(words)
                    report.types[side].update(words)
                line += 1
            for stream in streams:
                stream.write(f"{DOCUMENT}\n")
            line += 1
            report.documents += 1
            report.sentences += len(document.sentences)
            if split == "train":
                counts.update((case.kind, case.source_word, case.right) for case in of_document)
            else:
                cases.append(of_document)
    if split != "train":
        report.ceiling = ceiling(counts, cases)
        write_cases(folder / f"{split}.phenomena.tsv", [case for of_document in cases for case in of_document])
        _write_json(folder / f"{split}.contrastive.json", contrastive)
        _write_json(folder / f"{split}.ceiling.json", report.ceiling)
    return report


def _contrast(document: Document, place: int, case: Case, rng: random.Random) -> Dict[str, Any]:
    """Returns the case with all its candidates, each in full context, in the format of Voita et al."""
    start = max(0, min(place - case.distance, place - CONTRASTIVE_SENTENCES + 1))
    shown = document.sentences[start : place + 1]
    # Random order, because scorers resolve ties in favour of the first candidate.
    candidates = rng.sample([case.right, *case.wrong], 1 + len(case.wrong))
    targets = []
    for candidate in candidates:
        words = list(shown[-1].target)
        words[case.position] = candidate
        targets.append(SENTENCE_JOINT.join(" ".join(s) for s in [*(s.target for s in shown[:-1]), words]))
    return {
        "src": SENTENCE_JOINT.join(" ".join(sentence.source) for sentence in shown),
        "dst": targets,
        "true_ind": candidates.index(case.right),
        "ctx_dist": case.distance,
        "kind": case.kind,
        "id": case.id,
    }


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Writes the table."""
    with path.open("w", encoding="utf-8") as file:
        print(*COLUMNS, sep="\t", file=file)
        for case in cases:
            wrong = " ".join(case.wrong)
            row = (case.id + 1, case.id, case.position, case.kind, case.distance, case.right, wrong, case.source_word)
            print(*row, sep="\t", file=file)


def read_cases(path: Path) -> List[Case]:
    """Reads a table written by :func:`write_cases`."""
    header, *lines = [*read_lines(path, strip="\r\n")] or [""]
    if header.split("\t") != list(COLUMNS):
        raise InputError.at(path, 1, f"expected the tab-separated header {' '.join(COLUMNS)}")
    cases = []
    for line in lines:
        _, index, position, kind, distance, right, wrong, word = line.split("\t")
        cases.append(Case(int(index), int(position), kind, int(distance), right, tuple(wrong.split()), word))
    return cases


def ceiling(counts: Counts, documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    """Returns the best accuracy without context on a split, by kind and overall.

    Args:
        counts: right forms of the train split.
        documents: cases of each document of the split.

    Returns:
        ``{"kinds": {kind: figures}, "overall": figures, "source_words": {word: share}}`` where figures are
        ``accuracy`` (expected at best), ``cases``, ``independent_draws`` and ``upper_bound``.
    """
    if not any(documents):
        raise InputError("--sentences-per-document: no document has room for an undecidable word; give larger numbers")
    forms: Dict[Tuple[str, str], List[int]] = {}
    for (kind, word, _), count in counts.items():
        forms.setdefault((kind, word), []).append(count)
    shares = {key: max(numbers) / sum(numbers) for key, numbers in forms.items()}
    for case in (case for document in documents for case in document):
        if (case.kind, case.source_word) not in shares:
            message = f"--train-documents: too few to contain the {case.kind} word '{case.source_word}'; give more"
            raise InputError(message)
    kinds = sorted({kind for kind, _ in shares})
    by_kind = {kind: [[case for case in document if case.kind == kind] for document in documents] for kind in kinds}
    return {
        "kinds": {kind: _figures(shares, cases) for kind, cases in by_kind.items() if any(cases)},
        "overall": _figures(shares, documents),
        "source_words": {word: share for (_, word), share in sorted(shares.items())},
    }


def _figures(shares: Mapping[Tuple[str, str], float], documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    from scipy.stats import binom

    expected = [shares[case.kind, case.source_word] for document in documents for case in document]
    accuracy = math.fsum(expected) / len(expected)
    sizes = [len(document) for document in documents]
    draws = max(1, sum(sizes) ** 2 // sum(size * size for size in sizes))
    return {
        "accuracy": accuracy,
        "cases": len(expected),
        "independent_draws": draws,
        "upper_bound": float(binom.ppf(1 - LUCK, draws, accuracy)) / draws,
    }
