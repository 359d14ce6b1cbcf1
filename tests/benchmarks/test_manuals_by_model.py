"""Models of a small budget beside each other."""

import sys

import pytest

from benchmarks.experiments import manuals_by_model as by_model
from benchmarks.lib.store import Store


def scores(register, gain=None):
    """What manuals_small_budget keeps of a model on the test set; of the sentence-level one if there is no gain."""

    def translated(right):
        return {"metrics": {"register": {"score": right}, "register-consistency": {"score": right / 2}}}

    if gain is None:
        return {"test": translated(register)}
    asked = {"shuffled": translated(70), "none": translated(75)}
    compared = {"difference": gain, "p_value": 0.25}
    cxmi = {"true": gain / 2, "shuffled": -gain}
    return {"test": {**translated(register), "contexts": asked, "significance": compared, "cxmi": cxmi}}


@pytest.fixture
def results(tmp_path):
    """Two seeds of two models, the worse one first; of the better one a third seed without a sentence-level model."""
    stored = Store(tmp_path / "manuals_small_budget_3000.json")
    for seed in (2, 1):
        stored.add(f"sentence-{seed}", {"model": "sentence", "seed": seed, "scores": scores(80 + seed)})
        for model, right in (("memory", 82), ("conditional", 90)):
            stored.add(
                f"{model}-{seed}", {"model": model, "seed": seed, "scores": scores(right + seed, gain=0.2 * seed)}
            )
    stored.add("conditional-3", {"model": "conditional", "seed": 3, "scores": scores(10, gain=9)})
    Store(tmp_path / "manuals_small_budget_1000.json").add("han-1", {"model": "han", "seed": 1, "scores": {}})
    return tmp_path


def test_a_row_a_model_and_a_value_a_seed(results, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["by_model", "--updates", "3000", "--results", str(results)])
    by_model.main()
    report = (results / "manuals_by_model_3000.md").read_text(encoding="utf-8")
    rows = [line for line in report.splitlines() if line.startswith(("| memory", "| cond", "| sentence"))]
    further = "75.0, 75.0 | 70.0, 70.0 | +0.20, +0.40 | 0.250, 0.250"
    cxmi = "+0.10, +0.20 | -0.20, -0.40"
    assert rows == [
        f"| conditional | 2 | 91.0, 92.0 | {further} | 45.5, 46.0 | {cxmi} |",
        f"| memory | 2 | 83.0, 84.0 | {further} | 41.5, 42.0 | {cxmi} |",
        "| sentence | 2 | 81.0, 82.0 |  |  |  |  | 40.5, 41.0 |  |  |",
    ]
    assert "3,000 updates" in report and str(results) not in report
    assert (results / "manuals_by_model_3000.png").stat().st_size > 0


def test_the_figure_has_a_point_a_seed_and_way(results, monkeypatch):
    from matplotlib.axes import Axes

    drawn = []
    monkeypatch.setattr(Axes, "plot", lambda self, x, y, *style, **options: drawn.append((list(x), list(y))))
    found = by_model.models_of(Store(results / "manuals_small_budget_3000.json").runs)
    by_model.figure(found, results / "figure.png")
    for points in (
        ([91, 92], [0, 0]),
        ([70, 70], [0, 0]),
        ([83, 84], [1, 1]),
        ([81, 82], [2, 2]),
        ([0.2, 0.4], [1, 1]),
    ):
        assert points in drawn


@pytest.mark.parametrize("updates", [1000, 2000])
def test_what_holds_no_model_is_refused(results, monkeypatch, capsys, updates):
    monkeypatch.setattr(sys, "argv", ["by_model", "--updates", str(updates), "--results", str(results)])
    with pytest.raises(SystemExit):
        by_model.main()
    assert f"manuals_small_budget_{updates}.json: no model beside a sentence-level one" in capsys.readouterr().err
    assert not list(results.glob("manuals_by_model*"))
