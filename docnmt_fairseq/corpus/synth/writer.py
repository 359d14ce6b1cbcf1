"""Writes an artificial corpus: delimited text, tables of undecidable words, contrastive sets, ceilings, lexicon."""

import json
import os
import random
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, TextIO

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH
from docnmt_fairseq.corpus.synth.cases import Case, Counts, ceiling, count_forms, write_cases
from docnmt_fairseq.corpus.synth.documents import Document, documents
from docnmt_fairseq.corpus.synth.language import SynthOptions, build_lexicon
from docnmt_fairseq.files import atomic_folder, folder_lock

SPLITS = ("train", "valid", "test")
LEXICON = "lexicon.json"  # appears last: where it is, the corpus is whole
SENTENCE_JOINT = " _eos "
# As in the consistency sets of Voita et al.: never fewer than four sentences where the document has them.
CONTRASTIVE_SENTENCES = 4


@dataclass
class SplitStatistics:
    """What a split holds; ``words`` by kind counts undecidable words."""

    documents: int = 0
    sentences: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    source_types: Set[str] = field(default_factory=set)
    target_types: Set[str] = field(default_factory=set)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, document: Document) -> None:
        """Counts one more document."""
        self.documents += 1
        for sentence in document.sentences:
            self.sentences += 1
            self.source_tokens += len(sentence.source)
            self.target_tokens += len(sentence.target)
            self.source_types.update(sentence.source)
            self.target_types.update(sentence.target)
            if sentence.case is not None:
                self.words[sentence.case.kind] += 1


@dataclass
class CorpusReport:
    """What ``write_corpus`` wrote: statistics by split, ceilings of valid and test, and the files."""

    statistics: Dict[str, SplitStatistics]
    ceilings: Dict[str, Dict[str, Any]]
    files: List[Path]


def write_corpus(options: SynthOptions, output: Path) -> CorpusReport:
    """Writes the corpus of ``options`` into the folder ``output`` and returns what it holds.

    Documents are written as they are made, so that memory does not grow with the train split. Files appear in
    ``output`` only when all of them are complete, the lexicon last; those of an earlier corpus are replaced.

    Raises:
        InputError: the train split is too small to measure the ceiling on; the folder cannot be written, or another
            process writes it.
    """
    complete = output / ".complete"
    with folder_lock(output):
        try:
            with atomic_folder(complete) as folder:
                report = _write(options, folder)
            report.files = [output / path.name for path in sorted(complete.iterdir())]
            (output / LEXICON).unlink(missing_ok=True)
            for path in sorted(report.files, key=lambda path: path.name == LEXICON):
                os.replace(complete / path.name, path)
        finally:
            shutil.rmtree(complete, ignore_errors=True)
    return report


def _write(options: SynthOptions, folder: Path) -> CorpusReport:
    report = CorpusReport({}, {}, [])
    counts: Counts = Counter()
    for split in SPLITS:
        writer = _SplitWriter(options, split, folder)
        cases = writer.write(counts if split == "train" else None)
        report.statistics[split] = writer.statistics
        if split == "train":
            continue
        write_cases(folder / f"{split}.phenomena.tsv", [case for document in cases for case in document])
        _write_json(folder / f"{split}.contrastive.json", writer.contrastive)
        report.ceilings[split] = ceiling(counts, cases)
        _write_json(folder / f"{split}.ceiling.json", report.ceilings[split])
    _write_json(folder / LEXICON, {"options": asdict(options), **build_lexicon(options).to_json()})
    return report


class _SplitWriter:
    """Writes the two texts of one split and keeps the cases of an evaluation split."""

    def __init__(self, options: SynthOptions, split: str, folder: Path) -> None:
        self._options, self._split = options, split
        self._paths = [folder / f"{split}.{lang}" for lang in (options.source_lang, options.target_lang)]
        self._rng = random.Random(f"{options.seed}/{split}/contrastive")
        self._line = 0
        self.statistics = SplitStatistics()
        self.contrastive: List[Dict[str, Any]] = []

    def write(self, counts: Optional[Counts]) -> List[List[Case]]:
        """The cases by document; none with ``counts``, to which they are only added."""
        kept: List[List[Case]] = []
        with self._paths[0].open("w", encoding="utf-8") as source, self._paths[1].open("w", encoding="utf-8") as target:
            for document in documents(self._options, self._split):
                self.statistics.add(document)
                cases = self._write_document(document, source, target)
                if counts is not None:
                    count_forms(counts, cases)
                    continue
                kept.append(cases)
        return kept

    def _write_document(self, document: Document, source: TextIO, target: TextIO) -> List[Case]:
        cases = []
        for place, sentence in enumerate(document.sentences):
            if place > 0 and place in document.openings:
                self._write_lines(PARAGRAPH, PARAGRAPH, source, target)
            if sentence.case is not None:
                case = replace(sentence.case, id=self._line)
                cases.append(case)
                if self._split != "train":
                    self.contrastive.append(self._contrast(document, place, case))
            self._write_lines(" ".join(sentence.source), " ".join(sentence.target), source, target)
        self._write_lines(DOCUMENT, DOCUMENT, source, target)
        return cases

    def _write_lines(self, source_line: str, target_line: str, source: TextIO, target: TextIO) -> None:
        source.write(source_line + "\n")
        target.write(target_line + "\n")
        self._line += 1

    def _contrast(self, document: Document, place: int, case: Case) -> Dict[str, Any]:
        """The case with all its candidates, each in full context, in the format of Voita et al."""
        start = max(0, min(place - case.distance, place - CONTRASTIVE_SENTENCES + 1))
        shown = document.sentences[start : place + 1]
        # In drawn order: a scorer that ties, and then takes the first, must not be right.
        candidates = self._rng.sample([case.right, *case.wrong], 1 + len(case.wrong))
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
