"""Memory and time of a training process per sentence, token and parameter: the constants of docs/scaling.md.

    python -m benchmarks.speed.scaling [--lines 2000000 8000000] [--max-tokens 2048 4096] [--folder DIR]

Loads data-bins of two sizes in new processes, as fairseq-train does up to the first batch, and takes training steps
with two batch sizes. The constants are slopes between the two sizes.
"""

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from fairseq import checkpoint_utils, tasks

from benchmarks.lib.measuring import child_output, peak_of, print_peak, run_benchmark
from benchmarks.lib.reporting import table
from benchmarks.lib.systems import System, configuration
from benchmarks.speed.indexing import PARAGRAPH, VOCABULARY, PeakMemory, make_side
from docnmt_fairseq.data.loading import cache_indexes

TITLE = "Requirements of a training process"
WIDTH, BATCH_TOKENS = 512, 4096
SAVED_TENSORS, SAVED_SIZE = 2**7, 2**21  # of the checkpoint that is written
SIDE = "train.en-de"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--lines", type=int, nargs=2, default=[2_000_000, 8_000_000], help="lines of the data-bins")
    parser.add_argument("--max-tokens", type=int, nargs=2, default=[2048, 4096], help="tokens of a batch")
    parser.add_argument("--folder", type=Path, help="parent of the temporary folder")


def make_data_bin(folder: Path, lines: int) -> Path:
    """Writes a data-bin whose training set has the same tokens on both sides, with its index."""
    folder.mkdir()
    make_side(folder / f"{SIDE}.en", lines)
    words = "".join(f"w{number} 1\n" for number in range(VOCABULARY - PARAGRAPH - 1))
    for side in ("en", "de"):
        (folder / f"dict.{side}.txt").write_text(f"<p> 1\n{words}", encoding="utf-8")
    for ending in ("bin", "idx"):
        os.link(folder / f"{SIDE}.en.{ending}", folder / f"{SIDE}.de.{ending}")
    cache_indexes(folder, ("en", "de"))
    return folder


def settings(data_bin: object, width: int, tokens: int) -> argparse.Namespace:
    """Returns options of :mod:`benchmarks.lib.systems`."""
    sizes = {"layers": 6, "width": width, "ffn": 4 * width, "heads": 4, "dropout": 0.1, "seed": 1}
    more = ["--share-all-embeddings"]
    return argparse.Namespace(data_bin=str(data_bin), max_tokens=tokens, device="cpu", more=more, **sizes)


def child(args: argparse.Namespace) -> None:
    """Measures loading or training steps in this process."""
    torch.set_num_threads(1)
    if args.child[0] == "load":
        print(json.dumps(load(args.child[1])))
    else:
        system, samples = training_of(args.child[1], int(args.child[2]))
        print_peak(lambda: [system.step(sample) for sample in samples])


def load(data_bin: str) -> dict:
    """Returns seconds and anonymous memory after every step of loading a training set."""
    memory, found = PeakMemory(), {}
    task = tasks.setup_task(configuration("conditional", settings(data_bin, 8, BATCH_TOKENS)).task)
    memory.sample()
    found["start"] = [0.0, memory.peak]

    def timed(name: str, function) -> object:
        started = time.perf_counter()
        result = function()
        ctypes.CDLL(None).malloc_trim(0)  # returns freed memory
        memory.peak = 0
        memory.sample()
        found[name] = [time.perf_counter() - started, memory.peak]
        return result

    timed("load", lambda: task.load_dataset("train"))
    dataset = task.dataset("train")
    limits = {"max_tokens": BATCH_TOKENS, "max_positions": (1024, 1024), "seed": 1}
    iterator = task.get_batch_iterator(dataset, **limits)
    count = len(timed("batches", lambda: iterator.frozen_batches))
    epoch = timed("epoch", lambda: iterator.next_epoch_itr(shuffle=True))
    timed("first batch", lambda: next(iter(epoch)))
    return {"steps": found, "sentences": len(dataset.index.items), "batches": count}


def training_of(data_bin: object, tokens: int) -> tuple[System, list[dict]]:
    """Returns a system and its two largest batches."""
    system = System("conditional", settings(data_bin, WIDTH, tokens))
    largest = sorted(system.batches, key=lambda batch: int(system.dataset.sizes[batch].sum()))[-2:]
    return system, [system.dataset.collater([system.dataset[int(i)] for i in batch]) for batch in largest]


