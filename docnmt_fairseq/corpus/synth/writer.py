"""Writes an artificial corpus: delimited text, tables of undecidable words, contrastive sets, ceilings, lexicon."""

import json
import os
import random
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Set

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH
from docnmt_fairseq.corpus.synth.cases import Case, Counts, ceiling, count_forms, write_cases
from docnmt_fairseq.corpus.synth.documents import Document, documents
from docnmt_fairseq.corpus.synth.language import SynthOptions, build_lexicon
from docnmt_fairseq.files import atomic_folder, folder_lock

LEXICON = "lexicon.json"  # written last: if it exists, the corpus is complete
SENTENCE_JOINT = " _eos "
CONTRASTIVE_SENTENCES = 4  # minimum, as in the consistency sets of Voita et al.


@dataclass
class SplitReport:
    """Content of a split.

    Attributes:
        documents, sentences: numbers of documents and sentences.
        tokens, types: number of tokens and distinct words of source and target.
        words: undecidable words by kind.
        ceiling: best accuracy without context, see :func:`~docnmt_fairseq.corpus.synth.cases.ceiling`; not for train.
    """

    documents: int = 0
    sentences: int = 0
    tokens: List[int] = field(default_factory=lambda: [0, 0])
    types: List[Set[str]] = field(default_factory=lambda: [set(), set()])
    words: Counter[str] = field(default_factory=Counter)
    ceiling: Dict[str, Any] = field(default_factory=dict)


def write_corpus(options: SynthOptions, output: Path) -> Dict[str, SplitReport]:
    """Writes the corpus of ``options`` to the folder ``output`` and returns the content of each split.

    Files appear in ``output`` only when all of them are complete, the lexicon last; those of an earlier corpus are
    replaced.

    Raises:
        InputError: the train split is too small to measure the ceiling on; the folder cannot be written, or another
            process is writing to it.
    """
    complete = output / ".complete"
    with folder_lock(output):
        try:
            with atomic_folder(complete) as folder:
                counts: Counts = Counter()
                reports = {split: _write_split(options, split, folder, counts) for split in ("train", "valid", "test")}
                _write_json(folder / LEXICON, {"options": asdict(options), **build_lexicon(options).to_json()})
            (output / LEXICON).unlink(missing_ok=True)
            for name in sorted(os.listdir(complete), key=lambda name: (name == LEXICON, name)):
                os.replace(complete / name, output / name)
        finally:
            shutil.rmtree(complete, ignore_errors=True)
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
                count_forms(counts, of_document)
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
