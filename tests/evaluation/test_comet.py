import sys

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import comet
from docnmt_fairseq.evaluation.metrics.comet import CometOptions, load_model, with_context
from docnmt_fairseq.evaluation.score_report import ScoreOptions, build_report
from docnmt_fairseq.evaluation.tables import render
from docnmt_fairseq.evaluation.texts import References
from tests.support.comet import FakeModel, fake_package

SOURCE = [["s1", "s2", "s3", "s4"], ["s5"]]
REFERENCE = [["r1", "r2", "r3", "r4"], ["r5"]]
SYSTEMS = {"one": [["r1", "r2", "h3", "r4"], ["r5"]], "two": [["r1", "r2", "r3", "h4"], ["h5"]]}
REFERENCES = References(("ref", "ref2"), [REFERENCE, REFERENCE], SOURCE, [[1, 2, 3, 4], [6]])


def report(model, **options):
    options = ScoreOptions({"comet": CometOptions("fake", **options)}, tests=("documents",), samples=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comet, "load_model", lambda options: model)
        return build_report(REFERENCES, SYSTEMS, options)


def test_score_is_the_mean_of_sentences():
    model = FakeModel()
    found = report(model)
    (column,) = found.columns
    assert column.name == "COMET" and column.scores == {"one": 0.9, "two": 0.8}
    assert model.seen[0][2] == {"src": "s3", "mt": "h3", "ref": "r3"}
    assert column.signature.startswith("model:fake|context:0|ref:1 of 2|version:")
    assert "0.9000" in render(found.parts()) and "resampled:documents" in column.comparisons["documents"].signature


def test_context_from_the_reference():
    model = FakeModel()
    (column,) = report(model, comet_context=2).columns
    assert column.name == "doc-COMET" and column.scores == {"one": 0.9, "two": 0.8}
    one = model.seen[0]
    assert one[0] == {"src": "s1", "mt": "r1", "ref": "r1"}
    assert one[3] == {"src": "s2 </s> s3 </s> s4", "mt": "r2 </s> r3 </s> r4", "ref": "r2 </s> r3 </s> r4"}
    assert one[4] == {"src": "s5", "mt": "r5", "ref": "r5"}
    assert "context:2|context-from:reference" in column.signature


def test_context_from_the_translation():
    model = FakeModel()
    report(model, comet_context=1, comet_context_from="hypothesis")
    assert model.seen[0][3] == {"src": "s3 </s> s4", "mt": "h3 </s> r4", "ref": "r3 </s> r4"}
    assert with_context([["a", ""]], [["x", "y"]], 2, "|") == ["a", "x | "]


def test_model_by_name_or_file(monkeypatch, tmp_path):
    package = fake_package(FakeModel())
    monkeypatch.setitem(sys.modules, "comet", package)
    assert load_model(CometOptions("known")) is package.model and package.loaded == "downloaded"
    assert not package.model.use_context
    (tmp_path / "model.ckpt").write_text("")
    assert load_model(CometOptions(str(tmp_path / "model.ckpt"), comet_context=1)).use_context
    assert package.loaded == str(tmp_path / "model.ckpt")
    with pytest.raises(InputError, match="--comet other"):
        load_model(CometOptions("other"))
    package.model = FakeModel(can_use_context=False)
    with pytest.raises(InputError, match="--comet-context"):
        load_model(CometOptions("known", comet_context=2))
