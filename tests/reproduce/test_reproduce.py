"""``docnmt reproduce``: tables whose training is replaced, and smoke runs of all tables."""

import json
from dataclasses import replace
from datetime import date

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import read_dataset_config
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.recipe import Options
from docnmt_fairseq.reproduce import published
from docnmt_fairseq.reproduce.base import recipe_options
from docnmt_fairseq.reproduce.figures.scores import TOKENS_PER_LINE, TOKENS_PER_SECOND, ScoresOfModels
from docnmt_fairseq.reproduce.listing import ELSEWHERE, WIDTH, table_list
from docnmt_fairseq.reproduce.published import read_table, read_table_file, table_names
from docnmt_fairseq.reproduce.run import Ours, reproduce, table_text
from tests.support.meteor import fake_program
from tests.support.recipes import SMALL, fake_training
from tests.support.recipes import raw as raw_files

TABLE = """
title: Two models
source: A paper, Table 1
page: docs/recipes.md
needs: nothing
columns:
  - {title: all, recipe: en_de_small}
  - {title: characters, recipe: en_de_small, score: chrf}
rows:
  - {title: plain, model: sentence, published: [90, null]}
  - {title: better, model: conditional, options: [--context-top-t, "2"], published: [null, 70.5]}
deviations: [The data are made up.]
"""
CHANGED = "conditional--context-top-t2"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "two-models.yaml"
    path.write_text(TABLE)
    return read_table_file(path)


def request(tmp_path, **options):
    return Options(tmp_path / "out", machine=Machine(cpu=True), **{"smoke": True, **options})


def with_errors(folder, line):
    """Translations with errors by the first model."""
    return line if folder.name.startswith("conditional") else " ".join(line.split()[1:])


def test_table_has_published_figures_ours_and_differences(table, tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch, with_errors)
    text = reproduce(table, request(tmp_path, seeds=(1, 2)), rows=["better"])
    assert [one["folder"] for one in trained] == [f"{CHANGED}-1", f"{CHANGED}-2"]
    assert "| better | – | 100.00 ± 0.00 | – | 70.50 | 100.00 ± 0.00 | +29.50 |" in text
    assert "| plain | 90.00 | – | – | – | – | – |" in text
    assert f"- better: trained until {date.today()} on en_de_small, " in text and "- plain: not run" in text
    assert "- The data are made up." in text and "meaningless" in text
    text = reproduce(table, request(tmp_path, seeds=(1, 2)), rows=["plain"], columns=["all"])  # the others stay
    assert "| better | – | 100.00" in text
    found = json.loads((tmp_path / "out" / "two-models.json").read_text())["cells"]
    ours = {(cell["row"], cell["column"]): cell["ours"] for cell in found}
    assert 0 < ours["plain", "all"][0] < 100 and ours["plain", "characters"] == []
    assert (tmp_path / "out" / "two-models.md").read_text().strip() == text.strip()


def test_changed_models_are_marked_and_not_mixed_with_others(table, tmp_path):
    changed = request(tmp_path, updates=7, train_options=("--dropout", "0.3"), smoke=False)
    text = table_text(table, changed, {("plain", "all"): Ours([80.0])})
    assert "all: published | ours* | difference" in text
    assert "\\* Not the published models: changed by `--updates 7 --dropout 0.3`." in text
    smoke = table_text(table, request(tmp_path), {("plain", "all"): Ours([80.0])})
    assert "ours*" in smoke and "\\* Not the published models: tiny models of a smoke run." in smoke
    assert "ours*" not in table_text(table, request(tmp_path, smoke=False), {})
    (tmp_path / "out").mkdir()
    about = {"seeds": [1], "changes": [], "smoke": True}
    (tmp_path / "out" / "two-models.json").write_text(json.dumps({"about": about, "cells": []}))
    with pytest.raises(InputError):
        reproduce(table, changed)


def test_significance_of_differences_from_the_baseline(table, tmp_path, monkeypatch):
    fake_training(monkeypatch, with_errors)
    tested = replace(table, baseline="plain")
    text = reproduce(tested, request(tmp_path), columns=["all"])
    assert "| better | – | 100.00† | – |" in text and "†: differs from plain" in text
    cells = json.loads((tmp_path / "out" / "two-models.json").read_text())["cells"]
    p_values = {cell["row"]: cell["p_values"] for cell in cells if cell["column"] == "all"}
    assert p_values["plain"] == [] and 0 < p_values["better"][0] < 0.05
    assert "100.00†" in reproduce(tested, request(tmp_path), rows=["plain"], columns=["all"])  # found before
    found = {("better", "all"): Ours([90.0, 91.0], [0.01, 0.06])}
    assert "| 90.50 ± 0.71 |" in table_text(tested, request(tmp_path), found)  # not in every seed


def test_list_has_hours_and_state(table, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "TABLES", tmp_path)
    monkeypatch.setattr("docnmt_fairseq.reproduce.listing.table_names", lambda: ["two-models"])
    asked = request(tmp_path, smoke=False)
    hours = max(1, 2 * 3000 / (TOKENS_PER_SECOND / 4096) / 3600)
    lines = table_list(asked).splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["table", "hours", "run"], ["two-models", f"{hours:.0f}", "GPU", "no"]
    ]  # fmt: skip
    assert lines[2:4] == ["    Two models (A paper, Table 1)", "    Needs: nothing"]
    (tmp_path / "out").mkdir()
    cells = [{"row": "plain", "column": "all", "ours": [1.0], "p_values": []}]
    cells.append({"row": "plain", "column": "characters", "ours": [], "p_values": []})
    path = tmp_path / "out" / "two-models.json"
    for about, marks in (({"changes": ["--updates 7"]}, ", changed"), ({"smoke": True}, ", smoke"), ({}, "")):
        path.write_text(json.dumps({"about": about, "cells": cells}))
        assert table_list(asked).splitlines()[1].endswith(f"1 of 4 cells{marks}")
    assert "    plain: all: run earlier; characters: not run" in table_list(asked).splitlines()


