"""Every registered metric keeps its contract, and a metric is one class: what is registered here is scored."""

import json
import sys
from dataclasses import dataclass, fields

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.significance import TESTS
from docnmt_fairseq.evaluation.texts import References, at_level
from docnmt_fairseq.options import option
from tests.support import comet, eflomal
from tests.support.scored import addressed, delimited, made, with_own_words, worse, write


@dataclass(frozen=True)
class Material:
    """What a metric is tried on, and what it is told; "base" is worse than "other"."""

    reference: list
    source: list
    systems: dict
    options: dict


REFERENCE, SOURCE = made(), worse(made(), 8, 1)
SYSTEMS = {"base": worse(REFERENCE, 1, 0.4), "other": worse(REFERENCE, 2)}
IN_REGISTER = {"base": addressed(SYSTEMS["base"], 3, 0.6), "other": addressed(SYSTEMS["other"], 4, 0.1)}
GERMAN = Material(addressed(REFERENCE), SOURCE, IN_REGISTER, {"register_language": "de"})
MATERIAL = {  # of metrics that do not take everything, or must be told something
    "comet": Material(REFERENCE, SOURCE, SYSTEMS, {"comet": "known"}),
    "lexical-consistency": Material(REFERENCE, with_own_words(REFERENCE), SYSTEMS, {}),
    "pronouns": Material(REFERENCE, SOURCE, SYSTEMS, {"pronouns": "ba,do,gi"}),
    "register": GERMAN,
    "register-consistency": GERMAN,
    "register-of-all": GERMAN,
    "terms": Material(REFERENCE, REFERENCE, SYSTEMS, {"terms": "terms.tsv"}),
}
ANYTHING = Material(REFERENCE, SOURCE, SYSTEMS, {})


def material(name):
    return MATERIAL.get(name, ANYTHING)


@pytest.fixture(autouse=True)
def needed(monkeypatch, tmp_path):
    """Optional packages, and files that metrics are told of."""
    monkeypatch.setitem(sys.modules, "comet", comet.fake_package(comet.FakeModel()))
    monkeypatch.setitem(sys.modules, "eflomal", eflomal.fake_package())
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "terms.tsv", [f"{word}\t{word}" for word in ("ba", "do", "gi", "ke", "lo", "nu")])


def references_of(name, documents=range(6), level="sentence"):
    """Returns some documents of a metric's test set with two references."""
    given = material(name)
    references = [[stream[i] for i in documents] for stream in (given.reference, worse(given.reference, 9, 0.1))]
    lines, number = [], 1
    for sentences in references[0]:
        lines.append(list(range(number, number + len(sentences))))
        number += len(sentences) + 1
    return References(("one", "two"), references, [given.source[i] for i in documents], lines).at_level(level)


def make(name, *arguments):
    """Returns a metric that is told what it needs."""
    kind = METRICS[name]
    return kind(references_of(name, *arguments), kind.Options(**material(name).options))


LEVELS_OF = [
    (name, level)
    for name in METRICS.names()
    for level in ("sentence", "document")
    if level == "sentence" or METRICS[name].joins_documents
]


