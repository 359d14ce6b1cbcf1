"""Register over a real test set with labels by another program; skipped where it is not there (DOCNMT_SHARED_DATA).

``register_by_reading.tsv`` is what a reader said of 100 lines of test.de, drawn from those with any form of the second
person, capital Sie and Ihr at the beginning of sentences among them: line from 0, and du, Sie, ihr (several people are
addressed, which is neither), or none (Sie is "she" or "they", Ihr "its").
"""

import os
import random
from pathlib import Path

import pytest

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.register import RULES
from docnmt_fairseq.evaluation.texts import read_references, segments

SHARED = Path(os.environ.get("DOCNMT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
MANUALS = SHARED / "en-de-manuals"
BY_READING = Path(__file__).with_name("register_by_reading.tsv")


def rows_of(path):
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {int(line): register for line, register in rows}


@pytest.fixture(params=["test", "unseen", "valid"])
def part(request):
    path = MANUALS / f"{request.param}.de"
    if not path.exists():
        pytest.skip("no en-de-manuals in the shared data (DOCNMT_SHARED_DATA)")
    return path


def test_sure_marks_are_the_labels(part):
    rule, lines = RULES["de"](), part.read_text(encoding="utf-8").split("\n")
    found = {i: rule.register_of(line, sure_only=True) for i, line in enumerate(lines)}
    assert {i: register for i, register in found.items() if register} == rows_of(part.with_suffix(".register.tsv"))


def score_of(name, references, streams, **options):
    kind = METRICS[name]
    metric = kind(references, kind.Options(register_language="de", **options))
    return [metric.corpus_score(rows) for rows in metric.statistics(streams)]


def test_references_are_right_and_shuffled_ones_about_as_good_as_chance(part):
    references = read_references([part])
    sentences = segments(references.streams[0])
    random.Random(1).shuffle(sentences)
    rest = iter(sentences)
    shuffled = [[next(rest) for _ in document] for document in references.streams[0]]
    streams = [references.streams[0], shuffled]
    labels = {"register_labels": str(part.with_suffix(".register.tsv"))}
    perfect, by_chance = score_of("register", references, streams, **labels)
    shares = [list(rows_of(Path(labels["register_labels"])).values()).count(one) for one in ("du", "Sie")]
    chance = 100 * max(shares) / sum(shares)
    assert perfect == 100 and 100 - chance - 10 < by_chance < chance + 10
    perfect, by_chance = score_of("register-of-all", references, streams, **labels)
    assert perfect == 100 and by_chance < 20  # most other lines show nothing
    itself, mixed = score_of("register-consistency", references, streams)
    assert itself > 80 > 60 > mixed


def test_the_rule_agrees_with_a_reader():
    if not MANUALS.exists():
        pytest.skip("no en-de-manuals in the shared data (DOCNMT_SHARED_DATA)")
    rule, lines = RULES["de"](), (MANUALS / "test.de").read_text(encoding="utf-8").split("\n")
    read = {line: register if register in rule.marks else None for line, register in rows_of(BY_READING).items()}
    agree = {
        sure_only: sum(rule.register_of(lines[i], sure_only=sure_only) == register for i, register in read.items())
        for sure_only in (True, False)
    }
    assert len(read) == 100 and agree[True] >= 97  # 98: two polite sentences that begin with Sie or Ihr are left open
    assert agree[False] >= 95  # 95: three times "she" or "they", once "its", once the plural, at the beginning
