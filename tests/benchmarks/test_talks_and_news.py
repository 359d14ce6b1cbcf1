"""Talks and news: two test sets of one file, in one report with the seeds of earlier calls."""

import json
import sys

import pytest

from benchmarks.experiments import talks_and_news
from benchmarks.lib.store import Store


@pytest.mark.slow
def test_the_report_keeps_what_earlier_calls_found(tmp_path, monkeypatch, starts_soon):
    command = ["talks", "--work", str(tmp_path / "work"), "--results", str(tmp_path), "--smoke", "--models", "sentence"]
    monkeypatch.setattr(sys, "argv", command)
    talks_and_news.main()
    stored = Store(tmp_path / "talks_and_news.json")
    (first,) = stored.runs.values()
    assert (first["model"], first["seed"], [*first["scores"]]) == ("sentence", 1, ["test", "news"]) and first["curve"]

    another = json.loads(json.dumps(first))
    another["seed"], another["scores"]["news"]["bleu"] = 2, first["scores"]["news"]["bleu"] + 2
    stored.add("sentence-2", another)
    talks_and_news.main()
    report = (tmp_path / "talks_and_news.md").read_text(encoding="utf-8")
    rows = [line for line in report.splitlines() if line.startswith("| sentence |")]
    assert len(rows) == 3 and [row.endswith("| 1, 2 |") for row in rows] == [True, True, False]  # losses have no seeds
    assert f"{first['scores']['news']['bleu'] + 1:.2f} ± 1.41" in rows[1]
    assert str(tmp_path) not in report
