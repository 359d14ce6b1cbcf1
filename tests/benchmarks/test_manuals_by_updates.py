"""The small budgets beside each other."""

import sys

import pytest

from benchmarks.experiments import manuals_by_updates as by_updates
from benchmarks.lib.store import Store


def scores(bleu, register, cxmi=0.0):
    """What manuals_small_budget keeps of a model on a test set; with false context one less of everything."""

    def found(less):
        return {"bleu": bleu - less, "metrics": {"register": {"score": register - less}}}

    asked = {"shuffled": found(1), "none": found(2)}
    return {"test": {**found(0), "contexts": asked, "cxmi": {"true": cxmi, "shuffled": -cxmi}}}


@pytest.fixture
def results(tmp_path):
    """Seeds of 4,000 updates, the third without a sentence-level model; one of 1,000; of 2,000 none of both models."""
    for updates, seeds in ((4000, (1, 2)), (1000, (1,))):
        stored = Store(tmp_path / f"manuals_small_budget_{updates}.json")
        for seed in seeds:
            stored.add(f"sentence-{seed}", {"model": "sentence", "seed": seed, "scores": scores(20, 80)})
            gain = {"model": "conditional", "seed": seed, "scores": scores(20 + seed, 90 + seed, cxmi=0.5 * seed)}
            stored.add(f"conditional-{seed}", gain)
    stored = Store(tmp_path / "manuals_small_budget_4000.json")
    stored.add("conditional-3", {"model": "conditional", "seed": 3, "scores": scores(90, 99, cxmi=9)})
    Store(tmp_path / "manuals_small_budget_2000.json").add("sentence-1", {"model": "sentence", "seed": 1, "scores": {}})
    return tmp_path


def test_means_are_over_seeds_that_have_both_models(results):
    stored = Store(results / "manuals_small_budget_3000_pieces.json")
    for model in ("sentence", "conditional"):
        stored.add(f"{model}-1", {"model": model, "seed": 1, "scores": scores(1, 2)})
    assert [point.updates for point in by_updates.points_of(results, "conditional", pieces=True)] == [3000]
    first, last = by_updates.points_of(results, "conditional", pieces=False)
    assert (first.updates, first.seeds, last.updates, last.seeds) == (1000, 1, 4000, 2)
    assert last.bleu == {"sentence": 20, "true": 21.5, "shuffled": 20.5, "none": 19.5}
    assert last.register == {"sentence": 80, "true": 91.5, "shuffled": 90.5, "none": 89.5}
    assert last.cxmi == {"true": 0.75, "shuffled": -0.75}


def test_a_row_a_number_of_updates(results, monkeypatch, capsys):
    command = ["by_updates", "--results", str(results)]
    monkeypatch.setattr(sys, "argv", command)
    by_updates.main()
    report = (results / "manuals_by_updates.md").read_text(encoding="utf-8")
    row = "| 4,000 | 2 | 20.00 | 21.50 | +1.50 | 80.0 | 91.5 | 90.5 | 89.5 | +0.750 | -0.750 |"
    assert report.index("| 1,000 | 1 |") < report.index(row) and str(results) not in report
    assert (results / "manuals_by_updates.png").stat().st_size > 0
    for further, message in (
        (["--model", "han"], "manuals_small_budget_*.json has han; train it"),
        (["--pieces"], "manuals_small_budget_*_pieces.json has conditional; train it"),
    ):
        monkeypatch.setattr(sys, "argv", [*command, *further])
        with pytest.raises(SystemExit):
            by_updates.main()
        assert message in capsys.readouterr().err
