"""Every benchmark runs, at sizes at which its figures mean nothing."""

import importlib
import pkgutil
import sys

import pytest
import torch

import benchmarks
from benchmarks.lib import machine
from benchmarks.lib.machine import RESULTS
from benchmarks.lib.preprocess import fairseq_preprocess
from docnmt_fairseq.corpus.synth import SynthOptions, write_corpus
from tests.support import toy

pytestmark = pytest.mark.slow
SIZES = ["--width", "8", "--ffn", "8", "--heads", "2", "--layers", "2", "--max-tokens", "60"]
RUNS = {  # what is given to each; {bin}: a data-bin, {work}: an artificial corpus with a model
    "experiments.post_editing": (
        [
            "--models",
            "mt-rnn-flat",
            "--seeds",
            "1",
            "--updates",
            "2",
            "--sentences",
            "40",
            "9",
            "9",
            "--work",
            "{tmp}",
            "--results",
            "{tmp}",
        ],
        ["post_editing.md", "post_editing.json"],
    ),
    "speed.complexity": (["--heads", "2", "--head-dim", "4"], ["complexity.md", "complexity.png"]),
    "speed.conditional_attention": (["--t", "2", "--kernels", "torch"], ["conditional_attention.md"]),
    "speed.contrast_speed": (
        ["--items", "{work}/test.phenomena.tsv", "--data", "{work}/bin", "--path", "{work}/model/checkpoint_last.pt"],
        ["contrast_speed.md"],
    ),
    "speed.finetuning": (
        ["{bin}", "--rounds", "1", "--steps", "1", "--warmup", "1", *SIZES],
        ["finetuning.md", "finetuning.json"],
    ),
    "speed.generation_speed": (["{bin}", "--every", "1", "--rounds", "1", *SIZES], ["generation_speed.md"]),
    "speed.half_precision": (
        ["{bin}", "--rounds", "1", "--steps", "1", "--warmup", "1", *SIZES],
        ["half_precision.md", "half_precision.json"],
    ),
    "speed.indexing": (["--lines", "2000"], ["indexing.md"]),
    "speed.scaling": (["--lines", "2000", "4000", "--max-tokens", "700", "1400"], ["scaling.md", "scaling.json"]),
    "speed.mechanism_speed": (
        [
            "{bin}",
            "--models",
            "stock",
            "han",
            "ca-nn",
            "--rounds",
            "1",
            "--steps",
            "1",
            "--warmup",
            "1",
            *SIZES,
        ],
        ["mechanism_speed.md"],
    ),
    "speed.operation_counts": (
        ["--systems", "stock,conditional", "--sentences", "6", "--documents", "2", "--layers", "2", "--width", "8"],
        ["operation_counts.md", "operation_counts.json"],
    ),
    "speed.update_operations": (["--layers", "1", "--width", "8"], ["update_operations.md", "update_operations.json"]),
    "speed.translation_engines": (
        [
            "--sentences",
            "8",
            "--document",
            "4",
            "--words",
            "4",
            "--length",
            "3",
            "--vocabulary",
            "60",
            "--rounds",
            "1",
            *SIZES,
        ],
        ["translation_engines.md", "translation_engines.json"],
    ),
    "speed.precision_on_text": (
        [
            "--data",
            "{work}/prepared",
            "--source",
            "{work}/test.src",
            "--reference",
            "{work}/test.tgt",
            "--parts",
            "1",
            "--models",
            "one={work}/model/checkpoint_last.pt",
            "--rounds",
            "1",
            "--sentences",
            "3",
            "--beam",
            "2",
        ],
        ["precision_on_text.md", "precision_on_text.json"],
    ),
    "speed.prepare_scale": (
        [
            "--pairs",
            "300",
            "--shards",
            "2",
            "--workers",
            "1",
            "--vocab-size",
            "400",
            "--sample-documents",
            "20",
            "--pool",
            "2000",
            "--binarise-lines",
            "2000",
        ],
        ["prepare_scale.md", "prepare_scale.json"],
    ),
    "speed.profile_steps": (["{bin}", "--steps", "1", "--every", "1", *SIZES], ["profile.md"]),
    "speed.recurrent_speed": (["--width", "4", "--rows", "3", "--rounds", "1"], ["recurrent_speed.md"]),
    "speed.selection_loss": (
        ["{bin}", "--rounds", "1", "--steps", "1", "--warmup", "1", *SIZES],
        ["selection_loss.md", "selection_loss.json"],
    ),
    "speed.training_speed": (
        ["{bin}", "--rounds", "1", "--steps", "1", "--warmup", "1", *SIZES],
        ["training_speed.md", "training_speed.json"],
    ),
    "speed.triton_programs": (
        ["--targets", "90", "--programs", "delta", "combine"],
        ["triton_programs.md", "triton_programs.json"],
    ),
    "speed.tree_crossover": (
        ["--sentences", "4", "8", "--words", "16", "--t", "2", "--kernels", "torch", "--rounds", "1"],
        ["tree_crossover.md"],
    ),
    "experiments.context_aware_sanity": (["--seeds", "2"], ["context_aware_sanity.md"]),
    "experiments.recurrent_sanity": (["--seeds", "2"], ["recurrent_sanity.md"]),
}
NEEDS = {"speed.triton_programs": "triton"}  # libraries that are not everywhere
NO_PROCESSES = {"peak_of": lambda *_: 1000}  # one for each point; see test_peak_memory
SMALLER = {  # constants of the modules
    "speed.complexity": {
        "SENTENCES": [2, 4],
        "WORDS": 2,
        "SENTENCE_WORDS": [2, 3],
        "AT_SENTENCES": 2,
        "STEPS": 1,
        **NO_PROCESSES,
    },
    "speed.conditional_attention": {
        "SIZES": {4: 1},
        "MEMORY_SIZES": (4,),
        "ERROR_SENTENCES": 4,
        "WORDS": 3,
        **NO_PROCESSES,
    },
    "speed.finetuning": NO_PROCESSES,
    "speed.scaling": {"WIDTH": 8, "PARAMETERS_OF_A_TENSOR": 4},
    "speed.precision_on_text": NO_PROCESSES,
    "experiments.context_aware_sanity": {"STEPS": 2},
    "experiments.recurrent_sanity": {"ITERATIONS": 2, "SETTINGS": [(4, "Adam", 0.01)]},
}
TOLD_ELSEWHERE = {
    "speed.serving": "tests/serve/test_load.py",
    "speed.sentence_vectors": "its parts are those of docnmt embed",
    "experiments.comparison": "test_comparison.py; it trains by recipes",
    "experiments.manuals": "test_manuals.py",
    "experiments.manuals_by_model": "test_manuals_by_model.py",
    "experiments.manuals_by_updates": "test_manuals_by_updates.py",
    "experiments.manuals_small_budget": "test_manuals_small_budget.py",
    "experiments.manuals_context_only": "test_manuals_small_budget.py",
    "experiments.manuals_corrected": "test_manuals_small_budget.py",
    "experiments.manuals_told": "test_manuals_small_budget.py",
    "experiments.register_by_project": "test_manuals.py",
    "experiments.register_worth": "test_manuals.py",
    "experiments.selection": "test_selection.py; it trains",
    "experiments.small_data": "test_small_data.py",
    "experiments.talks_and_news": "test_talks_and_news.py",
    "experiments.variants": "test_comparison.py; it trains by recipes",
    "experiments.long_range": "test_long_range.py runs it",
    "experiments.long_range_diagnosis": "test_long_range.py",
    "gpu.__main__": "test_run_book.py",
    "robustness.corpora": "tests/robustness/test_random_corpora.py",
    "robustness.fuzz": "tests/robustness/test_damaged_files.py",
    "robustness.kills": "tests/robustness/test_kills.py",
}


