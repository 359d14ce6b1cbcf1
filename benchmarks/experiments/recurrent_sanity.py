"""The validation task of recurrent cells in [Z] sec. 4.4.1: LSTM, GRU and CA-RNN, next to the published errors.

    python -m benchmarks.experiments.recurrent_sanity [--seeds 10] [--cells lstm ...] [--settings 32,Adam,0.01 ...]

Training sentences: "I am happy" → 1 and "You are very angry" → 0; test sentences: "I am very happy" → 1 and "You look
angry" → 0.
"""

import argparse
import statistics
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.lib.measuring import run_benchmark
from benchmarks.lib.reporting import table
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS

TITLE = "Validation task of recurrent cells ([Z] sec. 4.4.1)"
PUBLISHED = {"lstm": 0.318, "gru": 0.172, "gru-reset-before": 0.172, "ca-rnn": 0.126}  # [Z] fig. 13 b
CELLS = ["lstm", "gru-reset-before", "gru", "ca-rnn"]  # [Z] Table 1 has the former GRU, PyTorch the latter
TRAIN = [("I am happy", 1), ("You are very angry", 0)]
TEST = [("I am very happy", 1), ("You look angry", 0)]
WORDS = sorted({word for text, _ in (*TRAIN, *TEST) for word in text.split()})
ITERATIONS = 100
# Not specified in the text: width, optimiser, rate. Settings with Adam were chosen before any result was known, those
# with SGD afterwards, since the errors with Adam differ from the published ones.
SETTINGS = [(32, "Adam", 0.01), (8, "Adam", 0.01), (128, "Adam", 0.01), (32, "Adam", 0.001), (32, "Adam", 0.1)]
SETTINGS += [(32, "SGD", 0.1), (32, "SGD", 0.01)]

READING = """\
The text says: "the cell state embedding is further connected to a logistic regression", 100 iterations, 10 runs. It
does not specify sizes, optimiser, learning rate, initial values, and the "prediction error". With two sentences and 10
runs the share of wrong answers is a multiple of 0.05, which the published 0.318, 0.172 and 0.126 are not; the error
here is the mean of |p − y|, next to the share of wrong answers (p > 0.5 means 1). An iteration is one step on both
sentences; embeddings have the width of the states and are N(0, 1); "look" is never trained. The cell state is c of LSTM
and CA-RNN, h of the GRU. Cells have equal width, not equal numbers of parameters. The GRU of the paper is
`gru-reset-before` (its Table 1), that of PyTorch `gru`: their errors are equal here.

The result depends on what is not specified. CA-RNN has the lowest error, as published, when training is far from
convergence (SGD, 0.01; LSTM and GRUs are then within two standard errors of each other). With Adam all cells memorise
the training set, and CA-RNN has the highest test error unless it is wide or the rate is high: the published order is
not a property of the cells alone."""


class Classifier(nn.Module):
    """σ(wᵀ c_T + b) of the last cell state."""

    def __init__(self, cell: str, width: int):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), width)
        self.cell = RECURRENT_CELLS[cell](width, width)
        self.output = nn.Linear(width, 1)

    def forward(self, text: str) -> Tensor:
        """Returns the logit, []."""
        state = self.cell.initial(1, self.output.weight)
        for word in text.split():
            state = self.cell.step(self.embed(torch.tensor([WORDS.index(word)])), state)
        return self.output(state[-1]).squeeze()


def run(
    cell: str, width: int, optimiser: str, rate: float, seed: int, iterations: int
) -> Tuple[List[float], float, float]:
    """Returns the training loss of every iteration, the mean of |p − y| and the share of wrong answers in the test."""
    torch.manual_seed(seed)
    model = Classifier(cell, width)
    steps = getattr(torch.optim, optimiser)(model.parameters(), lr=rate)
    wanted = torch.tensor([float(label) for _, label in TRAIN])
    losses = []
    for _ in range(iterations):
        loss = F.binary_cross_entropy_with_logits(torch.stack([model(text) for text, _ in TRAIN]), wanted)
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    with torch.no_grad():
        errors = [abs(float(torch.sigmoid(model(text))) - label) for text, label in TEST]
    return losses, statistics.mean(errors), statistics.mean(error >= 0.5 for error in errors)


def run_cells(
    width: int, optimiser: str, rate: float, cells: List[str], seeds: int, iterations: int
) -> Dict[str, Dict[str, List[float]]]:
    """Returns what every run gave, by cell."""
    result = {}
    for cell in cells:
        numbers = tqdm(range(1, seeds + 1), desc=f"{cell} {width} {optimiser} {rate}")
        runs = [run(cell, width, optimiser, rate, seed, iterations) for seed in numbers]
        losses, errors, wrong = map(list, zip(*runs))
        last = [of_run[-1] for of_run in losses]
        mean = [statistics.mean(values) for values in zip(*losses)]  # by iteration
        result[cell] = {"loss": last, "error": errors, "wrong": wrong, "losses": mean}
    return result


def spread(values: List[float]) -> str:
    """Returns mean ± standard error."""
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values) / len(values) ** 0.5:.3f}"


def rows(results: List[Dict]) -> list:
    lines = []
    for one in results:
        width = one["width"]
        for cell, runs in one["cells"].items():
            parameters = sum(tensor.numel() for tensor in RECURRENT_CELLS[cell](width, width).parameters())
            figures = [spread(runs["error"]), spread(runs["wrong"]), f"{statistics.mean(runs['loss']):.4f}"]
            lines.append(
                [cell, width, f"{one['optimiser']} {one['rate']}", f"{parameters:,}", *figures, PUBLISHED[cell]]
            )
    return lines


def setting(text: str) -> Tuple[int, str, float]:
    """Returns width, optimiser and rate, which stand with commas between."""
    width, optimiser, rate = text.split(",")
    return int(width), optimiser, float(rate)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.set_defaults(threads=1)
    parser.add_argument("--seeds", type=int, default=10, help="runs of every cell, as in the text (default: 10)")
    parser.add_argument("--cells", nargs="+", choices=PUBLISHED, default=CELLS, help="recurrent cells")
    parser.add_argument("--settings", nargs="+", type=setting, default=SETTINGS, metavar="WIDTH,OPTIMISER,RATE")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of a run (default: as in the text)")


def measure(args: argparse.Namespace) -> dict:
    """Returns the runs of every setting."""
    runs = args.cells, args.seeds, args.iterations
    names = ("width", "optimiser", "rate")
    return {"settings": [{**dict(zip(names, one)), "cells": run_cells(*one, *runs)} for one in args.settings]}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    header = ["cell", "width", "optimiser", "parameters", "error", "wrong answers", "training loss", "published error"]
    runs = f"{args.seeds} runs each, mean ± standard error:"
    return [READING, runs, table(header, rows(figures["settings"]))]


if __name__ == "__main__":
    run_benchmark("benchmarks.experiments.recurrent_sanity")
