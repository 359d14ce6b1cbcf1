"""What the Triton programs of conditional attention need of a GPU: registers, stack and shared memory, by target.

    python -m benchmarks.speed.triton_programs [--targets 80 90 100] [--widths 64] [--types bf16] [--programs NAME …]

Compiled ahead of time; no GPU is needed, only Triton. Writes benchmarks/results/triton_programs.md and .json.
"""

import argparse
import sys
from dataclasses import asdict
from typing import List

from benchmarks.lib.machine import command, machine, table, write, write_figures


def row(facts: dict) -> List[str]:
    """Returns the row of one program: what it needs on each target."""
    needs = [
        f"{one['registers']}, {one['stack']} B, {one['shared'] / 1024:.1f} KiB" + ", matrix units" * one["matrix"]
        for one in facts["needs"].values()
    ]
    return [f"{facts['name']} ({facts['type']}, d_k = {facts['width']})", *needs, facts["limit"]]


def report(rows: List[dict], targets: List[int], triton_version: str) -> str:
    """Returns the report."""
    from benchmarks.lib.ahead_of_time import TARGETS

    header = ["program", *(f"sm_{target} ({TARGETS[target]})" for target in targets), "limit"]
    return f"""# Triton programs of conditional attention, compiled ahead of time

What a thread needs of registers (255 at most) and of local memory for what they do not hold (stack), and a block of
threads of shared memory; with dropout, t = 4. Nothing is measured on a GPU here: compiled, not run. A test compiles
them and holds them to the limits of `benchmarks/lib/triton_programs.py`.

{table(header, list(map(row, rows)))}

How it was made: `{command()}`; Triton {triton_version}; {machine()}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", type=int, default=[80, 90, 100], help="compute capabilities × 10")
    parser.add_argument("--widths", nargs="+", type=int, default=[64], help="of heads")
    parser.add_argument("--types", nargs="+", default=["bf16"], choices=("bf16", "fp16", "fp32"), help="of states")
    parser.add_argument("--programs", nargs="+", help="default: all")
    args = parser.parse_args()
    try:
        import triton
    except ImportError:
        sys.exit("Triton is not installed: pip install 'docnmt_fairseq[triton]'")
    from benchmarks.lib.ahead_of_time import NAMES, compiled
    from benchmarks.lib.triton_programs import LIMITS, programs

    types = {name: dtype for dtype, name in NAMES.items()}
    rows = []
    for name in args.types:
        for width in args.widths:
            for program in programs(width, types[name]):
                if args.programs is None or program.name in args.programs:
                    needs = {
                        target: asdict(compiled(program.function, types[name], program.constants, target))
                        for target in args.targets
                    }
                    limit = LIMITS[program.name]
                    told = f"{limit.registers}, {limit.stack} B, {limit.shared} KiB"
                    rows.append({"name": program.name, "type": name, "width": width, "needs": needs, "limit": told})
                    print(row(rows[-1]), file=sys.stderr, flush=True)
    write("triton_programs.md", report(rows, args.targets, triton.__version__))
    write_figures("triton_programs.json", {"command": command(), "machine": machine(), "programs": rows})


if __name__ == "__main__":
    main()
