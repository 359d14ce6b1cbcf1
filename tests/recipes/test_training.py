"""Options, commands and records of trainings."""

import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.context.selected.memory_network import MemoryNetwork
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import processes
from docnmt_fairseq.recipes.dataset import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import model, models
from docnmt_fairseq.recipes.processes import Machine, last_value
from docnmt_fairseq.recipes.training import Budget, train, training_options
from tests.support import toy
from tests.support.documents import write_data_bin

CPU = Machine(cpu=True)
BUDGET = Budget("tiny", 20, 80, 10, ["--patience", "9"], smoke=True)


@pytest.fixture
def commands(monkeypatch):
    """Collects commands instead of running them."""
    found = []
    monkeypatch.setattr(processes, "run", lambda command, *rest: found.append(command))
    return found


def parsed(data_bin, name, budget=BUDGET):
    from fairseq import options

    arguments = training_options(model(name), budget, seed=3)
    return options.parse_args_and_arch(options.get_training_parser(), [str(data_bin), *arguments])


def test_every_registered_mechanism_is_a_model():
    assert {"sentence", "concatenation", *CONTEXT_MECHANISMS.names()} <= {*models()}
    with pytest.raises(InputError, match=r"--models nonsense: .* sentence, concatenation"):
        model("nonsense")


@pytest.mark.parametrize("name", sorted(models()))
def test_fairseq_parses_the_options_of_every_model(data_bin, name):
    for budget in (Budget("tiny", 100, 80, 10, [], smoke=True), Budget("base", 100, 80, 10, [])):
        args = parsed(data_bin, name, budget)
        assert args.seed == 3 and args.max_update == 100 and args.lr == [0.003 if budget.smoke else 0.0007]
        assert args.encoder_embed_dim == (512 if not budget.smoke else 32 if "rnn" in args.arch else 64)


def test_a_sentence_is_hardly_ever_in_its_own_memory(tmp_path):
    """[M] sec. 4.3: in training the memory has the contexts of the whole batch."""
    words = (f"w{number}" for number in itertools.count())
    documents = [[[f"{next(words)} {next(words)}" for _ in range(12)]] for _ in range(25)]
    data = write_data_bin(tmp_path, {split: documents for split in ("train", "valid")})
    options = training_options(model("memory-paper"), BUDGET, 1)
    view = options.index("--max-document-sentences")
    assert options[view : view + 4] == ["--max-document-sentences", "1", "--context-overlap", "1"]

    def share(*view):
        """Share of the sentences that are in the memory of their batch."""
        memory = ["--memory-scope", "batch", *view]
        _, task, built = toy.build(data, *memory, arch="document_transformer_memory")
        network = next(part for part in built.train().modules() if isinstance(part, MemoryNetwork))
        dataset, own, all_sentences = toy.split_of(task, "train"), 0, 0
        for numbers in dataset.batch_by_size(dataset.ordered_indices(), max_tokens=72):  # a document, or 12 chunks
            chunks = dataset.chunks
            rows = np.concatenate([np.arange(chunks.context_start[n], chunks.end[n]) for n in numbers])
            decoded = np.concatenate([np.arange(chunks.start[n], chunks.end[n]) for n in numbers])
            layout = dataset.collater([dataset[int(number)] for number in numbers])["net_input"]["layout"]
            plan = network.plan(layout)
            own += np.isin(decoded, rows[plan.set_members.numpy()]).sum()
            all_sentences += len(decoded)
        assert all_sentences == 300
        return own / all_sentences

    assert share() > 0.9 and share(*options[view : view + 4]) < 0.1


@pytest.mark.parametrize("row", [name for name in models() if name.startswith(("mt-rnn-", "image-rnn-"))])
def test_rows_of_the_combination_table_have_published_figures_and_sizes(data_bin, row):
    image = row.startswith("image")
    recipe = read_dataset_config(named_recipes()["multi30k" if image else "ape"])
    assert row in recipe.published.bleu
    args = parsed(data_bin, row, Budget("", 100, 80, 10, recipe.training.options, common=recipe.training.common))
    combination = row.removeprefix("image-rnn-").removeprefix("mt-rnn-").split("-")
    expected = {
        "attention_combination": combination[0], "share_combination_projections": "shared" in combination,
        "attention_sentinel": "sentinel" in combination, "encoder_embed_dim": 300, "encoder_hidden_size": 300,
        "attention_dim": 500, "context_vector_dim": 500, "decoder_hidden_size": 500 if image else 300,
        "attend_with": "updated", "concatenated_contexts": "whole", "lr": [1e-4], "criterion": "cross_entropy",
        "lr_scheduler": "fixed", "adam_betas": (0.9, 0.999), "dropout": 0,
        "decoder_cell": "conditional-gru" if image and combination != ["concatenation"] else "gru-reset-before",
    }  # fmt: skip
    assert {key: getattr(args, key, False) for key in expected} == expected


