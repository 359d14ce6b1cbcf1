"""Times the kernels of conditional attention as ratios to flash attention over the whole document.

    python benchmarks/conditional_attention.py [--rounds 7]

Steps are interleaved, medians of ratios are reported: absolute times mean little, ratios do.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch
from machine import RESULTS, command, machine, table, write

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.conditional_attention import conditional_attention

HEADS, DIM = 8, 64
SIZES = ((8, 15), (32, 9), (128, 5), (256, 3))  # sentences, rounds
TARGETS = {("compiled", 128): (0.10, 0.08), ("compiled", 256): (0.07, 0.05)}
TARGETS.update({("torch", 128): (0.55, 0.32), ("torch", 256): (0.28, 0.16)})


def document(sentences: int, seed: int) -> DocumentLayout:
    """Returns one document of sentences of 25 words on average, lognormal lengths."""
    lengths = np.random.default_rng(seed).lognormal(np.log(25) - 0.18, 0.6, sentences).clip(1, 200)
    lengths = np.maximum(1, np.round(lengths * 25 * sentences / lengths.sum())).astype(np.int64)
    place = np.arange(sentences)
    return DocumentLayout(lengths, np.array([sentences]), place, np.zeros_like(place))


def seconds(step: object, inputs: list, backward: bool) -> float:
    """Returns the time of one step."""
    start = time.perf_counter()
    out = step(*inputs)
    if backward:
        torch.autograd.grad(out.sum(), inputs, allow_unused=True)
    return time.perf_counter() - start


def ratios(sentences: int, rounds: int, t: int, kernels: list) -> dict:
    """Returns by kernel the median ratio to flash attention, forward and forward with backward."""
    layout = document(sentences, seed=0)
    words = layout.words.total
    generator = torch.Generator().manual_seed(0)
    packed = [torch.randn(n, HEADS, DIM, generator=generator) for n in (*[words] * 4, sentences)]
    whole = [torch.randn(1, HEADS, words, DIM, generator=generator) for _ in range(3)]
    kept = np.array([t])
    steps = {name: lambda *x, name=name: conditional_attention(*x, layout, kept, kernel=name) for name in kernels}
    found = {name: [] for name in kernels}
    for backward in (False, True):
        samples = {name: [] for name in kernels}
        for number in range(rounds + 1):
            flash = [x.clone().requires_grad_(backward) for x in whole]
            base = seconds(torch.nn.functional.scaled_dot_product_attention, flash, backward)
            for name, step in steps.items():
                own = seconds(step, [x.clone().requires_grad_(backward) for x in packed], backward)
                if number:  # the first round warms up
                    samples[name].append(own / base)
        for name in kernels:
            found[name].append(statistics.median(samples[name]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", default=["compiled", "torch"])
    parser.add_argument("--kept", type=int, default=4, metavar="T", help="sentences that every word and head keeps")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows, facts = [], {}
    for sentences, rounds in SIZES:
        found = ratios(sentences, rounds, args.kept, args.kernels)
        facts[sentences] = found
        row = [f"{25 * sentences:,} ({sentences})"]
        for name in args.kernels:
            row += [f"{ratio:.3f}" for ratio in found[name]]
        rows.append(row)
    header = ["words (sentences)", *[f"{name}, {part}" for name in args.kernels for part in ("fwd", "fwd + bwd")]]
    lines = []
    for (name, sentences), limits in TARGETS.items():
        if name in args.kernels and args.kept == 4:
            for part, ratio, limit in zip(("fwd", "fwd + bwd"), facts[sentences][name], limits):
                met = "met" if ratio <= limit else "missed"
                lines.append(f"- {name}, {25 * sentences:,} words, {part} ≤ {limit:.2f}: {ratio:.3f}, {met}")
    text = f"""# Conditional attention beside flash attention over the whole document

`{command()}`

{machine()}; PyTorch on {args.threads} threads

Time ÷ time of PyTorch's flash attention over the whole document, medians of interleaved steps; selection included,
projections not. {HEADS} heads of {DIM}, t = {args.kept}, float32, ragged sentences of 25 words on average.

{table(header, rows)}

Targets:
""" + "\n".join(lines)
    write("conditional_attention.md", text)
    facts = {"command": command(), "machine": machine(), "ratios": facts}
    (RESULTS / "conditional_attention.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