def runnable():
    """Yields the benchmarks that have a command line."""
    for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
        if not found.ispkg and hasattr(importlib.import_module(found.name), "main"):
            yield found.name.removeprefix("benchmarks.")


def test_every_benchmark_is_importable_and_run_by_a_test():
    assert sorted({*RUNS, *TOLD_ELSEWHERE, "summary"}) == sorted(runnable())


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    write_corpus(SynthOptions(train_documents=20, valid_documents=1, test_documents=1), folder)
    arguments = ["-s", "src", "-t", "tgt", "--destdir", str(folder / "bin"), "--joined-dictionary"]
    arguments += [f"--{split}pref={folder / split}" for split in ("train", "test")]
    fairseq_preprocess(arguments)
    context = ["--context-attention", "conditional", "--context-init", "xavier", "--max-update", "1"]
    toy.train(folder / "bin", folder / "model", *context)
    toy.as_prepared(folder / "bin", folder / "prepared")
    return folder


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [module.__name__, *arguments])
    threads = torch.get_num_threads()
    try:
        module.main()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "name, size",
    [("complexity", ["tree", "4", "2"]), ("conditional_attention", ["torch", "8", "2", "fwd + bwd"])],
)
def test_peak_memory(name, size, monkeypatch, capsys):
    run(importlib.import_module(f"benchmarks.speed.{name}"), monkeypatch, "--memory-of", *size)
    assert int(capsys.readouterr().out) >= 0


def figures():
    """What is published, by its file."""
    return {path: path.read_bytes() for path in RESULTS.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_it_runs(name, data_bin, request, tmp_path, monkeypatch, starts_soon):
    arguments, written = RUNS[name]
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    places = {"bin": str(data_bin), "tmp": str(tmp_path)}
    if any("{work}" in word for word in arguments):
        places["work"] = str(request.getfixturevalue("work"))
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in SMALLER.get(name, {}).items():
        monkeypatch.setattr(module, constant, value)
    for one in (machine, module):
        if hasattr(one, "RESULTS"):
            monkeypatch.setattr(one, "RESULTS", tmp_path)
    for key, value in machine.KEEPING.items():
        monkeypatch.setenv(key, value)  # or it would start this process anew
    before = figures()
    run(module, monkeypatch, *(word.format(**places) for word in arguments))
    assert before == figures(), "the figures of real runs"
    for file in written:
        assert (tmp_path / file).stat().st_size > 100
