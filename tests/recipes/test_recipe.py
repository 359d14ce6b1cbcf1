"""Whole recipes, on fixtures in the native formats, through the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.recipes import fixtures
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import updates_of
from tests.support import toy
from tests.support.nodes import free_port

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "docnmt_fairseq" / "recipes" / "configs").glob("*.yaml"))
SMALL = ROOT / "docnmt_fairseq" / "recipes" / "configs" / "en_de_small.yaml"
MANUALS = ROOT / "docnmt_fairseq" / "recipes" / "configs" / "en_de_manuals.yaml"
OF_RECIPE = {
    "en_de_manuals": ["conditional", "concatenation-2to2"],  # the one recipe that has options by task
    "en_de_small": ["concatenation-2to2"],
    "ape": ["mt-hierarchical", "mt-rnn-flat-shared-sentinel"],
    "multi30k": ["caption-rnn", "image-rnn-concatenation"],
}
POST_EDITING = ROOT / "docnmt_fairseq" / "recipes" / "configs" / "ape.yaml"


def recipe(path, output, *options):
    return cli.main(["recipe", str(path), "--output", str(output), "--workers", "1", *options])


@pytest.mark.slow
def test_the_whole_way(tmp_path, capsys):
    fixtures.write_raw(read_dataset_config(SMALL), tmp_path / "raw")
    options = ["--smoke", "--raw", str(tmp_path / "raw"), "--models", "sentence", "--updates", "5"]
    assert recipe(SMALL, tmp_path / "out", *options) == 0
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert table.strip() in capsys.readouterr().out and "| sentence |" in table
    folder = tmp_path / "out" / "models" / "sentence-1"
    text = list(read_lines(folder / "test.txt"))
    reference = list(read_lines(tmp_path / "raw" / "test.en"))
    assert [not line for line in text] == [not line for line in reference]  # all its documents: there are few
    assert json.loads((folder / "scores.json").read_text())["sentences"] == sum(map(bool, reference))
    written = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert recipe(SMALL, tmp_path / "out", *options) == 0  # seconds: nothing is done again
    changed = {path.name for path, time in written.items() if path.stat().st_mtime_ns != time}
    assert changed <= {"training.json"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "sentence nonsense"], "--models nonsense: no such model"),
        (["--seeds", "1 x"], "--seeds '1 x': expected numbers with spaces between"),
        (["--seeds", " "], "--seeds ' ': expected numbers with spaces between"),
        (["--seeds", "1 2 01"], "--seeds '1 2 01': 1 comes twice, and would train the same model again; leave one out"),
        (["--processes", "0"], "--processes 0"),
        (["--processes", "7"], "--processes 7: 7 processes cannot share 1 × 4,096 tokens"),
        (["--nodes", "0"], "--nodes 0: at least 1"),
        (["--node-rank", "1"], "--node-rank 1: needs --nodes"),
        (["--nodes", "2"], "--nodes 2: needs --node-rank, from 0 (the first machine) to 1"),
        (["--nodes", "2", "--node-rank", "2", "--rendezvous", "here:1"], "--nodes 2: needs --node-rank"),
        (["--nodes", "2", "--node-rank", "0", "--rendezvous", "here"], "--nodes 2: needs --rendezvous HOST:PORT"),
        (["--updates", "0"], "--updates 0"),
        (["--size", "nope"], "--size nope: document_transformer has no such size, but tiny, small, iwslt, base, big"),
        (["--size", "big", "--models", "rnnsearch"], "--size big: rnnsearch has no such size, but tiny, small, base"),
        (["--raw", "nowhere"], "--raw nowhere: no such folder"),
        ([], "train.en: not in --raw"),
    ],
)
def test_bad_options_end_with_one_line(tmp_path, capsys, options, message):
    assert recipe(SMALL, tmp_path / "out", "--cpu", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "size"),
    [({}, ""), ({"size": "base"}, "base"), ({"smoke": True}, "tiny")],
    ids=["own", "asked", "smoke"],
)
def test_models_with_published_sizes_have_them_unless_others_are_asked_for(tmp_path, options, size):
    made = Recipe(read_dataset_config(POST_EDITING), Options(tmp_path, models=("mt-rnn-flat", "mt-flat"), **options))
    budgets = {name: made._budget_of(chosen) for name, chosen in made.models.items()}
    assert budgets["mt-rnn-flat"].size == size and budgets["mt-flat"].size == (size or "small")
    assert not budgets["mt-rnn-flat"].common


def test_a_size_of_the_recipe_that_models_have_not_is_told_at_once(tmp_path, capsys):
    text = SMALL.read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text.replace("size: small", "size: nope"), encoding="utf-8")
    assert recipe(tmp_path / "mine.yaml", tmp_path / "out") == 2
    assert "training: size: nope: document_transformer has no such size" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_output_belongs_to_one_recipe(tmp_path, capsys):
    fixtures.write_raw(read_dataset_config(SMALL), tmp_path / "raw")
    assert recipe(SMALL, tmp_path / "out", "--raw", str(tmp_path / "raw"), "--until", "get") == 0
    assert recipe(SMALL, tmp_path / "out", "--smoke", "--until", "get") == 2
    assert "belongs to another recipe" in capsys.readouterr().err


@pytest.mark.slow
def test_post_editing_is_of_operations_or_words(tmp_path, capsys):
    for name, options in (("operations", ["--smoke"]), ("words", ["--smoke", "--words"])):
        assert recipe(POST_EDITING, tmp_path / name, *options, "--until", "prepare") == 0
        data = tmp_path / name / "data"
        target = (data / "text" / "train.de").read_text(encoding="utf-8")
        operations = (data / "edits" / "train.de").is_file()
        assert "<keep>" not in target and operations == (name == "operations")
    assert recipe(POST_EDITING, tmp_path / "words", "--smoke", "--until", "prepare") == 2
    assert "another kind of run" in capsys.readouterr().err
    assert recipe(SMALL, tmp_path / "small", "--words") == 2
    assert "--words: only for recipes of automatic post-editing" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_runs(path, tmp_path, starts_soon):
    names = OF_RECIPE.get(path.stem, ["conditional"])
    assert recipe(path, tmp_path / "out", "--smoke", "--models", " ".join(names), "--updates", "4") == 0
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in names)
    for name in names:
        text = list(read_lines(tmp_path / "out" / "models" / f"{name}-1" / "test.txt"))
        reference = list(read_lines(tmp_path / "out" / "data" / "text" / "test.en")) if path != SMALL else text
        assert len(text) == len(reference)


@pytest.mark.slow
@pytest.mark.parametrize("path", [SMALL, MANUALS], ids=lambda path: path.stem)  # the second in half precision
def test_two_processes(path, tmp_path, starts_soon):
    options = ["--smoke", "--models", "sentence", "--updates", "4", "--processes", "2"]
    assert recipe(path, tmp_path / "out", *options) == 0
    assert "num. shared model params" in (tmp_path / "out" / "models" / "sentence-1" / "train.log").read_text()


@pytest.mark.slow
def test_two_machines(tmp_path):
    together = ["--nodes", "2", "--rendezvous", f"127.0.0.1:{free_port()}", "--until", "train", "--models", "sentence"]
    together += ["--updates", "4", "--train-options=--update-freq 2"]
    both = [start(tmp_path / "out", *together, "--node-rank", rank) for rank in "10"]
    printed = "".join("".join(one.communicate()) for one in both)
    assert [one.returncode for one in both] == [0, 0], printed
    folder = tmp_path / "out" / "models" / "sentence-1"
    assert "a step is that of one process; of 2, each: --max-tokens 600 --update-freq 1" in printed
    assert "training on 2 devices" in (folder / "train.log").read_text()
    assert (folder / "train.1.log").exists() and updates_of(folder / "checkpoint_last.pt") == 4


def start(output, *more):
    options = ["--output", str(output), "--smoke", "--models", "conditional", "--workers", "2", *more]
    main = "import sys; from docnmt_fairseq.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "recipe", str(SMALL), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The output of a run that nobody ended."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder)
    assert process.wait() == 0, process.communicate()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "steps"),
    [(signal.SIGKILL, ["prepare", "train", "translate"]), (signal.SIGTERM, ["train"]), (signal.SIGINT, ["translate"])],
)
def test_killed_anywhere_and_run_again_it_gives_the_same(whole, tmp_path, number, steps):
    output = tmp_path / "killed"
    model = output / "models" / "conditional-1"
    begun = {
        "prepare": output / "data" / "models",
        "train": model / "checkpoint_last.pt",
        "translate": model / "generate.log.partial",
    }
    for step in steps:
        process = start(output)
        while not begun[step].exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        process.wait()
        assert not (output / "table.md").exists()
    process = start(output)
    assert process.wait() == 0, process.communicate()
    for name in ("table.md", "models/conditional-1/test.txt"):
        assert (output / name).read_bytes() == (whole / name).read_bytes()
    last = "models/conditional-1/checkpoint_last.pt"
    toy.assert_same_state(output / last, whole / last, atol=0, rtol=0)
