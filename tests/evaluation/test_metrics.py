"""Contract of every registered metric, and a custom metric."""

import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.significance import TESTS
from docnmt_fairseq.evaluation.texts import References, at_level
from tests.support import comet, eflomal, meteor
from tests.support.scored import addressed, delimited, made, with_own_words, worse, write


@dataclass(frozen=True)
class Material:
    """Test set, systems and options of a metric; "base" is worse than "other"."""

    reference: list
    source: list
    systems: dict
    options: dict


REFERENCE, SOURCE = made(), worse(made(), 8, 1)
SYSTEMS = {"base": worse(REFERENCE, 1, 0.4), "other": worse(REFERENCE, 2)}
IN_REGISTER = {"base": addressed(SYSTEMS["base"], 3, 0.6), "other": addressed(SYSTEMS["other"], 4, 0.1)}
GERMAN = Material(addressed(REFERENCE), SOURCE, IN_REGISTER, {"register_language": "de"})
HE_AND_THEY = ("he", "they")
PRONOUNS = {
    "base": addressed(SYSTEMS["base"], 3, 0.6, HE_AND_THEY),
    "other": addressed(SYSTEMS["other"], 4, 0.1, HE_AND_THEY),
}
DEFAULT = Material(REFERENCE, SOURCE, SYSTEMS, {})
MATERIAL = {
    "comet": Material(REFERENCE, SOURCE, SYSTEMS, {"comet": "known"}),
    "lexical-consistency": Material(REFERENCE, with_own_words(REFERENCE), SYSTEMS, {}),
    "meteor": Material(REFERENCE, SOURCE, SYSTEMS, {"meteor": "meteor-1.5.jar"}),
    "pronoun-f1": Material(REFERENCE, SOURCE, SYSTEMS, {"pronouns": "ba,do,gi"}),
    "pronouns": Material(addressed(REFERENCE, words=HE_AND_THEY), SOURCE, PRONOUNS, {"marks": "marks.tsv"}),
    "register": GERMAN,
    "register-consistency": GERMAN,
    "register-of-all": GERMAN,
    "terms": Material(REFERENCE, REFERENCE, SYSTEMS, {"terms": "terms.tsv"}),
    "zero-pronouns": Material(
        addressed(REFERENCE, words=HE_AND_THEY), SOURCE, PRONOUNS, {"zero_pronouns": "zero_pronouns.tsv"}
    ),
}


