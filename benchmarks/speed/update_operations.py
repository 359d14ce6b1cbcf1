"""How many operations an update is, from the gradients to the next weights; counted on a CPU.

    python -m benchmarks.speed.update_operations [--layers 6] [--width 16]

On a GPU each is a launch at least, which the CPU must start. The sentence-level model's parameters get made-up
gradients; their scaling, clipping, the step and clearing are counted, not what is a view. fairseq alone is its code
without this package's changes. Writes benchmarks/results/update_operations.md and .json.
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any, Dict
from unittest.mock import patch

import torch
from fairseq import utils

from benchmarks.lib.counted_device import Operations
from benchmarks.lib.machine import begin, command, machine, publish, table
from benchmarks.lib.systems import System
from benchmarks.lib.unchanged import unchanged
from benchmarks.speed.operation_counts import make_data_bin, options

TYPES = {"bfloat16": ["--bf16"], "float32": []}
OPTIMIZERS = ("adam", "fused_adamw")


def operations_of(system: System) -> int:
    """Returns those of a system's second update: in the first the moments are made."""
    optimizer = system.optimizer
    for _ in range(2):
        for parameter in system.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer._needs_sync = True  # as a backward pass leaves it in half types
        with Operations() as operations:
            optimizer.multiply_grads(torch.tensor(0.5))
            optimizer.clip_grad_norm(1.0)
            optimizer.step()
            optimizer.zero_grad()
    return operations.count


def counts(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the counts by type, optimizer and whether fairseq is alone."""
    found: Dict[str, Any] = {}
    given = args.more
    for (name, own), optimizer in itertools.product(TYPES.items(), OPTIMIZERS):
        args.more = [*given, *own, "--optimizer", optimizer]
        system = System("sentence", args)
        found["parameters"] = sum(1 for one in system.model.parameters() if one.requires_grad)
        found[f"{name}, {optimizer}"] = operations_of(system)
        if optimizer == "adam":
            with patch.object(utils, "clip_grad_norm_", unchanged(utils).clip_grad_norm_):
                found[f"{name}, fairseq alone"] = operations_of(System("sentence", args, alone=True))
    return found


def report(found: Dict[str, Any]) -> str:
    """Returns the table."""
    ways = ("fairseq alone", *OPTIMIZERS)
    rows = [[name, *(f"{found[f'{name}, {way}']:,}" for way in ways)] for name in TYPES]
    header = ["", "fairseq alone, `adam`", "`adam`", "`fused_adamw`"]
    sections = ["# Operations of an update", f"`{command()}`  \n{machine()}"]
    sections += [f"{found['parameters']} parameters: scaled, clipped, stepped, cleared.", table(header, rows)]
    return "\n\n".join(sections)


def main() -> None:
    args = options()
    begin()
    with tempfile.TemporaryDirectory() as folder:
        args.data_bin = str(make_data_bin(Path(folder), args))
        found = counts(args)
    publish("update_operations", report(found), counts=found)


if __name__ == "__main__":
    main()
