"""Training curves from logs, and scores from results."""

import json
import re

import pytest

from docnmt_fairseq.report.html import Axis, bar_chart, line_chart
from docnmt_fairseq.report.results import curves_section, read_curves, scores_section

STAMP = "2026-01-01 10:00:00 | INFO"
AS_JSON = f"""\
{STAMP} | fairseq_cli.train | {{'_name': None, 'common': {{'seed': 1}}}}
{STAMP} | train_inner | {{"epoch": 1, "update": 0.5, "loss": "5.5", "lr": "0.001", "num_updates": "100"}}
{STAMP} | train_inner | {{"epoch": 1, "update": 1.0, "loss": "4.5", "lr": "0.002", "num_updates": "200"}}
{STAMP} | valid | {{"epoch": 1, "valid_loss": "4.25", "valid_nll_loss": "3", "valid_num_updates": "200"}}
{STAMP} | train | {{"epoch": 1, "train_loss": "5", "train_num_updates": "200"}}
{STAMP} | train_inner | {{"epoch": 1, "upd
{STAMP} | train_inner | {{"epoch": 1, "update": 1.0, "loss": "4.4", "lr": "0.002", "num_updates": "200"}}
"""
AS_TEXT = f"""\
{STAMP} | train_inner | epoch 001:    100 / 200 loss=5.5, lr=1e-03, num_updates=100, clip=0
{STAMP} | train_inner | epoch 001:    200 / 200 loss=4.4, lr=2e-03, num_updates=200, clip=0
{STAMP} | valid | epoch 001 | valid on 'valid' subset | loss 4.25 | nll_loss 3 | ppl 8 | num_updates 200
"""


@pytest.mark.parametrize("text", [AS_JSON, AS_TEXT])
def test_training_curves(tmp_path, text):
    (tmp_path / "train.log").write_text(text)
    curves = read_curves(tmp_path / "train.log")
    assert curves == {
        "loss": {"training": [(100, 5.5), (200, 4.4)], "valid": [(200, 4.25)]},
        "lr": {"training": [(100, 0.001), (200, 0.002)]},
        "nll_loss": {"valid": [(200, 3.0)]},
    }
    html = curves_section(curves)
    assert html.count("<polyline") == 4
    assert "4.4 (200)" in html and "http" not in html


def test_log_without_intervals(tmp_path):
    (tmp_path / "log").write_text(f'{STAMP} | train | {{"train_loss": "5", "train_num_updates": "200"}}\n')
    assert read_curves(tmp_path / "log") == {"loss": {"training": [(200, 5.0)]}}


def test_non_finite_figures_are_ignored(tmp_path):
    bad = f'{STAMP} | train_inner | {{"loss": "nan", "gnorm": "inf", "lr": "0.003", "num_updates": "300"}}\n'
    bad += f'{STAMP} | valid | {{"valid_loss": -Infinity, "valid_num_updates": 1{"0" * 400}}}\n'
    (tmp_path / "log").write_text(AS_JSON + bad)
    found = read_curves(tmp_path / "log")
    assert found["loss"] == {"training": [(100, 5.5), (200, 4.4)], "valid": [(200, 4.25)]}
    assert "gnorm" not in found and found["lr"]["training"][-1] == (300, 0.003)


def accuracy(share, cases=10):
    return {"accuracy": share, "right": share * cases, "cases": cases, "interval": [share / 2, share]}


def synth_results():
    phenomena = {
        "overall": accuracy(0.5),
        "by_kind": {"pronoun": accuracy(0.625)},
        "by_distance": {"1": accuracy(0.5)},
        "by_kind_and_distance": {"pronoun": {"1": accuracy(0.75), "2": accuracy(0.5)}},
    }
    system = {"scores": {"bleu": 91.54, "chrf": 93.9}, "phenomena": phenomena}
    ceiling = {"kinds": {"pronoun": {"accuracy": 0.33}}, "overall": {"accuracy": 0.4}}
    return {"systems": {"<mine>": system}, "ceiling": ceiling}


def test_results_of_an_artificial_corpus(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(synth_results()))
    html = scores_section(tmp_path / "r.json")
    assert "62.5 % (31–62; 10)" in html and "33.0 %" in html and "91.5" in html
    assert html.count("<polyline") == 1 and "<mine>" not in html
    assert re.search(r"<td>pronoun</td><td>2</td><td>50.0 %", html)


def test_results_of_score(tmp_path):
    column = {"metric": "BLEU", "level": "sentence", "signature": "nrefs:1", "systems": {"a": 20.123}}
    (tmp_path / "r.json").write_text(json.dumps({"scores": [column]}))
    assert "<td>BLEU, sentence</td><td>20.12</td><td>nrefs:1</td>" in scores_section(tmp_path / "r.json")


def test_chart_coordinates():
    axis = Axis.around([0, 10], "x")
    assert axis.ticks() == [0, 2, 4, 6, 8, 10]
    assert axis.place(axis.low, 5, 25) == 5 and axis.place(axis.high, 5, 25) == 25
    assert Axis.around([3], "x").place(3, 0, 10) == 5 and Axis.around([0.0], "").ticks()  # of a constant
    assert '<polyline points="242.0,137.0"' in line_chart("t", {"a": [(3, 3)]}, Axis(2, 4, "x"), Axis(2, 4, "y"))
    assert "25.0 %" in bar_chart("t", {"head 1": 0.25}, 0.5)