@pytest.mark.parametrize("name, level", LEVELS_OF)
def test_scores_are_made_of_sums_over_segments(name, level):
    metric = make(name, range(6), level)
    other = material(name).systems["other"]
    (rows,) = metric.statistics([at_level(other, level)])
    counts = list(map(len, metric.test_set.lines))
    assert len(rows) == sum(counts) and len({len(row) for row in rows}) == 1
    assert metric.corpus_score(rows) == metric.score([sum(column) for column in zip(*rows)])
    chosen = [1, 3, 4]
    kept = [row for i in chosen for row in rows[sum(counts[:i]) : sum(counts[: i + 1])]]
    part = make(name, chosen, level)
    expected = part.corpus_score(part.statistics([at_level([other[i] for i in chosen], level)])[0])
    assert metric.score([sum(column) for column in zip(*kept)]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", METRICS.names())
def test_the_better_translation_is_on_the_better_side(name):
    metric = make(name)
    base, other = (metric.corpus_score(rows) for rows in metric.statistics(list(material(name).systems.values())))
    assert not metric.judges or ((other < base) == metric.lower_is_better and other != base)


@pytest.mark.parametrize("name", METRICS.names())
def test_every_test_takes_every_metric(name):
    metric = make(name)
    systems = material(name).systems
    statistics = dict(zip(systems, metric.statistics(list(systems.values()))))
    for test in TESTS.names():
        found = TESTS[test]().compare(metric, statistics, 99, 3)
        assert found.outcomes["other"].p_value <= (0.05 if metric.judges else 1)
        assert found.outcomes["other"].score == pytest.approx(metric.corpus_score(statistics["other"]))
        draws = test != "signs"  # the only one that needs no chance
        assert ("seed:3" in found.signature and ":99" in found.signature) == draws


@pytest.mark.parametrize("name", METRICS.names())
def test_signatures_tell_levels_and_details(name):
    metric = make(name)
    assert "segments:documents" not in metric.signature() and "more:1" in metric.signature(more=1)
    if metric.joins_documents:
        assert "segments:documents" in make(name, range(6), "document").signature()


def test_options_of_one_name_are_the_same_option():
    known = {}
    for name in METRICS.names():
        for one in fields(METRICS[name].Options):
            first = known.setdefault(one.name, one)
            assert (one.type, one.default, one.metadata) == (first.type, first.default, first.metadata)


@dataclass(frozen=True)
class LengthOptions(MetricOptions):
    length_unit: str = option("word", "what is counted, e.g. a", metavar="WORD")
    length_target: int = option(100, "percent that are right", minimum=1)


class Length(Metric):
    """How far the translation's length is from the references', in percent of theirs."""

    title, help, Options = "length error", "how far off the length is", LengthOptions
    lower_is_better, decimals = True, 1

    def segment_statistics(self, translation, references):
        return [len(translation.split()), sum(len(one.split()) for one in references) / len(references)]

    def score(self, sums):
        return abs(100 * sums[0] / sums[1] - self.options.length_target)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shorter = [[s.rsplit(" ", 1)[0] for s in text] for text in REFERENCE]
    for name, stream in (("ref", REFERENCE), ("whole", worse(REFERENCE, 1)), ("short", shorter)):
        write(tmp_path / name, delimited(stream))
    monkeypatch.setattr(METRICS, "_classes", dict(METRICS._classes))
    METRICS.register("length")(Length)
    return tmp_path


def score(*arguments):
    return cli.main(["score", "--reference", "ref", "--system", "short=short", "--system", "whole=whole", *arguments])


def test_a_metric_is_one_class(folder, capsys):
    tests = ["--test", "documents", "bootstrap", "randomisation", "--samples", "99"]
    assert score("--metrics", "length", "--length-target", "101", *tests, "--format", "json") == 0
    columns = json.loads(capsys.readouterr().out)["scores"]
    assert [column["metric"] for column in columns] == ["length error", "d-length error"]
    words, sentences = (sum(len(f(text)) for text in REFERENCE) for f in (lambda text: " ".join(text).split(), list))
    for column in columns:
        assert column["lower_is_better"] and column["systems"]["whole"] == pytest.approx(1)
        assert column["systems"]["short"] == pytest.approx(1 + 100 * sentences / words)
        for test in ("documents", "bootstrap", "randomisation"):
            outcome = column["tests"][test]["outcomes"]["whole"]
            assert outcome["difference"] == pytest.approx(-100 * sentences / words) and outcome["p_value"] <= 0.05
        assert "nrefs:1|length_unit:word|length_target:101|bs:99|" in column["tests"]["documents"]["signature"]
    assert score("--metrics", "length", "--level", "sentence") == 0
    table = capsys.readouterr().out
    assert "length error↓" in table and "nrefs:1|length_unit:word|length_target:100|docnmt_fairseq:" in table


def test_a_segment_is_scored_by_all_references():
    references = References(("one", "two"), [[["a b c", "d"]], [["a", "d e f"]]], None, [])
    assert Length(references, LengthOptions()).statistics([[["x", "y z"]]]) == [[[1, 2], [2, 2]]]


def test_its_options_are_flags_with_checks_and_help(folder, capsys):
    assert score("--metrics", "bleu", "--length-target", "0") == 2
    assert "--length-target 0: must be at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["score", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "length: how far off the length is" in shown and "--length-unit WORD length: what is counted" in shown


@pytest.mark.parametrize("name", [name for name in METRICS.names() if METRICS[name].needs_source])
def test_a_metric_that_reads_the_source_asks_for_it(name):
    kind = METRICS[name]
    with pytest.raises(InputError, match=f"{kind.title} reads the source, too: give --source"):
        kind(References(("one",), [REFERENCE], None, []), kind.Options(**material(name).options))


def test_metrics_are_tried_on_text_that_they_count():
    for name in MATERIAL:
        metric = make(name)
        low, high = (metric.corpus_score(rows) for rows in metric.statistics(list(material(name).systems.values())))
        assert 0 < low < high < 100


def test_comet_by_its_name_needs_a_model(folder, capsys):
    write(folder / "source", delimited(SOURCE))
    assert score("--metrics", "comet", "--source", "source") == 2
    assert "--metrics comet: which model? Give --comet MODEL" in capsys.readouterr().err
    assert score("--metrics", "comet", "--source", "source", "--comet", "known") == 0
    assert "BLEU" not in capsys.readouterr().out