@pytest.mark.parametrize(
    ("count", "options", "share"),
    [
        (1, [], "--max-tokens 80 --update-freq 1"),
        (4, [], "--max-tokens 20 --update-freq 1"),
        (4, ["--update-freq", "2"], "--max-tokens 40 --update-freq 1"),
        (4, ["--update-freq=8,4"], "--max-tokens 80 --update-freq 2,1"),
        (2, ["--max-sentences", "6", "--batch-size", "8"], "--max-tokens 40 --batch-size 4 --update-freq 1"),
    ],
)
def test_steps_are_divided_among_processes(count, options, share):
    assert " ".join(Machine(count).batch_options(80, options)) == share


def test_steps_that_cannot_be_divided_are_errors():
    with pytest.raises(InputError, match="--batch-size"):
        Machine(2).batch_options(80, ["--batch-size", "3"])
    with pytest.raises(InputError):
        Machine(3).batch_options(80, [])


@pytest.mark.parametrize(
    ("machine", "present", "absent"),
    [
        (Machine(1, cpu=True), ["--cpu"], ["torch.distributed.run", "--distributed-backend"]),
        (Machine(4), ["torch.distributed.run", "--nproc-per-node", "4"], ["--cpu"]),
        (Machine(2, cpu=True), ["torch.distributed.run", "--distributed-backend", "gloo", "--cpu"], []),
        (Machine(4, launcher=("srun", "torchrun")), ["srun", "torchrun", "fairseq_cli.train"], ["--standalone"]),
    ],
)
def test_commands_of_trainings(tmp_path, commands, machine, present, absent):
    train(tmp_path, tmp_path, model("concatenation"), BUDGET, 1, machine, "data")
    (command,) = commands
    assert set(present) <= set(command) and not set(absent) & set(command)
    assert last_value("--max-tokens", command) == str(2 * 80 // machine.processes)  # two sentences per sample


def test_finished_training_is_skipped_and_other_settings_are_errors(tmp_path, commands):
    for _ in range(2):
        train(tmp_path, tmp_path, model("tree"), BUDGET, 1, CPU, "data")
    train(tmp_path, tmp_path, model("tree"), BUDGET, 1, Machine(4), "data")
    assert len(commands) == 1 and json.loads((tmp_path / "training.json").read_text())["data"] == "data"
    for other, key in (
        ((model("tree"), BUDGET, 2, CPU, "data"), "options"),
        ((model("conditional"), BUDGET, 1, CPU, "data"), "options"),
        ((model("tree"), BUDGET, 1, CPU, "other"), "data"),
    ):
        with pytest.raises(InputError, match=f"other {key}"):
            train(tmp_path, tmp_path, *other)


def test_initial_weights_are_recorded(tmp_path, commands):
    starts = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for path, content in zip(starts, (b"weights", b"weights", b"other")):
        path.write_bytes(content)
    folder = tmp_path / "m"
    train(tmp_path, folder, model("concatenation-2to2"), BUDGET, 1, CPU, "data", starts[0])
    assert last_value("--finetune-from-model", commands[0]) == str(starts[0])
    assert last_value("--break-symbol", commands[0]) == "<p>"
    train(tmp_path, folder, model("concatenation-2to2"), BUDGET, 1, CPU, "data", starts[1])  # the same weights
    for start in (starts[2], None):
        with pytest.raises(InputError):
            train(tmp_path, folder, model("concatenation-2to2"), BUDGET, 1, CPU, "data", start)
    train(tmp_path, tmp_path / "scratch", model("concatenation-2to2"), BUDGET, 1, CPU, "data")
    assert not {"--finetune-from-model", "--break-symbol"} & {*commands[-1]}


def test_gpus_use_fused_adam_unless_the_training_began_without(data_bin, tmp_path, commands):
    fused = ["--optimizer", "fused_adamw", "--adam-betas", "(0.9, 0.98)"]
    for name, options in (("adam", []), ("fused", fused)):
        toy.train(data_bin, tmp_path / name, *options, "--max-update", "1")
    for folder, cpu, expected in (
        ("new", False, "fused_adamw"),
        ("new", True, "adam"),
        ("adam", False, "adam"),
        ("fused", True, "fused_adamw"),
    ):
        train(tmp_path, tmp_path / folder, model("sentence"), BUDGET, 1, Machine(cpu=cpu), "data")
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        assert last_value("--optimizer", commands[-1]) == expected
    other = replace(BUDGET, options=["--optimizer", "adafactor"])
    train(tmp_path, tmp_path / "new", model("sentence"), other, 1, Machine(), "data")
    assert last_value("--optimizer", commands[-1]) == "adafactor"


def test_failing_command_shows_the_end_of_its_log(tmp_path):
    log = tmp_path / "x.log"
    command = [sys.executable, "-c", "import sys; print('reason'); sys.exit(3)"]
    with open(log, "w", encoding="utf-8") as stream, pytest.raises(InputError, match=r"status 3; .*x\.log .*\nreason"):
        processes.run(command, stream, log)


PARENT = """
import sys
from pathlib import Path
from docnmt_fairseq.recipes import processes
child = [sys.executable, "-c", "import time; print('started', flush=True); time.sleep(60)"]
processes.run(child, sys.stdout, Path("log"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_commands_end_with_a_killed_parent():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout.readline() == "started\n"
    parent.kill()
    assert parent.stdout.read() == ""  # returns when the child has closed the pipe as well
    assert parent.wait() < 0
