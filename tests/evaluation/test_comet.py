"""COMET and doc-COMET with a fake package."""

import sys

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.comet import CometOptions, load_model, with_context
from docnmt_fairseq.evaluation.texts import References
from tests.support.comet import FakeModel, fake_package

SOURCE = [["s1", "s2", "s3", "s4"], ["s5"]]
REFERENCE = [["r1", "r2", "r3", "r4"], ["r5"]]
TRANSLATION = [["r1", "r2", "h3", "r4"], ["h5"]]
REFERENCES = References(("ref", "ref2"), [REFERENCE, REFERENCE], SOURCE, [[1, 2, 3, 4], [6]])


@pytest.fixture
def package(monkeypatch):
    found = fake_package(FakeModel())
    monkeypatch.setitem(sys.modules, "comet", found)
    return found


def scored(package, **options):
    metric = METRICS["comet"](REFERENCES, CometOptions("known", **options))
    score = metric.corpus_score(metric.statistics(TRANSLATION))
    return metric, score, package.model.seen[0]


def test_score_is_the_mean_of_sentences(package):
    metric, score, samples = scored(package)
    assert metric.name == "COMET" and score == 0.8
    assert samples[2] == {"src": "s3", "mt": "h3", "ref": "r3"}
    assert metric.signature().startswith("model:known|context:0|ref:1 of 2|version:")


def test_context_from_the_reference(package):
    metric, score, samples = scored(package, comet_context=2)
    assert metric.name == "doc-COMET" and score == 0.8
    assert samples[0] == {"src": "s1", "mt": "r1", "ref": "r1"}
    assert samples[3] == {"src": "s2 </s> s3 </s> s4", "mt": "r2 </s> r3 </s> r4", "ref": "r2 </s> r3 </s> r4"}
    assert samples[4] == {"src": "s5", "mt": "h5", "ref": "r5"}
    assert "context:2|context-from:reference" in metric.signature()


def test_context_from_the_translation(package):
    _, _, samples = scored(package, comet_context=1, comet_context_from="hypothesis")
    assert samples[3] == {"src": "s3 </s> s4", "mt": "h3 </s> r4", "ref": "r3 </s> r4"}
    assert with_context([["a", ""]], [["x", "y"]], 2, "|") == ["a", "x | "]


def test_model_by_name_or_file(package, tmp_path):
    assert load_model(CometOptions("known")) is package.model and package.loaded == "downloaded"
    assert not package.model.use_context
    (tmp_path / "model.ckpt").write_text("")
    assert load_model(CometOptions(str(tmp_path / "model.ckpt"), comet_context=1)).use_context
    assert package.loaded == str(tmp_path / "model.ckpt")
    package.model = FakeModel(can_use_context=False)
    with pytest.raises(InputError):
        load_model(CometOptions("known", comet_context=2))
