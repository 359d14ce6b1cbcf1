"""Measurements on a GPU, one stage at a time; a stage can be run again and continues with the missing points.

    bash scripts/gpu.sh pack --recipe kyoto_ja_en_gpu --raw FOLDER    # with network access
    bash scripts/gpu.sh real-text --recipe kyoto_ja_en_gpu            # on the machine with the GPU
    bash scripts/gpu.sh report

A stage writes each result to STAGE.json in --output as soon as it has it; ``report`` writes gpu.md. --dry-run runs
everything with tiny sizes on a CPU.
"""

import argparse
import sys
from pathlib import Path

import docnmt_fairseq
from benchmarks.gpu import attention, checks, models, pack, real_text  # noqa: F401
from benchmarks.gpu.stage import RECIPE, STAGES, Setting, run_stage, write_report
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import named_recipes

REPORT = "report"


def parser_of() -> argparse.ArgumentParser:
    """Returns the parser."""
    parser = argparse.ArgumentParser(
        prog="gpu.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    stages = [*STAGES.names(), REPORT]
    parser.add_argument("stages", nargs="+", choices=stages, metavar="STAGE", help=", ".join(stages))
    parser.add_argument("--output", type=Path, default=Path("work/gpu"), help="output folder (default: work/gpu)")
    parser.add_argument(
        "--recipe",
        choices=[name for name in named_recipes() if name.endswith("_gpu")],
        default=RECIPE,
        help=f"recipe of real-text (default: {RECIPE}); each needs its own --output and --pack",
    )
    parser.add_argument("--raw", type=Path, help="text of --recipe, for real-text and pack")
    parser.add_argument(
        "--prepared",
        type=Path,
        help="prepared output of that recipe (default: artificial text; real-text prepares --raw)",
    )
    parser.add_argument("--pack", type=Path, default=Path("work/gpu-pack"), help="folder of packed files")
    parser.add_argument("--minutes", type=float, help="time limit per stage (default: that of the stage)")
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, on a CPU if there is no GPU")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the stages and returns the exit status."""
    args = parser_of().parse_args(argv)
    docnmt_fairseq.register()
    args.output.mkdir(parents=True, exist_ok=True)
    setting = Setting(args.output, args.dry_run, args.raw, args.prepared, args.pack, args.recipe)
    failures = 0
    for name in args.stages:
        if name == REPORT:
            print(write_report(args.output))
            continue
        if STAGES[name].needs_gpu and not args.dry_run and setting.device.type != "cuda":
            raise InputError(f"{name}: PyTorch finds no GPU; use --dry-run to try the stage")
        if name == "real-text" and not args.dry_run and args.raw is None:
            raise InputError(f"{name}: give the folder with the text with --raw")
        outcome = run_stage(name, setting, minutes=args.minutes)
        print(
            f"{name}: " + "; ".join(f"{what}: {', '.join(points)}" for what, points in vars(outcome).items() if points)
        )
        failures += len(outcome.failed)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"error: {error}")
