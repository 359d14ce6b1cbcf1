"""``docnmt contrast`` on tiny models."""

import json

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.evaluation.contrast.ctxpro import translate
from docnmt_fairseq.evaluation.contrast.items import GenerationItem, ItemDocument
from tests.support import toy
from tests.support.documents import DOCUMENTS

TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]
VOITA = [
    {"src": "a b _eos d", "dst": ["b a _eos d", "b a _eos c"], "true_ind": 0, "ctx_dist": 1},
    {"src": "c _eos e a", "dst": ["c _eos e a", "c _eos a e"], "true_ind": 1, "ctx_dist": 1},
]
CTXPRO = [
    {"src segment": "a b c", "expected": "b", "rule": "r"},
    {"src segment": "d", "expected": "e", "rule": "s"},
]


@pytest.fixture(scope="module", params=["conditional", "target"])
def trained(request, data_bin, tmp_path_factory):
    arguments = TARGET if request.param == "target" else ["--context-attention", "conditional"]
    return toy.train(data_bin, tmp_path_factory.mktemp(request.param), *arguments, "--max-update", "40")


@pytest.fixture
def contrast(tmp_path, capsys):
    """Returns a function that runs the command on a set and returns the JSON report."""
    (tmp_path / "voita").write_text(json.dumps(VOITA), encoding="utf-8")
    (tmp_path / "ctxpro").write_text(json.dumps(CTXPRO), encoding="utf-8")
    (tmp_path / "inputs").write_text("c<eos> a b c\nd\n", encoding="utf-8")

    def run(kind, *options):
        options += ("--inputs", str(tmp_path / "inputs")) if kind == "ctxpro" else ()
        command = ["contrast", "--set", kind, "--items", str(tmp_path / kind), "--format", "json", *options]
        return json.loads(capsys.readouterr().out) if main(command) == 0 else capsys.readouterr().err

    return run


@pytest.mark.slow
def test_translations_equal_fairseq_generate(data_bin, trained):
    from fairseq.dataclass.configs import GenerationConfig

    expected = toy.generate(data_bin, trained, "--beam", "3", "--max-len-b", "10").hypotheses
    items, numbers, line = [], [], 0
    for name, paragraphs in enumerate(DOCUMENTS["test"]):
        lines = [one for place, part in enumerate(paragraphs) for one in [*(["<p>"] if place else []), *part]]
        document = ItemDocument(str(name), tuple(lines))
        for place, sentence in enumerate(lines):
            if sentence != "<p>":
                items.append(GenerationItem("i", document, place, "a"))
                numbers.append(line + place)
        line += len(lines) + 1
    search = GenerationConfig(beam=3, max_len_b=10)
    loaded, codec = load_ensemble(trained, data=data_bin), TextCodec(data_bin)
    for chosen, max_tokens in ((range(len(items)), 4000), ([3, 5, 10], 12)):
        found = translate([items[one] for one in chosen], loaded, codec, search, max_tokens)
        assert found == [expected[numbers[one]][0] for one in chosen]


@pytest.mark.slow
def test_reports_of_models(data_bin, trained, contrast):
    model = ["--path", str(trained), "--data", str(data_bin), "--cpu"]
    report = contrast("voita", *model)
    assert report["overall"]["items"] == 2 and len(report["answers"][0]["scores"]) == 2
    normalised = contrast("voita", *model, "--normalise")["answers"][0]["scores"]
    assert normalised != report["answers"][0]["scores"]
    report = contrast("ctxpro", *model, "--max-len-b", "8")
    assert report["overall"]["chance"] is None and list(report["groups"]["rule"]) == ["r", "s"]


def test_ctxpro_with_translations(tmp_path, contrast):
    (tmp_path / "translations").write_text("B! C\nd. E.\n", encoding="utf-8")
    report = contrast("ctxpro", "--translations", str(tmp_path / "translations"))
    # The second item has no context, so all sentences count.
    assert [one["outcome"] for one in report["answers"]] == ["wrong", "right"]


def test_items_of_another_language_are_reported(data_bin, trained, contrast, tmp_path, caplog):
    model = ["--path", str(trained), "--data", str(data_bin), "--cpu"]
    contrast("voita", *model)
    assert "unknown" not in caplog.text
    other = [{"src": "le chat _eos il", "dst": ["a b _eos il", "a b _eos elle"], "true_ind": 0}]
    (tmp_path / "voita").write_text(json.dumps(other), encoding="utf-8")
    contrast("voita", *model)
    assert "src tokens are unknown to the model; its languages are src to tgt" in caplog.text
    assert "tgt tokens are unknown" in caplog.text
