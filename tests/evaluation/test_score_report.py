import json
import sys

import pytest
import sacrebleu.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation import metrics
from docnmt_fairseq.evaluation.metrics.bleu import BleuOptions
from docnmt_fairseq.evaluation.score_report import ScoreOptions, build_report
from docnmt_fairseq.evaluation.score_tables import as_markdown, as_text
from tests.support.scored import documents, made, reference_set, worse

METRICS = {
    "bleu": sacrebleu.metrics.BLEU,
    "chrf": sacrebleu.metrics.CHRF,
    "chrf++": lambda: sacrebleu.metrics.CHRF(word_order=2),
    "ter": sacrebleu.metrics.TER,
    "hter": lambda: sacrebleu.metrics.TER(case_sensitive=True),
}


def no_download(*_):
    raise OSError("no way there")


def told(*names):
    """Returns the metrics of these names, told nothing."""
    return {name: metrics.METRICS[name].Options() for name in names}


def by_name(report):
    return {column.name: column for column in report.columns}


@settings(max_examples=10, deadline=None)
@given(stream=documents, seed=st.integers(0, 99), count=st.integers(1, 3))
def test_scores_and_signatures_are_sacrebleus_on_both_levels(stream, seed, count):
    references = [stream, *(worse(stream, seed + i) for i in range(1, count))]
    systems = {"one": worse(stream, seed + 10), "two": worse(stream, seed + 11, 0.6)}
    found = build_report(reference_set(*references), systems, ScoreOptions(told(*METRICS)))
    names = ("BLEU", "chrF2", "chrF2++", "TER", "HTER")
    assert [c.name for c in found.columns] == [prefix + name for prefix in ("", "d-") for name in names]
    for column, (make, joined) in zip(found.columns, [(m, j) for j in (False, True) for m in METRICS.values()]):

        def laid_out(text, joined=joined):
            return [" ".join(one) for one in text] if joined else [sentence for one in text for sentence in one]

        for name, text in systems.items():
            metric = make()
            expected = metric.corpus_score(laid_out(text), [laid_out(one) for one in references])
            assert column.scores[name] == expected.score
        signature = str(metric.get_signature())
        assert column.signature == (
            signature.replace("|version", "|segments:documents|version") if joined else signature
        )


def test_documents_are_whole_however_long():
    stream = [["ba do gi ke lo"] * 400, ["mo nu pa re"]]
    found = build_report(reference_set(stream), {"x": [stream[0][::-1], stream[1]]}, ScoreOptions(told("bleu")))
    expected = sacrebleu.metrics.BLEU().corpus_score([" ".join(d) for d in stream], [[" ".join(d) for d in stream]])
    assert found.columns[1].scores["x"] == expected.score == pytest.approx(100)
    assert (found.documents, found.sentences) == (2, 401)


def test_sentences_in_another_order_count_on_one_level_only():
    stream = made()
    found = build_report(reference_set(stream), {"x": [text[::-1] for text in stream]}, ScoreOptions(told("bleu")))
    assert found.columns[0].scores["x"] < 60 < found.columns[1].scores["x"]


def test_options_of_bleu():
    stream, text = [["The dog.", "A cat ran"], ["x"]], [["the dog .", "A cat ran"], ["y"]]
    for options, expected in (
        (BleuOptions(tokenize="none", smooth="none"), sacrebleu.metrics.BLEU(tokenize="none", smooth_method="none")),
        (BleuOptions(tokenize="char"), sacrebleu.metrics.BLEU(tokenize="char")),
        (BleuOptions(lowercase=True, smooth="floor"), sacrebleu.metrics.BLEU(lowercase=True, smooth_method="floor")),
    ):
        found = build_report(reference_set(stream), {"x": text}, ScoreOptions({"bleu": options}, ("sentence",)))
        score = expected.corpus_score(["the dog .", "A cat ran", "y"], [["The dog.", "A cat ran", "x"]]).score
        assert found.columns[0].scores["x"] == score
        assert found.columns[0].signature == str(expected.get_signature())
    with pytest.raises(InputError, match="--tokenize moses: no such tokeniser; there are none, zh, 13a"):
        build_report(reference_set(stream), {"x": text}, ScoreOptions({"bleu": BleuOptions(tokenize="moses")}))


