"""Whole recipes on synthetic data, through the command."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.processes import last_value
from docnmt_fairseq.recipes.training import BEST
from tests.support import toy
from tests.support.recipes import HANDBOOKS, SMALL, changed, fake_training, raw, small_recipe

ROOT = Path(__file__).parents[2]
POST_EDITING = named_recipes()["ape"]
MODELS = {  # representative: task_options, edits, features, jieba and Moses, hold_out, further references, marks
    "en_de_manuals": ["conditional", "concatenation-2to2"],
    "ape": ["mt-hierarchical", "mt-rnn-flat-shared-sentinel"],
    "multi30k": ["caption-rnn", "image-rnn-concatenation"],
    "ted_zh_en": ["conditional"],
    "opensubtitles_es_en": ["memory-paper"],
    "tvsub_zh_en_unseen": ["han-both"],
    "kyoto_ja_en": ["concatenation-2to2"],
}


def recipe(path, output, *options):
    return cli.main(["recipe", str(path), "--output", str(output), "--workers", "1", *options])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "sentence nonsense"], "--models nonsense"),
        (["--processes", "7"], "--processes 7: batch_tokens 4,096"),
        (["--raw", "nowhere"], "--raw nowhere"),
        ([], "train.en: not in --raw"),
    ],
)
def test_bad_input(tmp_path, capsys, options, message):
    assert recipe(SMALL, tmp_path / "out", "--cpu", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["model: [sentence]", "training: {updates: x}", "scores: {metrics: [blue]}", "like: [x"]
)
def test_errors_of_the_file_name_it(tmp_path, text):
    file = tmp_path / "own.yaml"
    file.write_text(f"like: kyoto_ja_en\n{text}\n")
    with pytest.raises(InputError) as error:
        read_dataset_config(file)
    assert str(file) in str(error.value)


def test_unknown_models_and_tasks_of_the_file_are_errors_before_anything_runs(tmp_path):
    for replacement, key in (
        (("model: sentence", "model: nonsense"), "training: start: model: nonsense"),
        (("    document_translation:", "    translation:"), "task_options: translation"),
    ):
        with pytest.raises(InputError, match=key):
            small_recipe(changed(tmp_path, replacement), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_output_belongs_to_one_recipe(tmp_path, capsys):
    raw(read_dataset_config(SMALL), tmp_path / "raw")
    assert recipe(SMALL, tmp_path / "out", "--raw", str(tmp_path / "raw"), "--stop-after", "fetch") == 0
    assert recipe(SMALL, tmp_path / "out", "--smoke", "--stop-after", "fetch") == 2
    assert "belongs to another recipe" in capsys.readouterr().err


def test_start_is_trained_first_with_its_own_options_and_seed(tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch)
    dataset = read_dataset_config(HANDBOOKS)
    models = ("sentence", "concatenation-2to2")
    small_recipe(dataset, tmp_path / "out", models, seeds=(2, 3), train_options=("--lr", "0.5")).run()
    start = tmp_path / "out" / "models" / "start" / BEST
    assert [(call["folder"], call["seed"], call["start"]) for call in trained] == [
        ("start", 1, None),
        *((f"{name}-{seed}", seed, start) for name in models for seed in (2, 3)),
    ]
    first, sentence, _, concatenation, _ = (call["budget"].options for call in trained)
    assert [last_value("--max-document-sentences", one) for one in (first, sentence, concatenation)] == [
        "6",
        "24",
        None,
    ]
    assert last_value("--warmup-updates", first) == "800" and last_value("--warmup-updates", concatenation) == "100"
    assert {last_value("--lr", options) for options in (first, sentence, concatenation)} == {"0.5"}
    assert [call["budget"].updates for call in trained] == [40] * 5
    del trained[:]
    assert small_recipe(dataset, tmp_path / "start", models, stop_after="start").run() is None
    assert [call["folder"] for call in trained] == ["start"]


def test_all_data_bins_are_trained_on(tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch)
    for shards in (3, 1):
        dataset = read_dataset_config(SMALL)
        dataset.prepare["shards"] = shards
        small_recipe(dataset, tmp_path / str(shards), ("sentence",), stop_after="train").run()
    bins = [str(tmp_path / "3" / "data" / name) for name in ("data-bin", "data-bin-1", "data-bin-2")]
    assert [call["bins"] for call in trained] == [bins, [str(tmp_path / "1" / "data" / "data-bin")]]
    assert all((Path(path) / "train.en-de.en.bin").is_file() for path in bins)
    assert trained[0]["data"] != trained[1]["data"]


@pytest.mark.slow
def test_whole_recipe_runs_once(tmp_path, capsys, starts_soon):
    raw(read_dataset_config(SMALL), tmp_path / "raw")
    options = ["--smoke", "--raw", str(tmp_path / "raw"), "--models", "sentence", "--updates", "5"]
    assert recipe(SMALL, tmp_path / "out", *options) == 0
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert table.strip() in capsys.readouterr().out and "| sentence |" in table
    folder = tmp_path / "out" / "models" / "sentence-1"
    reference = list(read_lines(tmp_path / "raw" / "test.en"))
    assert [not line for line in read_lines(folder / "test.txt")] == [not line for line in reference]
    assert json.loads((folder / "scores.json").read_text())["sentences"] == sum(map(bool, reference))
    written = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert recipe(SMALL, tmp_path / "out", *options) == 0
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == written


@pytest.mark.slow
def test_post_editing_with_edit_operations_or_words(tmp_path, capsys):
    for name, options in (("operations", ["--smoke"]), ("words", ["--smoke", "--words"])):
        assert recipe(POST_EDITING, tmp_path / name, *options, "--stop-after", "prepare") == 0
        data = tmp_path / name / "data"
        assert "<keep>" not in (data / "text" / "train.de").read_text(encoding="utf-8")
        assert (data / "edits" / "train.de").is_file() == (name == "operations")
    assert recipe(POST_EDITING, tmp_path / "words", "--smoke", "--stop-after", "prepare") == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_recipe_runs(name, tmp_path, starts_soon):
    names = MODELS[name]
    assert recipe(name, tmp_path / "out", "--smoke", "--models", " ".join(names), "--updates", "4") == 0
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in names)


@pytest.mark.slow
def test_launcher_starts_two_processes(tmp_path):
    launcher = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"
    words = ["--smoke", "--models", "sentence", "--updates", "4", "--processes", "2", "--launcher", launcher]
    assert recipe(SMALL, tmp_path / "out", *words, "--stop-after", "train") == 0
    assert "training on 2 devices" in (tmp_path / "out" / "models" / "sentence-1" / "train.log").read_text()


def start(output, *more):
    options = ["--output", str(output), "--smoke", "--models", "conditional", "--updates", "12", *more]
    main = "import sys; from docnmt_fairseq.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "recipe", "en_de_manuals", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_interrupted_recipe_is_resumed_with_the_same_result(tmp_path):
    whole, output = start(tmp_path / "whole"), tmp_path / "killed"
    assert whole.wait() == 0, whole.communicate()
    model = output / "models" / "conditional-1"
    process = start(output)
    while not (model / "checkpoint_last.pt").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (output / "table.md").exists()
    process = start(output)
    assert process.wait() == 0, process.communicate()
    for name in ("table.md", "models/conditional-1/test.txt"):
        assert (output / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for last in ("models/start/checkpoint_last.pt", "models/conditional-1/checkpoint_last.pt"):
        toy.assert_same_state(output / last, tmp_path / "whole" / last, atol=0, rtol=0)


def train_in_process(command, stream, log):
    """Runs fairseq-train in this process, which saves its imports."""
    import logging

    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.distributed import utils as distributed
    from fairseq_cli import train as fairseq_train

    words = command[command.index("fairseq_cli.train") + 1 :]
    handler, logger = logging.StreamHandler(stream), logging.getLogger("fairseq")
    level = logger.level
    logging.disable(logging.NOTSET)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        args = options.parse_args_and_arch(options.get_training_parser(), words)
        distributed.call_main(convert_namespace_to_omegaconf(args), fairseq_train.main)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.slow
def test_every_model_can_be_initialised_with_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("docnmt_fairseq.recipes.processes.run", train_in_process)
    names = [*read_dataset_config(HANDBOOKS).models, "memory", "ca-att", "previous-flat", "concatenation"]
    options = ["--smoke", "--models", " ".join(names), "--updates", "2", "--stop-after", "train"]
    assert recipe("en_de_manuals", tmp_path, *options) == 0
    weights = set()
    for name in names:
        folder = tmp_path / "models" / f"{name}-1"
        assert "loading pretrained model from" in (folder / "train.log").read_text(encoding="utf-8")
        weights.add(json.loads((folder / "training.json").read_text())["initial_weights"])
    assert len(weights) == 1