@pytest.fixture(autouse=True)
def requirements(monkeypatch, tmp_path):
    """Fakes optional packages, and writes the files of options."""
    monkeypatch.setitem(sys.modules, "comet", comet.fake_package(comet.FakeModel()))
    eflomal.FakeEflomal(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    meteor.fake_program(tmp_path, monkeypatch)
    write(tmp_path / "terms.tsv", [f"{word}\t{word}" for word in ("ba", "do", "gi", "ke", "lo", "nu")])


def make(name, documents=range(6), level="sentence"):
    """Returns a metric on some documents of its test set, with two references."""
    given = MATERIAL.get(name, DEFAULT)
    references = [[stream[i] for i in documents] for stream in (given.reference, worse(given.reference, 9, 0.1))]
    lines, number = [], 1
    for sentences in references[0]:
        lines.append(list(range(number, number + len(sentences))))
        number += len(sentences) + 1
    if given.systems is PRONOUNS:  # marks of this selection of documents
        first = [sentence.split()[0] for document in references[0] for sentence in document]
        marked = list(zip((line - 1 for document in lines for line in document), first))
        write(Path("marks.tsv"), [f"{line}\t{word}" for line, word in marked])
        chinese = dict(zip(HE_AND_THEY, ("他", "他们")))
        write(Path("zero_pronouns.tsv"), [f"{line}\t0\t{chinese[word]}\tS" for line, word in marked])
    test_set = References(("one", "two"), references, [given.source[i] for i in documents], lines).at_level(level)
    return METRICS[name](test_set, METRICS[name].Options(**given.options))


LEVELS = [
    (name, level)
    for name in METRICS.names()
    for level in ("sentence", "document")
    if level == "sentence" or METRICS[name].scores_documents
]


@pytest.mark.parametrize("name, level", LEVELS)
def test_score_of_summed_rows_equals_score_of_the_documents(name, level):
    metric = make(name, level=level)
    other = MATERIAL.get(name, DEFAULT).systems["other"]
    rows = metric.statistics(at_level(other, level))
    counts = list(map(len, metric.test_set.lines))
    assert len(rows) == sum(counts) and len({len(row) for row in rows}) == 1
    assert metric.corpus_score(rows) == metric.score([sum(column) for column in zip(*rows)])
    chosen = [1, 3, 4]
    kept = [row for i in chosen for row in rows[sum(counts[:i]) : sum(counts[: i + 1])]]
    part = make(name, chosen, level)
    expected = part.corpus_score(part.statistics(at_level([other[i] for i in chosen], level)))
    assert metric.score([sum(column) for column in zip(*kept)]) == pytest.approx(expected, rel=1e-12)
    assert ("segments:documents" in metric.signature(more=1)) == (level == "document")
    assert "more:1" in metric.signature(more=1)


@pytest.mark.parametrize("name", METRICS.names())
def test_better_translations_score_better_in_every_test(name):
    metric, systems = make(name), MATERIAL.get(name, DEFAULT).systems
    statistics = {name: metric.statistics(stream) for name, stream in systems.items()}
    base, other = map(metric.corpus_score, statistics.values())
    assert base != other or not metric.measures_quality
    assert not metric.measures_quality or (other < base) == metric.lower_is_better
    for test in TESTS.names():
        found = TESTS[test]().compare(metric, statistics, 99, 3)
        assert found.outcomes["other"].p_value <= (0.05 if metric.measures_quality else 1)
        assert found.outcomes["other"].score == pytest.approx(other)
        assert ("seed:3" in found.signature and ":99" in found.signature) == (test != "signs")


def test_shared_options_are_declared_alike():
    known = {}
    for name in METRICS.names():
        for one in fields(METRICS[name].Options):
            first = known.setdefault(one.name, one)
            assert (one.type, one.default, one.metadata) == (first.type, first.default, first.metadata)


@pytest.mark.parametrize("name", [name for name in METRICS.names() if METRICS[name].needs_source])
def test_metrics_that_need_the_source(name):
    options = METRICS[name].Options(**MATERIAL[name].options)
    with pytest.raises(InputError):
        METRICS[name](References(("one",), [REFERENCE], None, []), options)


def test_default_statistics_use_all_references():
    class Words(Metric):
        def segment_statistics(self, translation, references):
            return [len(translation.split()), sum(len(one.split()) for one in references)]

    metric = Words(References(("one", "two"), [[["a b c", "d"]], [["a", "d e f"]]], None, []), MetricOptions())
    rows = metric.statistics([["x", "y z"]])
    assert rows == [[1, 4], [2, 4]] and metric.corpus_score(rows) == pytest.approx(100 * 3 / 8)
    assert metric.score([0, 0]) == 0


@pytest.mark.parametrize(
    "line, warned", [("雨季の一種である。", True), ("雨季 の 一種 で ある 。", False), ("rainy season", False)]
)
def test_bleu_warns_of_references_without_spaces(caplog, line, warned):
    references = References(("one",), [[[line]]], None, [])
    METRICS["bleu"](references, METRICS["bleu"].Options())
    assert ("no spaces between words" in caplog.text) == warned
    caplog.clear()
    METRICS["bleu"](references, METRICS["bleu"].Options(tokenize="char"))
    assert not caplog.records


def test_metric_selected_by_name_or_option(tmp_path, capsys):
    for name, stream in (("ref", REFERENCE), ("whole", worse(REFERENCE, 1)), ("source", SOURCE)):
        write(tmp_path / name, delimited(stream))

    def score(*arguments):
        texts = ["--reference", "ref", "--system", "whole=whole", "--source", "source", "--format", "json"]
        status = cli.main(["score", *texts, *arguments])
        found = capsys.readouterr()
        return [one["metric"] for one in json.loads(found.out)["scores"]] if status == 0 else found.err

    assert "--comet" in score("--metrics", "comet")
    assert score("--metrics", "comet", "--comet", "known") == ["COMET"]
    assert score("--level", "sentence", "--comet", "known") == ["BLEU", "chrF2", "COMET"]
    with pytest.raises(SystemExit):
        cli.main(["score", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert "hter: ter with case" in help_text and "--comet MODEL comet: name of a model" in help_text


def test_ter_of_long_segments_warns(caplog):
    for words, warned in ((300, False), (301, True)):
        METRICS["ter"](References((), [[["a " * words]]], None, [[1]]), METRICS["ter"].Options())
        assert ("--level sentence" in caplog.text) is warned
