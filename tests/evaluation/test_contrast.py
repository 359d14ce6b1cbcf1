"""Contrastive answers by forced decoding, ties and NaN, and reports."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast import voita
from docnmt_fairseq.evaluation.contrast.items import ContrastItem, ItemDocument
from docnmt_fairseq.evaluation.contrast.report import build_report
from docnmt_fairseq.evaluation.contrast.scoring import OUTCOMES, Answer, answer, outcome_of
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder
from docnmt_fairseq.evaluation.tables import render
from tests.support import toy

NAN = math.nan
TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]


def test_only_a_strictly_best_score_is_right():
    for outcome, scores in (
        ("right", (-1.0, -2.0, -3.0)),
        ("wrong", (-2.0, -1.0, -3.0)),
        ("tie", (-1.0, -3.0, -1.0)),
        ("tie", (-50.0, -50.00009)),
        ("right", (-50.0, -50.0002)),
        ("nan", (-1.0, NAN)),
        ("tie", (-math.inf, -math.inf)),
        ("wrong", (-math.inf, -2.0)),
        ("right", (-1.0, -math.inf)),
    ):
        assert outcome_of(scores, 0) == outcome


def make_items():
    """Returns items over the toy vocabulary: three of one document, and one of another."""
    document = ItemDocument("first", ("a b c", "d", "<p>", "e e a"), ("c b a", "d", "<p>", "a e e"))
    other = ItemDocument("second", ("c d",), ("d c",))
    return [
        ContrastItem("one", document, ({0: "c b a"}, {0: "c b d"}), 0, {"distance": 1, "phenomenon": "x"}),
        ContrastItem("two", document, ({1: "a"}, {1: "d"}, {1: "b"}), 1, {"distance": 2, "phenomenon": "x"}),
        ContrastItem(
            "three", document, ({1: "d", 3: "a e e"}, {1: "b", 3: "a b e"}), 0, {"distance": 2, "phenomenon": "y"}
        ),
        ContrastItem("four", other, ({0: "d c"}, {0: "e c"}), 0, {"distance": 3, "phenomenon": "y"}),
    ]


def build(data_bin, *arguments, **options):
    _, task, model = toy.build(data_bin, *arguments, **options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Ensemble(task, [model.eval()])


def test_constant_models_have_no_right_answers(data_bin):
    loaded, codec = build(data_bin), TextCodec(data_bin)
    torch.nn.init.zeros_(loaded.models[0].decoder.output_projection.weight)
    assert [one.outcome for one in answer(make_items(), ForcedDecoder(loaded), codec)] == ["tie"] * 4
    torch.nn.init.constant_(loaded.models[0].decoder.output_projection.weight, NAN)
    found = answer(make_items(), ForcedDecoder(loaded), codec)
    assert [one.outcome for one in found] == ["nan"] * 4
    report = build_report(found, {})
    assert (report.overall["accuracy"], report.overall["interval"], report.overall["nan"]) == (0, [0, 0], 4)
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("arguments, normalise", [([], True), (TARGET, False)], ids=["source", "target"])
def test_score_is_the_sum_over_judged_sentences(data_bin, arguments, normalise):
    """Item three has two sentences; each candidate has its own first sentence as context of the second."""
    loaded = build(data_bin, *arguments)
    found = answer(make_items(), ForcedDecoder(loaded), TextCodec(data_bin), normalise)
    dictionary = loaded.task.target_dictionary

    def encode(*lines):
        return [dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]

    for number, (first, second) in enumerate((("d", "a e e"), ("b", "a b e"))):
        dataset = loaded.task.documents_in_memory(encode("a b c", "d", "<p>", "e e a", ""))
        sample = dataset.collater([dataset[0]])
        rows = encode("c b a", first, second)
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=dictionary.pad())
        inputs = torch.cat([padded.new_full((3, 1), dictionary.eos()), padded[:, :-1]], dim=1)
        inputs[padded.eq(dictionary.pad())] = dictionary.pad()
        with torch.no_grad():
            output = loaded.models[0](**{**sample["net_input"], "prev_output_tokens": inputs})
            log_probs = loaded.models[0].get_normalized_probs(output, log_probs=True)
        expected = sum(
            float(log_probs[row, : len(rows[row])].gather(1, rows[row][:, None]).sum()) for row in (1, 2)
        ) / (len(rows[1]) + len(rows[2]) if normalise else 1)
        assert found[2].scores[number] == pytest.approx(expected, abs=1e-4)


def test_shared_last_sentence_is_scored_after_each_candidate(data_bin, tmp_path):
    items = [{"src": "a b _eos d _eos c", "dst": ["b a _eos d _eos c", "e e _eos d _eos d"], "true_ind": 0}]
    path = tmp_path / "set.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    (item,) = voita.read(path)
    differing = tuple({line: one[line] for line in (0, 2)} for one in item.candidates)
    for arguments, depends in (([], False), (TARGET, True)):
        _, task, model = toy.build(data_bin, *arguments)
        decoder = ForcedDecoder(Ensemble(task, [model]))
        found = answer([item, replace(item, candidates=differing)], decoder, TextCodec(data_bin))
        shared = np.subtract(found[0].scores, found[1].scores)
        assert (shared < -1).all() and (abs(shared[0] - shared[1]) > 0.1) == depends


def test_bad_items_are_named(data_bin):
    plain, short, codec = build(data_bin), build(data_bin, "--max-target-positions", "6"), TextCodec(data_bin)
    without_target = ContrastItem("here", ItemDocument("film", ("a", "b")), ({1: "a"}, {1: "b"}))
    answer([without_target], ForcedDecoder(plain), codec)

    def item(source, target, sentence="a"):
        last = len(source) - 1
        return ContrastItem("here", ItemDocument("film", source, target), ({last: sentence}, {last: "b"}))

    for bad, model, used, name in (
        (without_target, build(data_bin, *TARGET), codec, "here"),
        (item(("a",), None, "a b c d e a b"), short, codec, "here"),
        (item(("a", "", "b"), ("a", "a", "b")), plain, codec, "film"),
    ):
        with pytest.raises(InputError, match=f"{name}: "):
            answer([bad], ForcedDecoder(model), used)


def make_answers():
    outcomes = ("right", "wrong", "tie", "right")
    return [Answer(item, outcome, (-1.0, -2.0)) for item, outcome in zip(make_items(), outcomes)]


def test_report_by_attributes():
    report = build_report(make_answers(), {"model": "m"})
    assert report.overall["accuracy"] == 0.5 and report.overall["chance"] == pytest.approx((3 / 2 + 1 / 3) / 4)
    assert {value: figures["items"] for value, figures in report.groups["distance"].items()} == {1: 1, 2: 2, 3: 1}
    assert [report.groups["phenomenon"]["y"][outcome] for outcome in OUTCOMES] == [1, 0, 1, 0]
    assert list(report.groups["phenomenon, distance"]) == ["x, 1", "x, 2", "y, 2", "y, 3"]
    # Items of a single document have no interval.
    assert report.groups["phenomenon"]["x"]["interval"] is None
    assert report.groups["phenomenon"]["y"]["interval"] == [0, 1]
    table = render(report.parts(), "markdown")
    assert "| all | 50.0 % |" in table and "**By distance**" in table and "| x | 50.0 % | (one document) |" in table
    assert "model: m" in table and "resampled: documents, 1,000 times, seed 1" in table
    answers = json.loads(json.dumps(report.to_json()))["answers"]
    assert [one["outcome"] for one in answers] == ["right", "wrong", "tie", "right"]
    assert answers[1]["scores"] == [-1.0, -2.0] and answers[1]["distance"] == 2
