"""Training in bfloat16 on a CPU: the time of a step beside float32, and what is learnt.

    python -m benchmarks.speed.half_precision DATA_BIN [--max-tokens 4096] [--width 256] [--rounds 7] …
    python -m benchmarks.speed.half_precision DATA_BIN --curves 500 …

The first: in one process, rounds of training steps by turns, on the same batches; ratios are within a round. The
second: trainings of so many updates with fairseq-train, from one start over the same batches; the loss as it is logged.
Options that are not listed by --help go to all of them, e.g. --share-all-embeddings.
Writes benchmarks/results/half_precision.md and .json; each of the two keeps what the other found.
"""

import argparse
import json
import re
import statistics
import tempfile
from pathlib import Path
from typing import Dict, List

from tqdm import tqdm

from benchmarks.lib.machine import RESULTS, begin, command, machine, table, threads, write
from benchmarks.lib.store import Store
from benchmarks.lib.systems import System, options_of, sizes
from benchmarks.speed.training_speed import add_round_options, one_round
from docnmt_fairseq.recipes.processes import PLUGIN, fairseq, run

OURS = ["--criterion", "document_label_smoothed_cross_entropy"]
VARIANTS = {"float32": [], "bfloat16": ["--bf16"]}
CRITERIA = {"fairseq's criterion": [], "the plugin's": OURS}
MODELS = ("sentence", "conditional")
INTERVAL = 50  # updates a logged loss is over


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_round_options(parser)
    parser.add_argument("--curves", type=int, metavar="UPDATES", help="train for so many updates instead")
    args, args.more = parser.parse_known_args()
    return args


def with_options(args: argparse.Namespace, *own: str) -> argparse.Namespace:
    """Returns the benchmark's options with more for the model."""
    return argparse.Namespace(**{**vars(args), "more": [*args.more, *own]})


def measure(args: argparse.Namespace, model: str) -> Dict[str, dict]:
    """Returns for every variant the milliseconds of a step and the ratio to float32 with fairseq's criterion."""
    systems = {
        f"{precision}, {criterion}": System(model, with_options(args, *half, *more))
        for criterion, more in CRITERIA.items()
        for precision, half in VARIANTS.items()
    }
    for system in systems.values():
        one_round(system, 0, args.warmup)
    rounds: Dict[str, List[float]] = {name: [] for name in systems}
    for _ in tqdm(range(args.rounds), desc=model):
        for name, system in systems.items():
            rounds[name].append(one_round(system, 0, args.steps)["seconds"])
    first = next(iter(rounds.values()))
    result = {}
    for name, own in rounds.items():
        ratios = [one / base for one, base in zip(own, first)]
        result[name] = {
            "ms_a_step": 1000 * statistics.median(own) / args.steps,
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
        }
    return result


def curves(args: argparse.Namespace) -> Dict[str, List[float]]:
    """Returns the nll of a token in bits, over every ``INTERVAL`` updates of a training in each type."""
    fixed = [args.data_bin, "--user-dir", str(PLUGIN), *options_of("sentence"), *sizes(args, False), *OURS]
    fixed += ["--label-smoothing", "0.1", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.001"]
    fixed += [
        "--lr-scheduler",
        "inverse_sqrt",
        "--warmup-updates",
        str(args.curves // 5),
        "--clip-norm",
        "1.0",
        "--cpu",
    ]
    fixed += ["--max-tokens", str(args.max_tokens), "--max-update", str(args.curves), "--num-workers", "0", "--no-save"]
    fixed += ["--log-format", "json", "--log-interval", str(INTERVAL), "--seed", str(args.seed), "--disable-validation"]
    found = {}
    for name, half in VARIANTS.items():
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "train.log"
            with open(log, "w", encoding="utf-8") as stream:
                run([*fairseq("train"), *fixed, *half, *args.more, "--save-dir", folder], stream, log)
            lines = [line for line in log.read_text(encoding="utf-8").splitlines() if "| train_inner |" in line]
        logged = (json.loads(re.sub(r"^.*?\| train_inner \| ", "", line)) for line in lines)
        found[name] = [float(one["nll_loss"]) for one in logged]
    return found


def report(stored: Store) -> str:
    parts = ["# Half precision on a CPU", str(stored.facts["machine"])]
    if "steps" in stored.runs:
        run_ = stored.runs["steps"]
        parts += [f"`{run_['command']}`", run_["about"]]
        for model, variants in run_["models"].items():
            rows = []
            for name, one in variants.items():
                low, high = one["ratio_range"]
                rows.append([name, f"{one['ms_a_step']:,.0f}", f"{one['ratio']:.2f} ({low:.2f} to {high:.2f})"])
            parts.append(table([model, "ms a step", "÷ float32, fairseq's criterion (range)"], rows))
    if "curves" in stored.runs:
        run_ = stored.runs["curves"]
        updates = [INTERVAL * number for number in range(1, 1 + len(run_["nll"]["float32"]))]
        rows = [[name, *(f"{nll:.3f}" for nll in own)] for name, own in run_["nll"].items()]
        parts += [
            "## What is learnt",
            f"`{run_['command']}`",
            f"nll of a token in bits, over the {INTERVAL} updates before; one start, the same batches:",
            table(["updates", *map(str, updates)], rows),
        ]
    return "\n\n".join(parts)


def main() -> None:
    args = options()
    begin(args.threads)
    stored = Store(RESULTS / "half_precision.json")
    stored.facts.update(machine=f"{machine()}; {threads()}")
    if args.curves:
        stored.add("curves", {"command": command(), "nll": curves(args)})
    else:
        about = (
            f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads, "
            f"{args.max_tokens} tokens a batch. {args.rounds} rounds by turns of {args.steps} steps (forward, "
            "backward, Adam); medians. "
            "bfloat16: `--bf16`; the plugin's criterion: `document_label_smoothed_cross_entropy`."
        )
        found = {model: measure(args, model) for model in MODELS}
        stored.add("steps", {"command": command(), "about": about, "models": found})
    write("half_precision.md", report(stored))


if __name__ == "__main__":
    main()