def step_memory(data_bin: Path, tokens: int) -> dict[str, int]:
    """Returns parameters, memory of gradients and optimizer, tokens of the largest batch, and peak memory of steps."""
    system, samples = training_of(data_bin, tokens)
    for sample in samples[:1]:
        system.step(sample)
    gradients = sum(one.grad.nbytes for one in system.model.parameters() if one.grad is not None)
    return {
        "parameters": sum(one.numel() for one in system.model.parameters()),
        "kept_bytes": gradients + system.optimizer_bytes(),
        "tokens": max(int(sample["net_input"]["src_lengths"].sum()) for sample in samples),
        "bytes": peak_of(__name__, "--child", "steps", data_bin, tokens),
    }


def checkpoint_seconds(folder: Path, data_bin: Path) -> dict[str, float]:
    """Returns the seconds of saving and loading a gigabyte of a checkpoint."""
    history = dict(criterion_name="x", best_loss=None, optimizer_name="x", lr_scheduler_state={}, num_updates=1)
    state = {
        "cfg": configuration("conditional", settings(data_bin, 8, BATCH_TOKENS)),
        "args": None,
        "model": {str(number): torch.rand(SAVED_SIZE) for number in range(SAVED_TENSORS)},
        "optimizer_history": [history],
        "extra_state": {},
        "task_state": {},
        "last_optimizer_state": None,
    }
    path, started = folder / "checkpoint.pt", time.perf_counter()
    checkpoint_utils.torch_persistent_save(state, str(path))
    saved = time.perf_counter()
    checkpoint_utils.load_checkpoint_to_cpu(str(path))
    loaded, size = time.perf_counter(), path.stat().st_size
    return {"save": (saved - started) / size * 1e9, "load": (loaded - saved) / size * 1e9}


def measure(args: argparse.Namespace) -> dict:
    """Returns all measurements and the constants."""
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder, ranks, sizes = Path(name), [], []
        for number, lines in enumerate(args.lines):
            data_bin = make_data_bin(folder / f"bin-{number}", lines)
            ranks.append(json.loads(child_output(__name__, "--child", "load", data_bin)))
            sizes.append(sum(file.stat().st_size for file in data_bin.iterdir()))
        index_size = sum(file.stat().st_size for file in data_bin.iterdir() if "index" in file.name)
        small_bin = make_data_bin(folder / "steps", 20_000)
        steps = [step_memory(small_bin, tokens) for tokens in args.max_tokens]
        seconds = checkpoint_seconds(folder, small_bin)
    few, many = ranks
    sentences = many["sentences"] - few["sentences"]
    own = [rank["steps"]["first batch"][1] - rank["steps"]["start"][1] for rank in ranks]
    passed = [sum(taken for taken, _ in rank["steps"].values()) for rank in ranks]
    per_token = (steps[1]["bytes"] - steps[0]["bytes"]) / (steps[1]["tokens"] - steps[0]["tokens"])
    constants = {
        "process, bytes per sentence": (own[1] - own[0]) / sentences,
        "process, seconds to the first batch per million sentences": (passed[1] - passed[0]) / sentences * 1e6,
        "index, bytes per sentence on disk and once per machine in memory": index_size / many["sentences"],
        "data-bin with index, bytes per sentence pair on disk": (sizes[1] - sizes[0]) / sentences,
        "process before it loads data, bytes": few["steps"]["start"][1],
        "step, bytes per token and unit of width": per_token / WIDTH,
        "gradient and optimizer state, bytes per parameter": steps[0]["kept_bytes"] / steps[0]["parameters"],
        "saving a checkpoint, seconds per GB": seconds["save"],
        "loading a checkpoint, seconds per GB": seconds["load"],
    }
    return {"constants": constants, "ranks": ranks, "steps": steps}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    rows = []
    for lines, rank in zip(args.lines, figures["ranks"]):
        parts = [f"{1e-6 * size:,.0f} ({seconds:.2f})" for seconds, size in rank["steps"].values()]
        rows.append([f"{lines:,}", f"{rank['sentences']:,}", f"{rank['batches']:,}", *parts])
    steps = [[f"{one['parameters']:,}", f"{one['tokens']:,}", f"{one['bytes'] / 1e6:,.0f}"] for one in figures["steps"]]
    return [
        table(["constant", "measured"], [[name, f"{value:,.3g}"] for name, value in figures["constants"].items()]),
        "Anonymous memory after each step in MB, and seconds of the step, with an existing index:",
        table(["lines", "sentences", "batches", *figures["ranks"][0]["steps"]], rows),
        f"Steps of `conditional`, width {WIDTH}, 6 + 6 layers, {VOCABULARY:,} subwords, float32, beyond the weights:",
        table(["parameters", "source tokens of the largest batch", "MB"], steps),
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.scaling"))
