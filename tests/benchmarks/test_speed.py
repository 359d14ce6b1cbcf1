"""Every speed benchmark runs with tiny sizes; parts of them compute what they should."""

import importlib
import json
import math
import sys
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDataset

from benchmarks.lib import measuring
from benchmarks.lib.reporting import RESULTS, Store, write
from benchmarks.lib.systems import System
from benchmarks.speed import complexity, generation_speed, indexing, tree_crossover
from docnmt_fairseq.data.index import DocumentIndex, Marks
from tests.support import toy
from tests.support.documents import DOCUMENTS

SIZES = ["--width", "8", "--ffn", "8", "--heads", "2", "--layers", "2", "--max-tokens", "60"]
TRAINING = ["{bin}", "--rounds", "1", "--steps", "1", "--warmup", "1", *SIZES]
RUNS = {
    "complexity": ["--heads", "2", "--head-dim", "4", "--seconds", "0"],
    "conditional_attention": ["--t", "2", "--kernels", "torch"],
    "generation_speed": ["{bin}", "--every", "1", "--rounds", "1", *SIZES],
    "indexing": ["--lines", "2000"],
    "serving": ["--path", "{work}/model/checkpoint_last.pt", "--data", "{work}", "--text", "{work}/test.src",
                "--requests", "3", "--clients", "1", "2", "--documents", "3", "--beam", "1"],
    "scaling": ["--lines", "2000", "4000", "--max-tokens", "700", "1400"],
    "translation_engines": ["--sentences", "8", "--document", "4", "--words", "4", "--length", "3", "--vocabulary",
                            "60", "--rounds", "1", "--systems", "stock", "sentence", "sentence int8",
                            "ctranslate2 float32", "conditional", *SIZES],
    "tree_crossover": ["--sentences", "4", "8", "--words", "16", "--t", "2", "--kernels", "torch", "--rounds", "1"],
}  # fmt: skip
COMPARISONS = {
    "systems": "training_speed", "mechanisms": "mechanism_speed", "finetuning": "finetuning",
    "precision": "half_precision", "selection": "selection_loss",
}  # fmt: skip
CONSTANTS = {
    "complexity": {"SENTENCES": [2, 4], "WORDS": 2, "SENTENCE_WORDS": [2, 3], "AT_SENTENCES": 2},
    "conditional_attention": {"SIZES": {4: 1}, "MEMORY_SIZES": (4,), "ERROR_SENTENCES": 4, "WORDS": 3},
    "scaling": {"WIDTH": 8, "SAVED_SIZE": 4},
}
OPTIONS = {"layers": 2, "width": 8, "ffn": 8, "heads": 2, "dropout": 0.1, "seed": 1, "more": [], "device": "cpu"}


