import sys
from types import ModuleType, SimpleNamespace

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.comet import CometOptions, load_model, with_context
from docnmt_fairseq.evaluation.score_report import ScoreOptions, build_report
from docnmt_fairseq.evaluation.score_tables import as_text
from docnmt_fairseq.evaluation.texts import References

SOURCE = [["s1", "s2", "s3", "s4"], ["s5"]]
REFERENCE = [["r1", "r2", "r3", "r4"], ["r5"]]
SYSTEMS = {"one": [["r1", "r2", "h3", "r4"], ["r5"]], "two": [["r1", "r2", "r3", "h4"], ["h5"]]}
REFERENCES = References(("ref", "ref2"), [REFERENCE, REFERENCE], SOURCE, [[1, 2, 3, 4], [6]])


class FakeModel:
    """Scores 1 where the last sentence of translation and reference are the same, else 0.5."""

    def __init__(self, can_use_context=True):
        self.encoder = SimpleNamespace(tokenizer=SimpleNamespace(sep_token="</s>"))
        self.can_use_context, self.use_context, self.seen = can_use_context, False, []

    def enable_context(self):
        self.use_context = self.can_use_context

    def predict(self, samples, batch_size, gpus, progress_bar):
        self.seen.append(samples)
        last = [(one["mt"].split(" </s> ")[-1], one["ref"].split(" </s> ")[-1]) for one in samples]
        return SimpleNamespace(scores=[1.0 if mt == ref else 0.5 for mt, ref in last])


def report(model, **options):
    comet = CometOptions("fake", **options)
    return build_report(REFERENCES, SYSTEMS, ScoreOptions((), tests=("documents",), samples=9, comet=comet), model)


@pytest.fixture
def package(monkeypatch):
    """Returns a package comet that knows one model."""
    found = ModuleType("comet")
    found.model = FakeModel()

    def download_model(name):
        if name != "known":
            raise KeyError(f"Model '{name}' not supported by COMET.")
        return "downloaded"

    def load_from_checkpoint(path):
        found.loaded = path
        return found.model

    found.download_model, found.load_from_checkpoint = download_model, load_from_checkpoint
    monkeypatch.setitem(sys.modules, "comet", found)
    return found


def test_plain_scores_are_means_over_sentences():
    model = FakeModel()
    (column,) = report(model).columns
    assert column.name == "COMET" and column.scores == {"one": 0.9, "two": 0.8}
    assert model.seen[0][2] == {"src": "s3", "mt": "h3", "ref": "r3"}
    assert column.signature.startswith("model:fake|context:0|ref:1 of 2|version:")
    assert "0.9000" in as_text(report(model)) and "resampled:documents" in column.comparisons["documents"].signature


def test_context_is_of_the_document_and_from_the_reference_as_in_the_paper():
    model = FakeModel()
    (column,) = report(model, context=2).columns
    assert column.name == "doc-COMET" and column.scores == {"one": 0.9, "two": 0.8}
    one = model.seen[0]
    assert one[0] == {"src": "s1", "mt": "r1", "ref": "r1"}
    assert one[3] == {"src": "s2 </s> s3 </s> s4", "mt": "r2 </s> r3 </s> r4", "ref": "r2 </s> r3 </s> r4"}
    assert one[4] == {"src": "s5", "mt": "r5", "ref": "r5"}
    assert "context:2|context-from:reference" in column.signature


def test_context_from_the_translation_itself():
    model = FakeModel()
    report(model, context=1, context_from="hypothesis")
    assert model.seen[0][3] == {"src": "s3 </s> s4", "mt": "h3 </s> r4", "ref": "r3 </s> r4"}


def test_an_empty_translation_keeps_its_context():
    assert with_context([["a", ""]], [["x", "y"]], 2, "|") == ["a", "x | "]


def test_model_by_name_or_file(package, tmp_path):
    assert load_model(CometOptions("known")) is package.model and package.loaded == "downloaded"
    assert not package.model.use_context
    (tmp_path / "model.ckpt").write_text("")
    assert load_model(CometOptions(str(tmp_path / "model.ckpt"), context=1)).use_context
    assert package.loaded == str(tmp_path / "model.ckpt")


def test_what_is_missing_is_said(package, monkeypatch):
    with pytest.raises(InputError, match=r"--comet other: cannot be loaded: .*not supported"):
        load_model(CometOptions("other"))
    package.model = FakeModel(can_use_context=False)
    with pytest.raises(InputError, match="--comet-context: known cannot use context"):
        load_model(CometOptions("known", context=2))
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(InputError, match=r"--comet needs the package unbabel-comet .*docnmt_fairseq\[comet\]"):
        load_model(CometOptions("known"))
