"""Speed of the recurrent cells beside PyTorch's own LSTM: forward, and forward and backward, as in training.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.recurrent_speed [--width 512] [--rows 64] [--rounds 15]

Twice: rows of equal length, where PyTorch's LSTM is one call of oneDNN, and rows as long as sentences are, where it
goes step by step. Cells take turns in one process; ratios are within a round, of which the median is reported, and of
the fastest rounds, which other processes disturb least. Adds to benchmarks/results/recurrent_speed.json what this
number of threads gave, and writes recurrent_speed.md from it.
"""

import argparse
import json
import statistics
from typing import Callable, Dict, List, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from tqdm import tqdm

from benchmarks.lib.machine import RESULTS, clock, command, machine, table, threads, write
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.batch.steps import StepOrder
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS

BASE = "nn.LSTM"
TARGET = 0.5  # of the LSTM's speed, for CA-RNN forward and backward


def row_lengths(rows: int) -> Dict[str, np.ndarray]:
    """Returns the two kinds of rows, of about as many words."""
    sentences = np.random.default_rng(0).lognormal(3.0, 0.6, rows).astype(np.int64).clip(1, 100)
    return {"equal": np.full(rows, round(float(sentences.mean()))), "sentences": sentences}


def forwards(lengths: np.ndarray, width: int) -> Dict[str, Callable[[Tensor], Tensor]]:
    """Returns the systems, functions of packed inputs [N, width] in the order of steps."""
    torch.manual_seed(1)
    order, lstm = StepOrder(Ragged(lengths)), nn.LSTM(width, width)

    def base(x: Tensor) -> Tensor:
        if lengths.min() == lengths.max():
            return lstm(x.view(-1, len(lengths), width))[0].flatten(0, 1)
        return lstm(PackedSequence(x, order.batch_sizes))[0].data

    systems = {BASE: base}
    for name in RECURRENT_CELLS.names():
        cell = RECURRENT_CELLS[name](width, width)
        zeros = cell.initial(len(lengths), cell_parameter(cell))
        systems[name] = lambda x, cell=cell, zeros=zeros: cell.run(x, zeros, order)
    return systems


def cell_parameter(cell: nn.Module) -> Tensor:
    return next(cell.parameters()).detach()


def once(forward: Callable[[Tensor], Tensor], x: Tensor, gradient: Tensor) -> Tuple[float, float]:
    """Returns seconds forward, and forward and backward."""
    start = clock()
    outputs = forward(x)
    between = clock()
    outputs.backward(gradient)
    return between - start, clock() - start


def measure(lengths: np.ndarray, width: int, rounds: int) -> Dict[str, Dict]:
    """Returns milliseconds and ratios of every system."""
    x, gradient = torch.randn(lengths.sum(), width, requires_grad=True), torch.randn(lengths.sum(), width)
    systems = forwards(lengths, width)
    for forward in systems.values():
        once(forward, x, gradient)
    times: Dict[str, List] = {name: [] for name in systems}
    for _ in tqdm(range(rounds)):
        for name, forward in systems.items():
            times[name].append(once(forward, x, gradient))
    result = {}
    for name, own in times.items():
        ratios = np.array(times[BASE]) / np.array(own)  # [rounds, 2] of speeds
        result[name] = {
            "ms": [1000 * statistics.median(part) for part in zip(*own)],
            "ratio": np.median(ratios, axis=0).tolist(),
            "ratio_of_fastest": [min(base) / min(part) for base, part in zip(zip(*times[BASE]), zip(*own))],
            "quartiles": np.quantile(ratios, [0.25, 0.75], axis=0).T.tolist(),
        }
    return result


def report(runs: Dict[str, Dict]) -> str:
    lines = [f"# Recurrent cells ÷ PyTorch's LSTM (target of CA-RNN, forward and backward: ≥ {TARGET})", ""]
    for run in runs.values():
        lines += [f"`{run['command']}`; {run['threads']}; {run['machine']}; width {run['width']}.", ""]
        for kind, result in run["results"].items():
            lines += [f"{run['rows']} rows, {run['words'][kind]:,} words in {run['steps'][kind]} steps ({kind}):", ""]
            rows = []
            for name, one in result.items():
                cells = [f"{value:.1f}" for value in one["ms"]]
                for value, (low, high) in zip(one["ratio"], one["quartiles"]):
                    cells.append(f"{value:.2f} ({low:.2f} to {high:.2f})")
                rows.append([name, *cells, *(f"{value:.2f}" for value in one["ratio_of_fastest"])])
            header = ["", "ms forward", "ms both", "speed ÷ nn.LSTM, forward (quartiles)", "both (quartiles)"]
            header += ["fastest rounds, forward", "fastest rounds, both"]
            lines += [table(header, rows), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512, help="of inputs and states (default: 512)")
    parser.add_argument("--rows", type=int, default=64, help="rows of a batch (default: 64)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds that count (default: 15)")
    args = parser.parse_args()
    kinds = row_lengths(args.rows)
    run = {
        "command": f"OMP_NUM_THREADS={torch.get_num_threads()} {command()}",
        "machine": machine(),
        "threads": threads(),
        "width": args.width,
        "rows": args.rows,
        "words": {kind: int(lengths.sum()) for kind, lengths in kinds.items()},
        "steps": {kind: int(lengths.max()) for kind, lengths in kinds.items()},
        "results": {kind: measure(lengths, args.width, args.rounds) for kind, lengths in kinds.items()},
    }
    path = RESULTS / "recurrent_speed.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    runs[f"{torch.get_num_threads()} threads"] = run
    path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    write("recurrent_speed.md", report(dict(sorted(runs.items()))))


if __name__ == "__main__":
    main()
