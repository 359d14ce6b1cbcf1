"""Register rules on a real test set with independent labels (folder ``en-de-manuals`` of DOCNMT_SHARED_DATA).

``register_by_reading.tsv`` has the manual annotation of 100 lines of test.de with any form of the second person: line
from 0, and du, Sie, ihr (several people, neither register), or none (Sie is "she" or "they", Ihr "its").
"""

import os
import random
from pathlib import Path

import pytest

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.evaluation.texts import read_references, segments

MANUALS = Path(os.environ.get("DOCNMT_SHARED_DATA", "")) / "en-de-manuals"
ANNOTATION = Path(__file__).with_name("register_by_reading.tsv")

pytestmark = pytest.mark.skipif(not MANUALS.exists(), reason="no en-de-manuals in DOCNMT_SHARED_DATA")


def read_rows(path):
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {int(line): register for line, register in rows}


def score_of(name, references, streams, **options):
    kind = METRICS[name]
    metric = kind(references, kind.Options(register_language="de", **options))
    return [metric.corpus_score(metric.statistics(stream)) for stream in streams]


@pytest.mark.parametrize("split", ["test", "unseen", "valid"])
def test_labels_and_scores_of_references(split):
    path = MANUALS / f"{split}.de"
    rule, lines = RULES["de"](), path.read_text(encoding="utf-8").split("\n")
    found = {i: rule.register_of(line, unambiguous_only=True) for i, line in enumerate(lines)}
    labels = path.with_suffix(".register.tsv")
    assert {i: register for i, register in found.items() if register} == read_rows(labels)

    references = read_references([path])
    sentences = segments(references.streams[0])
    random.Random(1).shuffle(sentences)
    rest = iter(sentences)
    shuffled = [[next(rest) for _ in document] for document in references.streams[0]]
    streams = [references.streams[0], shuffled]
    perfect, by_chance = score_of("register", references, streams, register_labels=str(labels))
    counts = [list(read_rows(labels).values()).count(one) for one in ("du", "Sie")]
    chance = 100 * max(counts) / sum(counts)
    assert perfect == 100 and 100 - chance - 10 < by_chance < chance + 10
    consistent, mixed = score_of("register-consistency", references, streams)
    assert consistent > 80 > 60 > mixed


def test_agreement_with_manual_annotation():
    rule, lines = RULES["de"](), (MANUALS / "test.de").read_text(encoding="utf-8").split("\n")
    annotated = {line: one if one in rule.markers else None for line, one in read_rows(ANNOTATION).items()}

    def agreement(unambiguous_only):
        found = {i: rule.register_of(lines[i], unambiguous_only=unambiguous_only) for i in annotated}
        return sum(found[i] == register for i, register in annotated.items())

    assert len(annotated) == 100 and agreement(True) >= 97 and agreement(False) >= 95