@pytest.mark.parametrize(
    ("name", "place", "value", "told"),
    [
        ("ja-mecab", "tokenizer_ja_mecab.MeCab", None, "Japanese tokenization requires extra dependencies"),
        ("flores200", "tokenizer_spm.download_file", no_download, "no way there"),
        ("flores200", None, None, "Please install the sentencepiece library"),
    ],
)
def test_tokenisers_that_lack_what_they_need(monkeypatch, tmp_path, name, place, value, told):
    __import__(f"sacrebleu.tokenizers.{'tokenizer_spm' if place is None else place.split('.')[0]}")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(tmp_path))
    if place is None:
        monkeypatch.setitem(sys.modules, "sentencepiece", None)
    else:
        monkeypatch.setattr(f"sacrebleu.tokenizers.{place}", value)
    with pytest.raises(InputError, match=f"^--tokenize {name}: .*{told}") as error:
        metrics.METRICS["bleu"](reference_set([["a"]]), BleuOptions(tokenize=name))
    assert "\n" not in str(error.value)


def test_empty_translations_are_scored_and_counted():
    stream = [["ba do gi ke", "lo mo"], ["nu pa"]]
    text = [["ba do gi ke", ""], [""]]
    found = build_report(reference_set(stream), {"x": text}, ScoreOptions())
    assert found.empty == {"x": 2} and "empty translations: 2 of x" in as_text(found)
    expected = sacrebleu.metrics.BLEU().corpus_score(["ba do gi ke", "", ""], [["ba do gi ke", "lo mo", "nu pa"]])
    assert found.columns[0].scores["x"] == expected.score


@pytest.fixture(scope="module")
def tested():
    stream = made()
    systems = {"base": worse(stream, 1, 0.4), "other": worse(stream, 2), "same": worse(stream, 1, 0.4)}
    tests = ("bootstrap", "randomisation", "documents")
    return build_report(
        reference_set(stream), systems, ScoreOptions(told("bleu", "ter"), tests=tests, samples=50, seed=3)
    )


def test_every_figure_has_its_signature(tested):
    text, markdown, values = as_text(tested), as_markdown(tested), tested.to_json()
    assert values["baseline"] == "base" and values["seed"] == 3
    read = json.loads(json.dumps(values))["scores"]
    for column in tested.columns:
        assert column.signature in text and f"- {column.name}: `{column.signature}`" in markdown
        for test, comparison in column.comparisons.items():
            assert "seed:3" in comparison.signature and "50" in comparison.signature
            assert ("resampled:documents" in comparison.signature) == (test == "documents")
            assert ("segments:documents" in comparison.signature) == (column.level == "document")
            assert comparison.signature in text and comparison.signature in markdown
            assert comparison.outcomes["same"].p_value == 1
    assert {one["metric"]: one["systems"] for one in read} == {c.name: c.scores for c in tested.columns}
    outcome = by_name(tested)["TER"].comparisons["bootstrap"].outcomes["other"]
    assert read[1]["tests"]["bootstrap"]["outcomes"]["other"]["mean"] == outcome.mean and read[1]["lower_is_better"]


def test_both_bootstraps_agree_on_scores_of_documents(tested):
    column = by_name(tested)["d-BLEU"]
    outcomes = [column.comparisons[test].outcomes["other"] for test in ("bootstrap", "documents")]
    assert outcomes[0].score == pytest.approx(outcomes[1].score) == pytest.approx(column.scores["other"])
    assert outcomes[0].difference == pytest.approx(outcomes[1].difference)


def test_tables(tested):
    lines = as_text(tested).split("\n")
    assert lines[0].startswith("6 documents, ") and lines[0].endswith(" sentences, 1 reference")
    assert lines[2].split() == ["system", "BLEU", "TER↓", "d-BLEU", "d-TER↓"]
    assert lines[3].split() == ["base", *(f"{column.scores['base']:.2f}" for column in tested.columns)]
    assert "paired bootstrap, 50 resamples of whole documents; against base" in lines
    assert "| metric | system | score | difference | p |" in as_markdown(tested).split("\n")
    row = next(line for line in as_markdown(tested).split("\n") if line.startswith("| BLEU | same |"))
    assert row.endswith("| +0.00 | 1.0000 |")
