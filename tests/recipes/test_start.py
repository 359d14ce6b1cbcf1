"""A start: one model that is trained first, and that all models begin as."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import machines
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import model
from docnmt_fairseq.recipes.training import BEST, Budget, train
from tests.support import toy
from tests.support.recipes import MANUALS, changed, recipe, untrained

ROOT = Path(__file__).parents[2]
BUDGET = Budget("tiny", 20, 80, 10, [], smoke=True)
HERE = Machine(cpu=True)


@pytest.fixture
def commands(monkeypatch):
    """Returns where commands are put instead of being run."""
    found = []
    monkeypatch.setattr(machines, "run", lambda command, *rest, **more: found.append(command))
    return found


def value(words, option):
    """Returns what a command gives an option last."""
    return words[len(words) - list(reversed(words)).index(option)]


def test_a_model_begins_with_the_weights_of_the_start(tmp_path, commands):
    start = tmp_path / "start.pt"
    start.write_bytes(b"weights")
    for name in ("tree", "concatenation-2to2"):
        train(tmp_path, tmp_path / name, model(name), BUDGET, 1, HERE, "data", start)
    tree, concatenation = commands
    assert value(tree, "--finetune-from-model") == value(concatenation, "--finetune-from-model") == str(start)
    assert value(concatenation, "--break-symbol") == "<p>" and "--break-symbol" not in tree
    train(tmp_path, tmp_path / "by itself", model("concatenation-2to2"), BUDGET, 1, HERE, "data")
    assert not {"--finetune-from-model", "--break-symbol"} & {*commands[2]}
    assert "initial_weights" not in json.loads((tmp_path / "by itself" / "training.json").read_text())


@pytest.mark.parametrize(
    "name",
    ["memory-paper", "memory", "context-aware", "han-both", "conditional-target", "tree", "sentence", "rnnsearch"],
)
def test_from_scratch_a_gate_is_the_papers(tmp_path, commands, name):
    (tmp_path / "start.pt").write_bytes(b"weights")
    gated = name not in ("tree", "sentence", "rnnsearch")
    train(tmp_path, tmp_path / "begins", model(name), BUDGET, 1, HERE, "data", tmp_path / "start.pt")
    train(tmp_path, tmp_path / "alone", model(name), BUDGET, 1, HERE, "data")
    train(
        tmp_path, tmp_path / "told", model(name), replace(BUDGET, options=["--context-init", "zero"]), 1, HERE, "data"
    )
    begins, alone, told = commands
    assert "--context-init" not in begins  # the identity at the start
    assert ("--context-init" in alone and value(alone, "--context-init") == "xavier") == gated
    assert value(told, "--context-init") == "zero"


def test_another_start_is_refused_wherever_it_is(tmp_path, commands):
    (tmp_path / "a").write_bytes(b"weights")
    (tmp_path / "b").write_bytes(b"weights")
    train(tmp_path, tmp_path / "m", model("tree"), BUDGET, 1, HERE, "data", tmp_path / "a")
    train(tmp_path, tmp_path / "m", model("tree"), BUDGET, 1, HERE, "data", tmp_path / "b")
    (tmp_path / "b").write_bytes(b"other weights")
    train(tmp_path, tmp_path / "n", model("tree"), BUDGET, 1, HERE, "data")
    for folder, start in (("m", tmp_path / "b"), ("m", None), ("n", tmp_path / "a")):
        with pytest.raises(InputError, match=r"holds a model of other initial weights .* remove the folder"):
            train(tmp_path, tmp_path / folder, model("tree"), BUDGET, 1, HERE, "data", start)
    assert len(commands) == 3


def test_the_start_is_trained_first_with_options_and_a_seed_of_its_own(tmp_path, monkeypatch):
    trained, _ = untrained(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    models = ("sentence", "concatenation-2to2")
    one = recipe(dataset, tmp_path / "out", models, seeds=(2, 3), train_options=("--lr", "0.5"))
    one.run()
    start = tmp_path / "out" / "models" / "start" / BEST
    assert [(call["folder"], call["seed"], call["start"]) for call in trained] == [
        ("start", 1, None),
        *((f"{name}-{seed}", seed, start) for name in models for seed in (2, 3)),
    ]
    first, sentence, _, concatenation, _ = (call["budget"].options for call in trained)
    assert value(first, "--max-document-sentences") == "6" and value(sentence, "--max-document-sentences") == "24"
    assert value(first, "--warmup-updates") == "800" and value(concatenation, "--warmup-updates") == "100"
    assert "--max-document-sentences" not in concatenation and "--context-dropout" not in concatenation
    assert {value(options, "--lr") for options in (first, sentence, concatenation)} == {"0.5"}  # the command line's
    assert [call["budget"].updates for call in trained] == [40] * 5
    del trained[:]
    assert recipe(dataset, tmp_path / "start", models, until="start").run() is None
    assert [call["folder"] for call in trained] == ["start"]
    whole = recipe(dataset, tmp_path / "other", models, smoke=False, updates=7)
    assert whole.budget.updates == 7 and whole.start.updates == dataset.training.start.updates


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    updates: 4000", "    updats: 12000", "training: start: unknown updats; there are model, options, seed"),
        ("    updates: 4000", "    updates: 0", "training: start: updates: 0 is not a number from 1 on"),
        ("    updates: 4000", "    updates: many", "training: start: updates: expected a whole number, got 'many'"),
        ("    updates: 4000", "", "training: start: .*updates"),
        ('--lr, "0.0015",', "--lr, 0.0015,", r"training: start: options: .* numbers in quotes .* 0\.0015"),
        ('--lr, "0.0007",', "--lr, 0.0007,", r"training: options: expected a list of options, numbers in quotes"),
        (
            '[--max-document-sentences, "24", ',
            "[--max-document-sentences, 24, ",
            "training: task_options: document_translation:",
        ),
        (
            "  task_options:\n    document_translation: ",
            "  task_options: ",
            "training: task_options: expected options by task",
        ),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"changed.yaml: {message}"):
        changed(tmp_path, (old, new))


def test_names_of_models_and_tasks_are_checked_before_anything_is_done(tmp_path):
    with pytest.raises(InputError, match="training: start: model: nonsense: no such model; there are sentence"):
        recipe(changed(tmp_path, ("model: sentence", "model: nonsense")), tmp_path / "out")
    with pytest.raises(InputError, match="task_options: translation: no such task; there are document_translation, co"):
        recipe(changed(tmp_path, ("    document_translation:", "    translation:")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def train_here(command, stream, log, check=None):
    """Runs fairseq-train in this process, which spares each its imports."""
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
def test_every_model_begins_as_a_sentence_level_one(tmp_path, monkeypatch):
    monkeypatch.setattr(machines, "run", train_here)
    more = "memory ca-att previous-flat concatenation"
    names = [*read_dataset_config(MANUALS).models, *more.split()]
    options = ["--smoke", "--models", " ".join(names), "--updates", "2", "--workers", "1", "--until", "train"]
    assert cli.main(["recipe", "en_de_manuals", "--output", str(tmp_path), *options]) == 0
    digests = set()
    for name in names:
        folder = tmp_path / "models" / f"{name}-1"
        assert "loading pretrained model from" in (folder / "train.log").read_text(encoding="utf-8")
        digests.add(json.loads((folder / "training.json").read_text())["initial_weights"])
    assert len(digests) == 1


def begin(output):
    options = ["--output", str(output), "--smoke", "--models", "conditional", "--workers", "1", "--until", "train"]
    main = "import sys; from docnmt_fairseq.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "recipe", "en_de_manuals", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_in_the_start_or_after_it_and_run_again_it_gives_the_same(tmp_path):
    whole, output = begin(tmp_path / "whole"), tmp_path / "killed"
    assert whole.wait() == 0, whole.communicate()
    models = output / "models"
    for moment in (models / "start" / "checkpoint_last.pt", models / "conditional-1" / "checkpoint_last.pt"):
        process = begin(output)
        while not moment.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = begin(output)
    assert process.wait() == 0, process.communicate()
    for last in ("start/checkpoint_last.pt", "conditional-1/checkpoint_last.pt"):
        toy.assert_same_state(models / last, tmp_path / "whole" / "models" / last, atol=0, rtol=0)
