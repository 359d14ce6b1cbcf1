"""``docnmt contrast`` on tiny models: reports, translations in the place of a model, and options that do not fit."""

import json

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.evaluation.contrast.generating import translate
from docnmt_fairseq.evaluation.contrast.items import Document, GenerationItem
from tests.support import toy
from tests.support.documents import DOCUMENTS

TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]


@pytest.fixture(scope="module", params=["conditional", "target"])
def trained(request, data_bin, tmp_path_factory):
    arguments = TARGET if request.param == "target" else ["--context-attention", "conditional"]
    return toy.train(data_bin, tmp_path_factory.mktemp(request.param), *arguments, "--max-update", "60")


def test_translations_are_those_of_fairseq_generate(data_bin, trained):
    from fairseq.dataclass.configs import GenerationConfig

    expected = toy.generate(data_bin, trained, "--beam", "3", "--max-len-b", "10").hypotheses
    items, numbers, line = [], [], 0
    for name, paragraphs in enumerate(DOCUMENTS["test"]):
        lines = [one for place, part in enumerate(paragraphs) for one in [*(["<p>"] if place else []), *part]]
        document = Document(str(name), tuple(lines))
        for place, sentence in enumerate(lines):
            if sentence != "<p>":
                items.append(GenerationItem("i", document, place, "a"))
                numbers.append(line + place)
        line += len(lines) + 1
    search = GenerationConfig(beam=3, max_len_b=10)
    loaded = load_ensemble(trained, data=data_bin)
    codec = TextCodec(data_bin)
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


def test_the_command_prints_and_writes_reports(data_bin, trained, tmp_path, capsys):
    command = ["contrast", "--set", "voita", "--items", str(voita_set(tmp_path)), "--data", str(data_bin), "--cpu"]
    command += ["--path", str(trained)]
    assert main(command) == 0
    assert "95 % interval" in capsys.readouterr().out
    assert main([*command, "--format", "json", "--output", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["overall"]["items"] == 2 and len(report["answers"][0]["scores"]) == 2
    assert main([*command, "--normalise", "--format", "markdown"]) == 0
    assert "### By distance" in capsys.readouterr().out


def test_the_command_translates_ctxpro_or_judges_translations(data_bin, trained, tmp_path, capsys):
    entries = [
        {"src segment": "a b c", "expected": "b", "rule": "r"},
        {"src segment": "d", "expected": "e", "rule": "s"},
    ]
    (tmp_path / "set.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "inputs").write_text("c<eos> a b c\nd\n", encoding="utf-8")
    command = [
        "contrast",
        "--set",
        "ctxpro",
        "--items",
        str(tmp_path / "set.json"),
        "--inputs",
        str(tmp_path / "inputs"),
    ]
    command += ["--format", "json"]
    assert main([*command, "--path", str(trained), "--data", str(data_bin), "--cpu", "--max-len-b", "8"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["overall"]["chance"] is None and list(report["groups"]["rule"]) == ["r", "s"]
    for translations, outcome in (("c, B!\nd\n", "right"), ("B <eos> c\nd\n", "wrong"), ("B! C\nd. E.\n", "wrong")):
        (tmp_path / "translations").write_text(translations, encoding="utf-8")
        assert main([*command, "--translations", str(tmp_path / "translations")]) == 0
        last = "right" if "E." in translations else "wrong"  # has no context, and is judged whole
        assert [one["outcome"] for one in json.loads(capsys.readouterr().out)["answers"]] == [outcome, last]
    (tmp_path / "translations").write_text("b\n", encoding="utf-8")
    assert main([*command, "--translations", str(tmp_path / "translations")]) == 2
    assert "1 translations, but 2 items" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--path", "none.pt"], "--path none.pt: no such file"),
        (["--documents", "x"], "--documents: only for --set contrapro"),
        (["--translations", "x"], "--translations: only for --set ctxpro"),
        (["--samples", "0"], "--samples 0: at least 1"),
        (["--samples", "0", "--path", "none.pt"], "--samples 0: at least 1"),
        (["--seed", "-1", "--path", "none.pt"], "--seed -1: at least 0"),
        (["--beam", "3"], "--beam: only for --set ctxpro"),
        (["--context-sentences", "3"], "--context-sentences: only for --set contrapro"),
        (["--set", "contrapro", "--context-sentences", "3"], "--context-sentences: needs --documents"),
        (["--set", "ctxpro", "--normalise"], "--normalise: there are no scores"),
        (["--set", "ctxpro", "--translations", "x"], "--path: no model is asked where --translations are given"),
        (["--max-tokens", "0"], "--max-tokens 0: at least 1"),
        (["--data", "nowhere"], "--data nowhere: holds no dict"),
    ],
)
def test_bad_options_are_named(data_bin, trained, tmp_path, capsys, arguments, message):
    command = ["contrast", "--set", "voita", "--items", str(voita_set(tmp_path)), "--data", str(data_bin), "--cpu"]
    assert main([*command, "--path", str(trained), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--data", "d"], ["--lenpen", "1"], ["--tokenized"], ["--cpu"], ["--max-tokens", "0"],
     ["--max-document-sentences", "3"], ["--max-document-tokens", "0"], ["--context-overlap", "0"],
     ["--context-overlap-after", "1"]],
)  # fmt: skip
def test_options_of_models_are_refused_beside_translations(capsys, arguments):
    assert main(["contrast", "--set", "ctxpro", "--items", "x", "--translations", "y", *arguments]) == 2
    assert f"{arguments[0]}: no model is asked where --translations are given; leave one out" in capsys.readouterr().err
