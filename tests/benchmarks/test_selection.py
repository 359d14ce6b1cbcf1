"""The benchmark of selection that learns, at a size of seconds."""

import json

import pytest

from benchmarks.experiments import long_range_runs, selection, selection_report
from benchmarks.lib.store import Store


def test_the_rise_is_measured_from_the_best_before_the_jump():
    run = {"nll": [[10, 0.5], [20, 0.3], [30, 0.31], [40, 0.35], [50, 0.32]]}
    assert selection_report.rise(run, 30) == pytest.approx((0.05, 0.02))


def test_the_demo_says_its_worst_group_of_distances(tmp_path):
    groups = {"pronoun": {"1-3": [9, 10], "4-6": [10, 10]}, "formality": {"1-3": [5, 5], "4-6": [5, 5]}}
    run = {"seed": 3, "t": 2, "weight": 0.1, "right_of_cases": groups, "nll": [[10, 0.5], [20, 0.25], [30, 0.3]]}
    assert selection_report.demo_line(run) == "t = 2, seed 3: worst group of distances pronoun 90.0, formality 100.0"
    stored = Store(tmp_path / "selection.json")
    stored.facts.update(machine="here", calls=["command"])
    stored.add(selection.demo_name(3, 2), run)
    selection_report.write(stored, tmp_path, selection_report.Schedule(4, 2, 3, 4), list(selection.TAUGHT))
    assert "| 0.1 | 2 | 3 | 100.0 | 95.0 | 90.0 | 0.250 | 0.300 |" in (tmp_path / "selection.md").read_text()


@pytest.mark.slow
def test_long_documents_flat_and_tree_from_one_model(tmp_path, monkeypatch, starts_soon):
    for name, updates in (("SHORT", 4), ("DENSE", 2), ("JUMP", 3), ("END", 4)):
        monkeypatch.setattr(selection, name, updates)
    monkeypatch.setattr(long_range_runs, "SEARCH", [*long_range_runs.SEARCH, "--max-len-b", "8"])
    monkeypatch.setitem(selection.PACE, "long", [*selection.PACE["long"][:-1], "1"])
    ways, mechanisms = (selection.FROM_START, selection.IN_WINDOW), ("conditional", "tree")
    wanted = [selection.Cell(mechanism, 4, taught, 1) for taught in ways for mechanism in mechanisms]
    wanted.append(selection.Cell("conditional", 4, next(iter(selection.PROGRAMS)), 1))
    monkeypatch.setattr(selection, "cells", lambda seeds, kept, ablations: wanted)
    command = ["selection", "long", "--work", str(tmp_path / "work"), "--results", str(tmp_path), "--documents"]
    monkeypatch.setattr("sys.argv", [*command, "24", "4", "2"])
    selection.main()
    runs = json.loads((tmp_path / "selection.json").read_text())["runs"]
    assert set(runs) == {cell.name for cell in wanted}
    of_cells = [runs[cell.name] for cell in wanted]
    for flat, tree in (of_cells[:2], of_cells[2:4]):
        assert flat["nll"][:3] == tree["nll"][:3] and [update for update, _ in flat["nll"]] == [1, 2, 3, 4]
        assert flat["found"] is None and 0.2 < tree["found"]["text"] < tree["found"]["keys"] <= 1
    assert of_cells[0]["nll"] != of_cells[2]["nll"]
    assert (tmp_path / "selection.png").stat().st_size > 0
    assert "| tree | in a window | 4 | 1 |" in (tmp_path / "selection.md").read_text()


def test_the_most_telling_cells_come_first_and_ablations_when_asked_for():
    cells = list(selection.cells([1, 2], [4, 2], ablations=False))
    assert len(cells) == len(set(cells)) == 8 and {cell.taught for cell in cells} == {selection.FROM_START}
    more = list(selection.cells([1, 2], [4, 2], ablations=True))
    assert more[:8] == cells and {cell.taught for cell in more} == set(selection.TAUGHT)
