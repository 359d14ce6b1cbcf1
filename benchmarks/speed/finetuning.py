"""What finetuning with context costs: all parameters, the context alone, and low-rank updates beside it (LoRA).

    python -m benchmarks.speed.finetuning DATA_BIN [--max-tokens 2048] [--layers 6] [--width 512] [--rounds 5] …

In one process, rounds of training steps by turns, on the same batches; ratios are within a round. Memory is that of
steps in a process of its own, beyond the model's weights. Options that are not listed by --help go to all models, e.g.
--share-all-embeddings. Writes benchmarks/results/finetuning.md and .json.
"""

import argparse
import statistics
from typing import Dict, List

import torch
from tqdm import tqdm

from benchmarks.lib.machine import begin, command, machine, publish, table, threads
from benchmarks.lib.peak_memory import peak_of, print_peak
from benchmarks.lib.systems import System, sizes
from benchmarks.speed.training_speed import add_round_options, one_round

FREEZE = "--freeze-sentence-model"
EVERYWHERE = ["--lora-on", "q,k,v,out,fc1,fc2"]
WAYS = {
    "all parameters": [],
    "context only": [FREEZE],
    "context, LoRA r = 8 on q, v": [FREEZE, "--lora-rank", "8"],
    "context, LoRA r = 8 on all six": [FREEZE, "--lora-rank", "8", *EVERYWHERE],
    "LoRA r = 8 on q, v, no context": [FREEZE, "--lora-rank", "8"],
}
MIB = 2**20


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_round_options(parser)
    parser.set_defaults(max_tokens=2048, width=512, ffn=2048, heads=8, rounds=5, steps=2, warmup=1)
    parser.add_argument("--memory-of", choices=WAYS, help="print the bytes that two steps of this way need, no more")
    args, args.more = parser.parse_known_args()
    return args


def system_of(way: str, args: argparse.Namespace) -> System:
    """Returns a model that is trained in a way of ``WAYS``."""
    name = "sentence" if way.endswith("no context") else "conditional"
    return System(name, argparse.Namespace(**{**vars(args), "more": [*args.more, *WAYS[way]]}))


def state_bytes(system: System) -> int:
    """Returns the bytes of the optimiser's state after a step."""
    states = system.optimizer.optimizer.state.values()
    return sum(one.nbytes for state in states for one in state.values() if isinstance(one, torch.Tensor))


def memory_of(way: str, args: argparse.Namespace) -> int:
    """Returns the bytes that two steps need at most beyond the weights, from a process of its own."""
    own = [args.data_bin, "--max-tokens", args.max_tokens, "--layers", args.layers, "--width", args.width]
    own += ["--ffn", args.ffn, "--heads", args.heads, "--dropout", args.dropout, "--seed", args.seed]
    return peak_of(__spec__.name, *own, "--threads", torch.get_num_threads(), "--memory-of", way, *args.more)


def measure(args: argparse.Namespace) -> Dict[str, dict]:
    """Returns the figures of every way."""
    systems = {way: system_of(way, args) for way in WAYS}
    for system in systems.values():
        one_round(system, 0, args.warmup)
    rounds: Dict[str, List[float]] = {way: [] for way in WAYS}
    for _ in tqdm(range(args.rounds), desc="rounds"):
        for way, system in systems.items():
            rounds[way].append(one_round(system, 0, args.steps)["seconds"])
    first = rounds["all parameters"]
    found = {}
    for way, system in systems.items():
        ratios = [own / whole for own, whole in zip(rounds[way], first)]
        parameters = set(system.model.parameters())
        found[way] = {
            "parameters": sum(parameter.numel() for parameter in parameters),
            "trained": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
            "state_bytes": state_bytes(system),
            "peak_bytes": memory_of(way, args),
            "ms_a_step": 1000 * statistics.median(rounds[way]) / args.steps,
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
        }
    return found


def report(args: argparse.Namespace, found: Dict[str, dict]) -> str:
    header = [
        "trained",
        "parameters",
        "of them trained",
        "optimiser state, MiB",
        "step beyond the weights, MiB",
        "÷ all",
    ]
    header += ["ms a step", "÷ all (range)"]
    whole = found["all parameters"]["peak_bytes"]
    rows = []
    for way, one in found.items():
        low, high = one["ratio_range"]
        sizes_ = [f"{one['parameters']:,}", f"{one['trained']:,}", f"{one['state_bytes'] / MIB:,.1f}"]
        memory = [f"{one['peak_bytes'] / MIB:,.0f}", f"{one['peak_bytes'] / whole:.2f}"]
        rows.append(
            [way, *sizes_, *memory, f"{one['ms_a_step']:,.0f}", f"{one['ratio']:.2f} ({low:.2f} to {high:.2f})"]
        )
    return "\n\n".join(
        [
            "# Finetuning: all parameters, the context alone, low-rank updates",
            f"`{command()}`  \n{machine()}; {threads()}",
            f"{' '.join(sizes(args, False))}; conditional attention in the upper half of the layers; --max-tokens "
            f"{args.max_tokens}, float32. {args.rounds} rounds by turns of {args.steps} steps (forward, backward, "
            "Adam) on the same batches; medians. Memory: the most that two steps need beyond the weights (activations, "
            "gradients, optimiser state), in a process of its own.",
            table(header, rows),
        ]
    )


def main() -> None:
    args = options()
    begin(args.threads)
    if args.memory_of:
        system = system_of(args.memory_of, args)
        print_peak(lambda: one_round(system, 0, 2))
        return
    found = measure(args)
    publish("finetuning", report(args, found), ways=found)


if __name__ == "__main__":
    main()
