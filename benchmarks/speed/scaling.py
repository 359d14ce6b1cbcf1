"""What a rank of a training needs, as constants of formulas: a sentence, a batch, a parameter, a token at a time.

    python -m benchmarks.speed.scaling [--lines 2000000 8000000] [--max-tokens 2048 4096] [--folder DIR]

Makes data-bins of random tokens, keeps their index, and loads each in a fresh process as a rank of ``fairseq-train``
does, with the first batch of an epoch; then takes training steps of two batch sizes. Slopes between two sizes are the
constants. Writes benchmarks/results/scaling.md and .json; docs/scaling.md says what follows from them.
"""

import argparse
import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List

from benchmarks.lib.machine import ROOT, begin, command, machine, publish, table
from benchmarks.lib.peak_memory import print_peak
from benchmarks.speed.indexing import PARAGRAPH, VOCABULARY, PeakOfOwnMemory, make_side

WIDTH = 512
TOKENS_OF_A_BATCH = 4096
PARAMETERS_OF_A_TENSOR = 2**21


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs=2, default=[2_000_000, 8_000_000], help="of the data-bins")
    parser.add_argument("--max-tokens", type=int, nargs=2, default=[2048, 4096], help="of the batches of steps")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes (default: the system's)")
    parser.add_argument("--rank", metavar="DATA_BIN", help=argparse.SUPPRESS)  # a fresh process
    parser.add_argument("--step", nargs=2, metavar=("DATA_BIN", "TOKENS"), help=argparse.SUPPRESS)
    return parser.parse_args()


def make_data_bin(folder: Path, lines: int) -> Path:
    """Writes a data-bin with a training set, the same tokens on both sides, and its kept index."""
    from docnmt_fairseq.data.kept_index import keep_indexes

    folder.mkdir()
    make_side(folder / "train.en-de.en", lines)
    words = "".join(f"w{number} 1\n" for number in range(VOCABULARY - PARAGRAPH - 1))
    for side in ("en", "de"):
        (folder / f"dict.{side}.txt").write_text(f"<p> 1\n{words}", encoding="utf-8")
    for ending in ("bin", "idx"):
        os.link(folder / f"train.en-de.en.{ending}", folder / f"train.en-de.de.{ending}")
    keep_indexes(folder, ("en", "de"))
    return folder


def settings(data_bin: str, width: int, tokens: int) -> argparse.Namespace:
    """Returns options as those of :mod:`benchmarks.lib.systems`."""
    sizes = {"layers": 6, "width": width, "ffn": 4 * width, "heads": 4, "dropout": 0.1, "seed": 1}
    return argparse.Namespace(
        data_bin=data_bin, max_tokens=tokens, device="cpu", more=["--share-all-embeddings"], **sizes
    )


def measure_rank(data_bin: str) -> dict:
    """Returns what a rank has in memory of its own after each step, and the seconds that it took."""
    from fairseq import tasks

    from benchmarks.lib.systems import configuration

    memory = PeakOfOwnMemory()
    cfg = configuration("conditional", settings(data_bin, 8, TOKENS_OF_A_BATCH), tiny=True)
    task = tasks.setup_task(cfg.task)
    memory.sample()
    found: Dict[str, List[float]] = {"start": [0.0, memory.peak * 1024]}

    def timed(name: str, function) -> object:
        started = time.perf_counter()
        result = function()
        ctypes.CDLL(None).malloc_trim(0)  # what is free already is not needed
        memory.peak = 0
        memory.sample()
        found[name] = [time.perf_counter() - started, memory.peak * 1024]
        return result

    with task.for_training():
        timed("load", lambda: task.load_dataset("train"))
        dataset = task.dataset("train")
    iterator = timed("batches", lambda: batches_of(task, dataset))
    epoch = timed("epoch", lambda: iterator.next_epoch_itr(shuffle=True))
    timed("first batch", lambda: next(iter(epoch)))
    index = dataset.index
    counts = {"sentences": len(index.items), "documents": len(index), "batches": len(iterator.frozen_batches)}
    return {"steps": found, **counts}


def batches_of(task: object, dataset: object) -> object:
    """Returns the iterator over epochs, with its batches made."""
    iterator = task.get_batch_iterator(dataset, max_tokens=TOKENS_OF_A_BATCH, max_positions=(1024, 1024), seed=1)
    assert iterator.frozen_batches
    return iterator


def take_steps(data_bin: str, tokens: int) -> None:
    """Takes two updates, so that the state of the optimiser is there in the second, and prints what they need."""
    import torch

    from benchmarks.lib.systems import System

    torch.set_num_threads(1)
    system = System("conditional", settings(data_bin, WIDTH, tokens))
    largest = sorted(system.batches, key=lambda batch: int(system.dataset.sizes[batch].sum()))[-2:]
    samples = [system.dataset.collater([system.dataset[int(i)] for i in batch]) for batch in largest]

    def steps() -> None:
        for sample in samples:
            system.optimizer.zero_grad()
            loss = system.task.train_step(sample, system.model, system.criterion, system.optimizer, 0)[0]
            assert loss.isfinite()
            system.optimizer.step()

    peak = io.StringIO()
    with contextlib.redirect_stdout(peak):
        print_peak(steps)
    parameters = list(system.model.parameters())
    states = [value for state in system.optimizer.optimizer.state.values() for value in state.values()]
    kept = [one.grad for one in parameters if one.grad is not None] + [one for one in states if torch.is_tensor(one)]
    found = {
        "parameters": sum(one.numel() for one in parameters),
        "kept_bytes": sum(one.nbytes for one in kept),
        "tokens": max(int(sample["net_input"]["src_lengths"].sum()) for sample in samples),
        "bytes": int(peak.getvalue()),
    }
    print(json.dumps(found))


def step_memory(data_bin: Path, tokens: int) -> Dict[str, int]:
    """Returns the parameters of a model, and the bytes that its steps need beyond its weights."""
    own = [sys.executable, "-m", __spec__.name, "--step", str(data_bin), str(tokens)]
    output = subprocess.run(own, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    found: Dict[str, int] = json.loads(output.splitlines()[-1])
    return found


def saving(folder: Path, data_bin: Path) -> Dict[str, float]:
    """Returns the seconds of writing, and of reading back, a gigabyte of a checkpoint as trainings do."""
    import torch
    from fairseq import checkpoint_utils

    from benchmarks.lib.systems import configuration

    history = {"criterion_name": "x", "best_loss": None, "optimizer_name": "x"}
    history.update(lr_scheduler_state={}, num_updates=1)
    state = {
        "cfg": configuration("conditional", settings(str(data_bin), 8, TOKENS_OF_A_BATCH)),
        "args": None,
        "model": {str(number): torch.rand(PARAMETERS_OF_A_TENSOR) for number in range(2**7)},
        "optimizer_history": [history],
        "extra_state": {},
        "task_state": {},
        "last_optimizer_state": None,
    }
    path = folder / "checkpoint.pt"
    started = time.perf_counter()
    checkpoint_utils.torch_persistent_save(state, str(path))
    written = time.perf_counter()
    checkpoint_utils.load_checkpoint_to_cpu(str(path))
    seconds = {"save": written - started, "load": time.perf_counter() - written}
    size = path.stat().st_size
    path.unlink()
    return {name: value / size * 1e9 for name, value in seconds.items()}


def slope(few: float, many: float, begin_at: float, end_at: float) -> float:
    """Returns the increase of a figure for one more of what it depends on."""
    return (many - few) / (end_at - begin_at)


def constants(ranks: List[dict], steps: List[Dict[str, int]], seconds: Dict[str, float], sizes: List[int]) -> dict:
    """Returns the constants of the formulas.

    Args:
        ranks: of two data-bins.
        steps: of both batch sizes.
        seconds: see :func:`saving`.
        sizes: bytes of the two data-bins on disk, kept index included, and of the larger one's kept index.
    """
    few, many = ranks
    base, longer = steps
    own = {name: rank["steps"]["first batch"][1] - rank["steps"]["start"][1] for name, rank in zip("ab", ranks)}
    passed = {name: sum(part[0] for part in rank["steps"].values()) for name, rank in zip("ab", ranks)}
    sentences = [rank["sentences"] for rank in ranks]
    token = slope(base["bytes"], longer["bytes"], base["tokens"], longer["tokens"])
    return {
        "rank_bytes_a_sentence": slope(own["a"], own["b"], *sentences),
        "rank_seconds_a_million_sentences": slope(passed["a"], passed["b"], *sentences) * 1e6,
        "kept_index_bytes_a_sentence": sizes[2] / many["sentences"],
        "data_bin_bytes_a_sentence": slope(sizes[0], sizes[1], *sentences),
        "start_bytes": few["steps"]["start"][1],
        "step_bytes_a_token_and_width": token / WIDTH,
        "step_bytes_a_parameter": base["kept_bytes"] / base["parameters"],
        "seconds_a_gigabyte": seconds,
    }


def report(found: dict, ranks: List[dict], steps: List[Dict[str, int]], args: argparse.Namespace) -> str:
    """Returns the report."""
    rows = []
    for lines, rank in zip(args.lines, ranks):
        parts = [f"{1e-6 * part[1]:,.0f} ({part[0]:.2f})" for name, part in rank["steps"].items()]
        rows.append([f"{lines:,}", f"{rank['sentences']:,}", f"{rank['batches']:,}", *parts])
    header = ["lines", "sentences", f"batches of {TOKENS_OF_A_BATCH:,} tokens", *ranks[0]["steps"]]
    step_rows = [[f"{one['parameters']:,}", f"{one['tokens']:,}", f"{one['bytes'] / 1e6:,.0f}"] for one in steps]
    seconds = found["seconds_a_gigabyte"]
    constant_rows = [
        ["of a rank, a sentence of a data-bin: its own memory", f"{found['rank_bytes_a_sentence']:.2f} bytes"],
        ["the same: time until its first batch", f"{found['rank_seconds_a_million_sentences']:.3f} s a million"],
        [
            "kept index, a sentence: on disk, and once a machine in memory",
            f"{found['kept_index_bytes_a_sentence']:.1f} bytes",
        ],
        ["data-bin with it, a pair of these sentences: on disk", f"{found['data_bin_bytes_a_sentence']:.0f} bytes"],
        ["of a rank before it has data: Python, PyTorch, the task", f"{found['start_bytes'] / 1e6:,.0f} MB"],
        [
            "a step, a parameter, beyond the weight: gradient, Adam's moments",
            f"{found['step_bytes_a_parameter']:.1f} bytes",
        ],
        ["a step, a token and unit of width", f"{found['step_bytes_a_token_and_width']:,.0f} bytes"],
        ["checkpoint, written and synchronised", f"{seconds['save']:.1f} s a GB"],
        ["checkpoint, read with its checksums", f"{seconds['load']:.1f} s a GB"],
    ]
    return "\n\n".join(
        [
            "# What a rank needs",
            f"`{command()}`  \n{machine()}",
            table(["constant", "measured"], constant_rows),
            "Memory of a rank after each step, MB of its own (anonymous), without pages of mapped files, and seconds "
            "of the step, with an index that was kept before:",
            table(header, rows),
            f"Steps of `conditional`, width {WIDTH}, 6 + 6 layers, {VOCABULARY:,} pieces, float32, beyond the weights:",
            table(["parameters", "source tokens of the larger batch", "MB"], step_rows),
        ]
    )


def main() -> None:
    args = options()
    begin()
    if args.rank:
        print(json.dumps(measure_rank(args.rank)))
        return
    if args.step:
        take_steps(args.step[0], int(args.step[1]))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        ranks, sizes = [], []
        for number, lines in enumerate(args.lines):
            data_bin = make_data_bin(folder / f"bin-{number}", lines)
            child = [sys.executable, "-m", __spec__.name, "--rank", str(data_bin)]
            output = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
            ranks.append(json.loads(output.splitlines()[-1]))
            sizes.append(sum(file.stat().st_size for file in data_bin.iterdir()))
        sizes.append((data_bin / "train.en-de.en.index.npy").stat().st_size)
        small_bin = make_data_bin(folder / "steps", 20_000)
        steps = [step_memory(small_bin, tokens) for tokens in args.max_tokens]
        found = constants(ranks, steps, saving(folder, small_bin), sizes)
    publish("scaling", report(found, ranks, steps, args), constants=found, ranks=ranks, steps=steps)


if __name__ == "__main__":
    main()
