"""``docnmt contrast`` on tiny models."""

import json

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.evaluation.contrast.ctxpro import translate
from docnmt_fairseq.evaluation.contrast.items import GenerationItem, ItemDocument
from tests.support import toy
from tests.support.documents import DOCUMENTS

TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]


@pytest.fixture(scope="module", params=["conditional", "target"])
def trained(request, data_bin, tmp_path_factory):
    arguments = TARGET if request.param == "target" else ["--context-attention", "conditional"]
    return toy.train(data_bin, tmp_path_factory.mktemp(request.param), *arguments, "--max-update", "60")


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
    for chosen in (range(len(items)), [3, 5, 10]):
        for max_tokens in (12, 4000):
            found = translate([items[one] for one in chosen], loaded, codec, search, max_tokens)
            assert found == [expected[numbers[one]][0] for one in chosen]


def voita_set(folder):
    sets = [
        {"src": "a b _eos d", "dst": ["b a _eos d", "b a _eos c"], "true_ind": 0, "ctx_dist": 1},
        {"src": "c _eos e a", "dst": ["c _eos e a", "c _eos a e"], "true_ind": 1, "ctx_dist": 1},
    ]
    path = folder / "set.json"
    path.write_text(json.dumps(sets), encoding="utf-8")
    return path


@pytest.mark.slow
def test_reports(data_bin, trained, tmp_path, capsys):
    command = ["contrast", "--set", "voita", "--items", str(voita_set(tmp_path)), "--data", str(data_bin), "--cpu"]
    command += ["--path", str(trained)]
    assert main(command) == 0
    assert "95 % interval" in capsys.readouterr().out
    assert main([*command, "--format", "json", "--output", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["overall"]["items"] == 2 and len(report["answers"][0]["scores"]) == 2
    assert main([*command, "--normalise", "--format", "markdown"]) == 0
    assert "**By distance**" in capsys.readouterr().out


def ctxpro_command(folder):
    entries = [
        {"src segment": "a b c", "expected": "b", "rule": "r"},
        {"src segment": "d", "expected": "e", "rule": "s"},
    ]
    (folder / "set.json").write_text(json.dumps(entries), encoding="utf-8")
    (folder / "inputs").write_text("c<eos> a b c\nd\n", encoding="utf-8")
    files = ["--items", str(folder / "set.json"), "--inputs", str(folder / "inputs")]
    return ["contrast", "--set", "ctxpro", *files, "--format", "json"]


@pytest.mark.slow
def test_ctxpro_with_a_model(data_bin, trained, tmp_path, capsys):
    options = ["--path", str(trained), "--data", str(data_bin), "--cpu", "--max-len-b", "8"]
    assert main([*ctxpro_command(tmp_path), *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["overall"]["chance"] is None and list(report["groups"]["rule"]) == ["r", "s"]


@pytest.mark.parametrize(
    "translations, outcomes",
    [
        ("c, B!\nd\n", ["right", "wrong"]),
        ("B <eos> c\nd\n", ["wrong", "wrong"]),
        ("B! C\nd. E.\n", ["wrong", "right"]),  # the second item has no context, so all sentences count
    ],
)
def test_ctxpro_with_translations(tmp_path, capsys, translations, outcomes):
    path = tmp_path / "translations"
    path.write_text(translations, encoding="utf-8")
    assert main([*ctxpro_command(tmp_path), "--translations", str(path)]) == 0
    assert [one["outcome"] for one in json.loads(capsys.readouterr().out)["answers"]] == outcomes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--path", "none.pt", "--data", "none"], "none"),
        (["--path", "none.pt"], "--data"),
        (["--translations", "x"], "--translations"),
        (["--bootstrap-samples", "0"], "--bootstrap-samples 0"),
        (["--seed", "-1"], "--seed -1"),
        (["--path", "none.pt", "--data", "none", "--max-tokens", "0"], "--max-tokens 0"),
    ],
)
def test_bad_options(tmp_path, capsys, arguments, message):
    assert main(["contrast", "--set", "voita", "--items", str(voita_set(tmp_path)), *arguments]) == 2
    assert message in capsys.readouterr().err
