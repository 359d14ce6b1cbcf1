"""Contrastive answers: ties and numbers that are none, intervals, reports, and the command on tiny models."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble, load_ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.bootstrap import interval_of_mean
from docnmt_fairseq.evaluation.contrast import voita
from docnmt_fairseq.evaluation.contrast.generating import judge_translations, translate
from docnmt_fairseq.evaluation.contrast.items import Document, GenerationItem, Item
from docnmt_fairseq.evaluation.contrast.judging import Answer, answer, outcome_of
from docnmt_fairseq.evaluation.contrast.report import as_markdown, as_text, build_report
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder
from tests.support import toy
from tests.support.documents import DOCUMENTS

NAN = math.nan
TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]


@pytest.mark.parametrize(
    ("scores", "right", "outcome"),
    [
        ((-1.0, -2.0, -3.0), 0, "right"),
        ((-1.0, -2.0, -3.0), 1, "wrong"),
        ((-1.0, -3.0, -1.0), 0, "tie"),
        ((-1.0, -1.0 - 1e-6), 0, "tie"),
        ((-50.0, -50.00009), 0, "tie"),
        ((-50.0, -50.0002), 0, "right"),
        ((-50.0, -49.9998), 0, "wrong"),
        ((NAN, NAN), 0, "nan"),
        ((-1.0, NAN), 0, "nan"),
        ((-math.inf, -math.inf), 0, "tie"),
        ((-math.inf, -2.0), 0, "wrong"),
        ((-1.0, -math.inf), 0, "right"),
    ],
)
def test_only_a_strictly_best_score_is_right(scores, right, outcome):
    assert outcome_of(scores, right) == outcome


def items_of(count=4):
    """Returns items over the toy vocabulary: three of one document, and one that is its own."""
    document = Document("first", ("a b c", "d", "<p>", "e e a"), ("c b a", "d", "<p>", "a e e"))
    other = Document("second", ("c d",), ("d c",))
    items = [
        Item("one", document, ({0: "c b a"}, {0: "c b d"}), 0, {"distance": 1, "phenomenon": "x"}),
        Item("two", document, ({1: "a"}, {1: "d"}, {1: "b"}), 1, {"distance": 2, "phenomenon": "x"}),
        Item("three", document, ({1: "d", 3: "a e e"}, {1: "b", 3: "a b e"}), 0, {"distance": 2, "phenomenon": "y"}),
        Item("four", other, ({0: "d c"}, {0: "e c"}), 0, {"distance": 3, "phenomenon": "y"}),
    ]
    return items[:count]


def build(data_bin, *arguments, **options):
    _, task, model = toy.build(data_bin, *arguments, **options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Ensemble(task, [model.eval()])


def test_a_model_that_always_says_the_same_has_nothing_right(data_bin):
    loaded = build(data_bin)
    codec = TextCodec(data_bin)
    torch.nn.init.zeros_(loaded.models[0].decoder.output_projection.weight)
    found = answer(items_of(), ForcedDecoder(loaded), codec)
    assert [one.outcome for one in found] == ["tie"] * 4
    torch.nn.init.constant_(loaded.models[0].decoder.output_projection.weight, NAN)
    found = answer(items_of(), ForcedDecoder(loaded), codec)
    assert [one.outcome for one in found] == ["nan"] * 4
    figures = build_report(found, {}).overall
    assert (figures.accuracy, figures.interval, figures.counts["nan"]) == (0, (0, 0), 4)


@pytest.mark.parametrize("arguments", [[], TARGET], ids=["source", "target"])
@pytest.mark.parametrize("normalise", [False, True])
def test_a_score_is_the_sum_over_the_judged_sentences(data_bin, arguments, normalise):
    """Item three has two such sentences; its candidates each see their own as what stands before."""
    loaded = build(data_bin, *arguments)
    codec, decoder = TextCodec(data_bin), ForcedDecoder(loaded)
    found = answer(items_of(), decoder, codec, normalise)
    dictionary = loaded.task.target_dictionary
    for number, (first, second) in enumerate((("d", "a e e"), ("b", "a b e"))):
        dataset = loaded.task.documents_in_memory(
            [dictionary.encode_line(line, add_if_not_exist=False).long() for line in ("a b c", "d", "<p>", "e e a", "")]
        )
        sample = dataset.collater([dataset[0]])
        rows = [dictionary.encode_line(line, add_if_not_exist=False).long() for line in ("c b a", first, second)]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=dictionary.pad())
        begun = torch.cat([padded.new_full((3, 1), dictionary.eos()), padded[:, :-1]], dim=1)
        begun[padded.eq(dictionary.pad())] = dictionary.pad()
        with torch.no_grad():
            output = loaded.models[0](**{**sample["net_input"], "prev_output_tokens": begun})
            of_words = loaded.models[0].get_normalized_probs(output, log_probs=True)
        expected = sum(
            float(of_words[row, : len(tokens)].gather(1, tokens[:, None]).sum())
            for row, tokens in list(enumerate(rows))[1:]
        )
        expected /= len(rows[1]) + len(rows[2]) if normalise else 1
        assert found[2].scores[number] == pytest.approx(expected, abs=1e-4)


def test_a_sentence_that_all_candidates_share_counts_by_what_stands_before_it(data_bin, tmp_path):
    """It is likelier after one candidate's sentences than after another's, to models that see them alone."""
    items = [{"src": "a b _eos d _eos c", "dst": ["b a _eos d _eos c", "e e _eos d _eos d"], "true_ind": 0}]
    path = tmp_path / "set.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    (item,) = voita.read(path)
    differing = tuple({line: one[line] for line in (0, 2)} for one in item.candidates)
    for arguments, depends in (([], False), (TARGET, True)):
        _, task, model = toy.build(data_bin, *arguments)
        asked = [item, replace(item, candidates=differing)]
        found = answer(asked, ForcedDecoder(Ensemble(task, [model])), TextCodec(data_bin))
        between = np.subtract(found[0].scores, found[1].scores)  # of the sentence that they share
        assert (between < -1).all() and (abs(between[0] - between[1]) > 0.1) == depends


def test_a_set_without_target_context_is_no_set_for_models_that_need_it(data_bin):
    item = Item("here", Document("one", ("a", "b")), ({1: "a"}, {1: "b"}))
    answer([item], ForcedDecoder(build(data_bin)), TextCodec(data_bin))
    with pytest.raises(InputError, match="here: the model sees target sentences before, but this set has none"):
        answer([item], ForcedDecoder(build(data_bin, *TARGET)), TextCodec(data_bin))


def test_sentences_that_do_not_fit_name_their_item(data_bin):
    item = Item("here", Document("one", ("a",)), ({0: "a b c d e a b"}, {0: "b"}))
    with pytest.raises(InputError, match="here: 8 target tokens; the model takes 6"):
        answer([item], ForcedDecoder(build(data_bin, "--max-target-positions", "6")), TextCodec(data_bin))


def test_context_that_is_nothing_as_tokens_names_its_document(prepared_codec, data_bin):
    item = Item("here", Document("film", ("a", "\u200b", "b")), ({2: "a"}, {2: "b"}))
    with pytest.raises(InputError, match="film: nothing is left of source sentence"):
        answer([item], ForcedDecoder(build(data_bin)), prepared_codec)


@pytest.mark.parametrize("texts", [(("a", "", "b"), ("a", "a", "b")), (("a", "a", "b"), ("a", " ", "b"))])
def test_an_empty_sentence_of_context_is_named(data_bin, texts):
    item = Item("here", Document("film", *texts), ({2: "a"}, {2: "b"}))
    with pytest.raises(InputError, match=r"film: (source|target) sentence 2 is empty"):
        answer([item], ForcedDecoder(build(data_bin)), TextCodec(data_bin))


@pytest.fixture
def prepared_codec(tmp_path):
    """Returns a codec that normalises and does nothing more."""
    options = {"tokenizer": "none", "truecase": False, "subwords": "none", "source_lang": "src", "target_lang": "tgt"}
    (tmp_path / "manifest.json").write_text(json.dumps({"options": options}), encoding="utf-8")
    return TextCodec(tmp_path)


def test_the_bootstrap_draws_documents_together():
    """All of a document alike: one draw a document, whatever their number of items."""
    right = [True] * 50 + [False] * 50
    together = interval_of_mean(right, ["a"] * 50 + ["b"] * 50, 2000, 1)
    apart = interval_of_mean(right, list(range(100)), 2000, 1)
    assert together == (0, 1) and 0.35 < apart[0] < 0.45 and 0.55 < apart[1] < 0.65
    assert apart == interval_of_mean(right, [f"x{number}" for number in range(100)], 2000, 1)
    assert apart != interval_of_mean(right, list(range(100)), 2000, 2)
    weighed = interval_of_mean([2.0, 3.0], ["a", "b"], 500, 1, counts=[1, 3])
    assert weighed == (1, 2)


def answers():
    outcomes = ("right", "wrong", "tie", "right")
    return [Answer(item, outcome, (-1.0, -2.0)) for item, outcome in zip(items_of(), outcomes)]


def test_reports_group_by_what_is_known():
    report = build_report(answers(), {"model": "m"})
    assert report.overall.accuracy == 0.5 and report.overall.chance == pytest.approx((3 / 2 + 1 / 3) / 4)
    assert {value: figures.items for value, figures in report.groups["distance"].items()} == {1: 1, 2: 2, 3: 1}
    assert report.groups["phenomenon"]["y"].counts == {"right": 1, "wrong": 0, "tie": 1, "nan": 0}
    assert list(report.groups["phenomenon, distance"]) == ["x, 1", "x, 2", "y, 2", "y, 3"]
    text, table = as_text(report), as_markdown(report)
    assert "By distance" in text and "### By distance" in table and "| all | 50.0 % |" in table
    assert "model: m" in text and "resampled: documents, 1,000 times, seed 1" in text
    content = json.loads(json.dumps(report.to_json()))
    assert [one["outcome"] for one in content["answers"]] == ["right", "wrong", "tie", "right"]
    assert content["answers"][1]["scores"] == [-1.0, -2.0] and content["answers"][1]["distance"] == 2
    with pytest.raises(InputError, match="--samples 0"):
        build_report(answers(), {}, samples=0)


def test_translations_are_judged_one_by_one():
    items = [GenerationItem(str(number), Document("d", ("a",)), 0, form) for number, form in enumerate(("sie", "er"))]
    assert [one.outcome for one in judge_translations(items, ["Das ist Sie!", "Erst."])] == ["right", "wrong"]
    with pytest.raises(InputError, match="1 translations, but 2 items"):
        judge_translations(items, ["sie"])


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


def test_scores_do_not_depend_on_the_batch(data_bin):
    loaded = build(data_bin, "--context-attention", "conditional", "--context-init", "xavier")
    codec = TextCodec(data_bin)
    together = answer(items_of(), ForcedDecoder(loaded), codec)
    for number, item in enumerate(items_of()):
        (alone,) = answer([item], ForcedDecoder(loaded, max_tokens=1), codec)
        np.testing.assert_allclose(alone.scores, together[number].scores, atol=5e-5)
