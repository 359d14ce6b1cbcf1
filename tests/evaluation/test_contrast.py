"""Contrastive answers: ties and numbers that are none, intervals, and reports."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.bootstrap import interval_of_mean
from docnmt_fairseq.evaluation.contrast import voita
from docnmt_fairseq.evaluation.contrast.generating import judge_translations
from docnmt_fairseq.evaluation.contrast.items import Document, GenerationItem, Item
from docnmt_fairseq.evaluation.contrast.judging import Answer, answer, outcome_of
from docnmt_fairseq.evaluation.contrast.report import as_markdown, as_text, build_report
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder
from tests.support import toy

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
    report = build_report(found, {})
    figures = report.overall
    assert (figures.accuracy, figures.interval, figures.counts["nan"]) == (0, (0, 0), 4)
    json.dumps(report.to_json(), allow_nan=False)  # JSON has no NaN


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
    assert together == (0, 1) and apart == pytest.approx((0.402, 0.598), abs=0.011)  # ½ ± 1.96 · 0.05
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


def test_numbers_are_in_their_order_and_before_words():
    items = [replace(items_of()[0], facts={"distance": distance}) for distance in ("> 3", 10, 2)]
    report = build_report([Answer(item, "right", (-1.0, -2.0)) for item in items], {})
    assert list(report.groups["distance"]) == [2, 10, "> 3"]


def test_the_interval_of_a_report_draws_documents():
    documents = [Document(name, ("s",), None) for name in "ab"]
    items = [Item("i", document, ({0: "t"}, {0: "f"}), 0, {}) for document in documents for _ in range(50)]
    found = [Answer(item, "right" if item.document is documents[0] else "wrong", (-1.0, -2.0)) for item in items]
    assert build_report(found, {}).overall.interval == (0, 1)


def test_items_of_one_document_have_no_interval():
    """It would be drawn alone each time, and a point of no width would look sure."""
    report = build_report(answers(), {})
    first, both = (report.groups["phenomenon"][name] for name in "xy")
    assert first.interval is None and first.to_json()["interval"] is None and both.interval == (0, 1)
    assert "| x | 50.0 % | (one document) |" in as_markdown(report)


def test_translations_are_judged_one_by_one():
    items = [GenerationItem(str(number), Document("d", ("a",)), 0, form) for number, form in enumerate(("sie", "er"))]
    assert [one.outcome for one in judge_translations(items, ["Das ist Sie!", "Erst."])] == ["right", "wrong"]
    with pytest.raises(InputError, match="1 translations, but 2 items"):
        judge_translations(items, ["sie"])


def test_scores_do_not_depend_on_the_batch(data_bin):
    loaded = build(data_bin, "--context-attention", "conditional", "--context-init", "xavier")
    codec = TextCodec(data_bin)
    together = answer(items_of(), ForcedDecoder(loaded), codec)
    for number, item in enumerate(items_of()):
        (alone,) = answer([item], ForcedDecoder(loaded, max_tokens=1), codec)
        np.testing.assert_allclose(alone.scores, together[number].scores, atol=5e-5)
