"""Tables of the package: their YAML files, and the models they name."""

import pytest
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import docnmt_fairseq
from docnmt_fairseq.recipes.dataset import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.processes import PLUGIN
from docnmt_fairseq.recipes.recipe import UNEDITED, Options
from docnmt_fairseq.recipes.training import Budget, training_options
from docnmt_fairseq.reproduce.base import FIGURES
from docnmt_fairseq.reproduce.figures.scores import model_name, model_of
from docnmt_fairseq.reproduce.published import COLUMN_KEYS, ROW_KEYS, read_table, read_table_file, table_names
from tests.support.extra_sources import with_extra_sources
from tests.support.pages import ROOT

docnmt_fairseq.register()
BUDGET = Budget("tiny", 4, 60, 4, [], smoke=True)


@pytest.mark.parametrize("name", table_names())
def test_tables_are_complete(name, tmp_path):
    table = read_table(name)
    assert table.cells and (table.figures == "training-log" or any(cell.published is not None for cell in table.cells))
    assert (ROOT / table.page).is_file() and table.needs and table.all_deviations
    assert all(isinstance(one, str) for one in table.all_deviations)
    assert table.results is None or (ROOT / table.results).is_file()
    kind, columns, rows = FIGURES[table.figures], *([one["title"] for one in of] for of in (table.columns, table.rows))
    assert len({*columns}) == len(columns) and len({*rows}) == len(rows) and table.baseline in (None, *rows)
    for part, own in ((table.columns, COLUMN_KEYS), (table.rows, ROW_KEYS)):
        assert all({*one} <= {*own, *kind.settings} for one in part)
    for row in table.rows:
        assert len(row["published"]) == len(columns) and {*row.get("columns", [])} <= {*columns}
    hours = kind(table.cells, Options(tmp_path)).hours()
    assert hours is None or hours > 0
    for recipe in {cell.settings["recipe"] for cell in table.cells if "recipe" in cell.settings}:
        read_dataset_config(recipe_path(recipe))


def cells_of_models():
    cells = [cell for name in table_names() if read_table(name).figures == "scores" for cell in read_table(name).cells]
    named = {(cell.settings["recipe"], model_name(cell)): cell for cell in cells}
    of_models = {name: cell for (_, name), cell in named.items() if name != UNEDITED.replace(" ", "_")}
    return [pytest.param(cell, id=name) for (_, name), cell in named.items() if cell is of_models.get(name)]


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "data-bin")


@pytest.mark.slow
@pytest.mark.parametrize("cell", cells_of_models())
def test_models_of_tables_can_be_built(cell, extra_bin):
    model = model_of(cell)
    words = [str(extra_bin), "--user-dir", str(PLUGIN), *training_options(model, BUDGET, 1)]
    args = options.parse_args_and_arch(options.get_training_parser(), [*words, "--max-tokens", "60"])
    cfg = convert_namespace_to_omegaconf(args)
    assert tasks.setup_task(cfg.task).build_model(cfg.model) is not None


def options_of(table, row, column):
    (cell,) = [cell for cell in read_table(table).cells if (cell.row, cell.column) == (row, column)]
    words = training_options(model_of(cell), BUDGET, 1)
    return {word: words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}


def test_memory_options_are_those_of_the_paper():
    found = options_of("memory-table-2", "Our model", "TED Zh-En")
    assert (found["--memory-scope"], found["--context-init"]) == ("batch", "xavier")  # [M] sec. 4.3, eq. 17
    assert (found["--max-document-sentences"], found["--context-overlap"]) == ("1", "1")
    assert options_of("memory-table-2", "RNNSearch*", "TED Es-En")["--clip-norm"] == "1"
    assert "--context-selection" not in found and "--memory-without-rnn" not in found  # the previous sentence, an RNN
    without = options_of("memory-table-3", "w/o Inter-sentence Attention", "News Es-En")
    assert without["--context-selection"] == "training-set" and "--memory-without-attention" in without
    third = options_of("memory-table-4", "Next N sentence(s)", "N = 3")
    assert (third["--context-sentences"], third["--context-selection"]) == ("3", "next")
    assert (third["--context-overlap"], third["--context-overlap-after"]) == ("0", "3")
    drawn = options_of("memory-table-4", "Random N context sentence(s)", "N = 1")
    assert drawn["--context-selection"] == "random-each-epoch"


def test_tables_share_models():
    names = [
        {model_name(cell) for cell in read_table(table).cells if cell.published == 18.65}
        for table in ("memory-table-2", "memory-table-3", "memory-table-4")
    ]
    assert names == [{"memory-paper"}] * 3


def test_settings_may_depend_on_the_recipe(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text(
        "{title: t, source: s, page: p, needs: n, columns: [{title: a, recipe: ape}, {title: b, recipe: ted_es_en}], "
        "rows: [{title: x, model: {ape: mt-flat, ted_es_en: sentence}, published: [1, 2]}, "
        "{title: y, model: {ape: mt-flat}, options: [--lr, '1'], published: [3, null]}]}"
    )
    cells = read_table_file(path).cells
    assert [(cell.row, cell.column, cell.settings["model"]) for cell in cells] == [
        ("x", "a", "mt-flat"), ("x", "b", "sentence"), ("y", "a", "mt-flat"),
    ]  # fmt: skip
    assert cells[2].settings["options"] == ["--lr", "1"] and model_name(cells[2]) == "mt-flat--lr1"


def test_rows_and_columns_may_exclude_cells(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text(
        "{title: t, source: s, page: p, needs: n, columns: [{title: a, recipe: ape}, "
        "{title: c, recipe: ape}], rows: [{title: x, model: mt-flat, published: [1, 3]}, "
        "{title: y, model: mt-flat, columns: [c], published: [5, 6]}]}"
    )
    cells = read_table_file(path).cells
    assert [(cell.row, cell.column, cell.published) for cell in cells] == [("x", "a", 1), ("x", "c", 3), ("y", "c", 6)]
    assert all({*cell.settings} == {"recipe", "model"} for cell in cells)