def test_list_fits_a_terminal(tmp_path):
    text = table_list(Options(tmp_path))
    assert all(len(line) <= WIDTH for line in text.splitlines() if str(tmp_path) not in line)
    joined = " ".join(text.split())
    assert all(f"{what}: {instead}" in joined for what, instead in ELSEWHERE.items())
    assert "Results in this repository: benchmarks/results/recurrent_sanity.md" in joined


def test_hours_with_limited_lines_per_batch(tmp_path):
    (cell,) = [
        one
        for one in read_table("combination-table-1").cells
        if one.row.startswith("text alone") and one.column == "MMT BLEU"
    ]
    for words, lines in (((), 64), (("--batch-size=32",), 32)):
        hours = ScoresOfModels([cell], Options(tmp_path, train_options=words)).hours()
        assert hours == pytest.approx(100_000 * lines * TOKENS_PER_LINE / TOKENS_PER_SECOND / 3600)


def test_rows_without_a_cell(tmp_path):
    assert "| cache | 28.86 | – | – |" in reproduce(read_table("han-table-1"), request(tmp_path), rows=["cache"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory-table-9"], "memory-table-9: unknown table; known: combination-table-1"),
        (["memory-table-2", "--rows", "Mine"], "--rows Mine"),
        (["memory-table-2", "--columns", "TED"], "--columns TED"),
        (["memory-table-2", "--raw", "nowhere"], "--raw nowhere"),
    ],
)
def test_bad_input(words, message, tmp_path, capsys):
    assert cli.main(["reproduce", *words, "--output", str(tmp_path / "out"), "--cpu"]) == 2
    assert message in capsys.readouterr().err


def test_raw_may_have_a_folder_for_each_recipe(tmp_path):
    (tmp_path / "ape").mkdir()
    asked = Options(tmp_path / "out", raw=tmp_path)
    assert recipe_options(asked, "ape").raw == tmp_path / "ape"
    assert recipe_options(asked, "ted_es_en").raw == tmp_path
    assert recipe_options(asked, "ape").output == tmp_path / "out" / "ape"


def test_meteor_needs_the_program(table, tmp_path, monkeypatch, caplog):
    fake_training(monkeypatch, with_errors)
    table = replace(table, columns=[*table.columns, {"title": "METEOR", "recipe": "en_de_small", "score": "meteor"}])
    table = replace(table, rows=[{**row, "published": [None] * 3} for row in table.rows])
    reproduce(table, request(tmp_path))
    assert "plain, METEOR: not computed" in caplog.text
    raw_files(read_dataset_config(SMALL), tmp_path / "raw")
    fake_program(tmp_path / "raw", monkeypatch)
    text = reproduce(table, request(tmp_path / "other", raw=tmp_path / "raw"))
    assert [line.split(" | ")[-2] for line in text.splitlines() if line.startswith("| better")] == ["100.00"]


def test_machine_translation_is_scored_without_a_model(tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch)
    text = reproduce(read_table("combination-table-1"), request(tmp_path), rows=["translation as it is (Section 4.2)"])
    (row,) = [line for line in text.splitlines() if line.startswith("| translation as it is")]
    assert float(row.split(" | ")[-2]) > 0 and not trained


FEW = {"memory-table-2": ["Transformer", "Our model"], "combination-table-1": ["hierarchical"]}
PICTURES = {  # ends of names, by table
    "combination-table-1": {"multi30k-loss", "multi30k-sources"},
    "context-aware-figure-9": {"IMDB"},
    "context-aware-figure-12": {"top-5-training"},
    "context-aware-figure-13": {"loss-32-SGD-0.01"},
    "context-aware-figure-14": {"top-5-training"},
    "context-aware-figure-16": {"surfaces"},
    "context-aware-figure-17": {"CNN"},
    "context-aware-table-3": {"energy", "accuracy"},
    "context-aware-table-4": {"energy", "accuracy"},
    "han-table-1": {"tvsub_zh_en_gpu-loss"},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Output folder of all smoke runs, which share data and models."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.mark.slow
@pytest.mark.parametrize("name", table_names())
def test_smoke(name, shared, capsys):
    table = read_table(name)
    rows = FEW.get(name) or [row["title"] for row in table.rows[:1]]
    columns = [column["title"] for column in table.columns if not name.startswith("context-aware-table")][:1]
    words = ["--rows", *rows, *(["--columns", *columns] if columns else []), "--updates", "2", "--workers", "1"]
    assert cli.main(["reproduce", name, "--smoke", "--output", str(shared), *words]) == 0
    text = capsys.readouterr().out
    found = json.loads((shared / f"{name}.json").read_text())["cells"]
    wanted = columns or [column["title"] for column in table.columns]
    asked = {(row, column) for row in rows for column in wanted}
    assert {(cell["row"], cell["column"]) for cell in found if cell["ours"]} == asked
    assert "meaningless" in text and all(one in text for one in table.all_deviations)
    pictures = {path.stem.removeprefix(f"{name}-") for path in shared.glob(f"{name}-*.png")}
    assert pictures >= PICTURES.get(name, set()) and all(f"({name}-{end}.png)" in text for end in pictures)