@pytest.fixture
def run(data_bin, tmp_path, monkeypatch):
    """Runs a benchmark and returns its figures; the published results must not change."""
    for name, value in measuring.ALLOCATOR.items():
        monkeypatch.setenv(name, value)  # no restart of this process

    def call(name, words, result=None, **places):
        module = importlib.import_module(f"benchmarks.speed.{name}")
        for constant, value in CONSTANTS.get(name, {}).items():
            monkeypatch.setattr(module, constant, value)
        before = {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*")}
        threads = torch.get_num_threads()
        words = [word.format(bin=data_bin, **places) for word in words]
        try:
            measuring.run_benchmark(f"benchmarks.speed.{name}", [*words, "--results", str(tmp_path)])
        finally:
            torch.set_num_threads(threads)
        assert before == {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*")}
        assert (tmp_path / f"{result or name}.md").stat().st_size > 300
        return json.loads((tmp_path / f"{result or name}.json").read_text(encoding="utf-8"))

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_benchmark_runs(name, run, request, monkeypatch, ready_python):
    if name != "serving":  # the output of a forked process is passed on at its end
        monkeypatch.setattr(sys, "executable", ready_python)
    if name in ("complexity", "conditional_attention"):
        monkeypatch.setattr(importlib.import_module(f"benchmarks.speed.{name}"), "peak_of", lambda *_: 1000)
    places = {"work": request.getfixturevalue("prepared_model")} if "{work}" in RUNS[name] else {}
    run(name, RUNS[name], **places)


@pytest.fixture
def prepared_model(data_bin, tmp_path):
    """Prepared data with a trained model and a test set."""
    folder = tmp_path / "work"
    toy.as_prepared(data_bin, folder)
    toy.train(data_bin, folder / "model", "--max-update", "1")
    for side, reverse in (("src", False), ("tgt", True)):
        lines = []
        for document in DOCUMENTS["test"]:
            sentences = [s.split() for paragraph in document for s in paragraph]
            lines += [" ".join(s[::-1] if reverse else s) for s in sentences] + [""]
        (folder / f"test.{side}").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARISONS)
def test_training_comparison(name, run, monkeypatch):
    monkeypatch.setattr("benchmarks.speed.training_speed.peak_of", lambda *_: 1000)
    more = ["--only", "han", "concatenation-2to2", "ca-nn"] if name == "mechanisms" else []
    figures = run("training_speed", [*TRAINING, "--compare", name, *more], COMPARISONS[name])["systems"]
    assert len(figures) > 1 and next(iter(figures.values()))["ratio"] == 1
    if name == "finetuning":
        assert figures["context only"]["trained"] < figures["all parameters"]["trained"]


def test_exponent_of_a_power():
    points = [{"sentences": n, "core": 3 * n**1.7, "layer": None} for n in (32, 64, 512)]
    assert math.isclose(complexity.exponent(points, "sentences", "core"), 1.7)
    assert math.isnan(complexity.exponent(points, "sentences", "layer"))


def test_crossover_is_where_the_tree_stays_faster():
    ratios = {16: 2.0, 32: 0.9, 64: 1.1, 128: 0.8, 256: 0.5}
    points = [{"sentences": n, "t": 4, "times": {"torch": {"ratio": ratio}}} for n, ratio in ratios.items()]
    assert tree_crossover.crossover(points, "torch", 4) == "128 sentences"
    assert tree_crossover.crossover(points[:3], "torch", 4) == "not reached"


def test_recall_grows_with_t():
    args = Namespace(kernels=["torch"], heads=2, head_dim=8)
    torch.manual_seed(0)
    document = tree_crossover.document(33, 66)
    recalls = [tree_crossover.tree_recall(document, t, 0.0, "cumulative", args) for t in (1, 8, 32)]
    assert recalls == sorted(recalls) and recalls[0] < 0.9 and recalls[2] > 0.99


def test_written_side_is_read_by_fairseq(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "CHUNK_DOCUMENTS", 20)
    indexing.make_side(tmp_path / "side", 3000)
    side = MMapIndexedDataset(str(tmp_path / "side"))
    lines = [side[i].numpy() for i in range(len(side))]
    assert len(lines) == 3000 and all(line[-1] == indexing.EOS for line in lines)
    marks = Marks.read(side, indexing.PARAGRAPH)
    assert marks.document_end.tolist() == [len(line) == 1 for line in lines]
    assert len(DocumentIndex.build(marks, "side")) == marks.document_end.sum() and marks.document_end[-1]


@pytest.mark.slow
def test_systems_train_on_the_same_target_tokens(data_bin):
    args = Namespace(data_bin=str(data_bin), max_tokens=60, **OPTIONS)
    expected = sum(len(s.split()) + 1 for document in DOCUMENTS["train"] for paragraph in document for s in paragraph)
    for name in ("sentence", "concatenation-2to2", "concatenation-4to1", "previous-flat", "ca-res"):
        system = System(name, args)
        samples = system.samples(0, len(system.batches))
        assert sum(system.target_tokens(sample) for sample in samples) == expected, name


def test_windows_have_up_to_three_previous_sentences(data_bin):
    args = Namespace(data_bin=str(data_bin), every=1, max_tokens=60, beam=2, **OPTIONS)
    windows, last = (generation_speed.Translator(name, args).dataset for name in generation_speed.WINDOWS)
    breaks = [int(np.sum(windows.src[i].numpy() == windows.src_dict.index("<p>"))) for i in range(len(windows))]
    assert breaks == [0, 1, 2, 3, 0, 0, 1, 2, 3, 3, 3]
    assert windows.src_dict.string(windows.src[3]) == "a b c <p> d <p> e e a <p> b"
    assert windows.tgt_dict.string(windows.tgt[3]) == "c b a <p> d <p> a e e <p> b"
    assert last.tgt_dict.string(last.tgt[3]) == "b"


def test_store_and_report_keep_earlier_results_and_findings(tmp_path):
    for name in ("one", "two"):
        stored = Store(tmp_path / "kept.json")
        stored.add_call()
        stored.add(name, {"model": "m", "seed": len(name)})
    assert list(Store(stored.path).runs) == ["one", "two"] and len(Store(stored.path).facts["calls"]) == 1
    write("kept", ["# Title", *stored.provenance()], tmp_path)
    page = tmp_path / "kept.md"
    page.write_text(page.read_text().replace("## Commands", "## Findings\n\nBy hand.\n\n## Commands"))
    for _ in range(2):
        write("kept", ["# Title", *stored.provenance()], tmp_path)
    assert page.read_text().count("## Findings\n\nBy hand.\n\n## Commands") == 1
