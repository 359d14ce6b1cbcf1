"""The run-book of a GPU: one command a stage, each within its minutes; run again, a stage goes on where it was.

    bash scripts/gpu.sh pack --raw FOLDER            # where there is a network
    bash scripts/gpu.sh hardware tests attention     # on the machine with the GPU
    bash scripts/gpu.sh report

Every stage writes STAGE.json to --output, a figure a point as soon as it is measured; ``report`` writes gpu.md, with
each of benchmarks/gpu/predictions.json beside what was measured. --dry-run runs everything at toy sizes on a CPU.
"""

import argparse
import sys
from pathlib import Path

import docnmt_fairseq
from benchmarks.gpu import attention, checks, demo, hardware, pack, real_text, stalls, training, translating  # noqa: F401
from benchmarks.gpu.report import write_report
from benchmarks.gpu.stage import STAGES, Setting, run_stage
from docnmt_fairseq.errors import InputError

REPORT = "report"


def parser_of() -> argparse.ArgumentParser:
    """The options of the run-book."""
    parser = argparse.ArgumentParser(
        prog="gpu.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="+", choices=[*STAGES.names(), REPORT], metavar="STAGE",
                        help=f"{', '.join(STAGES.names())}, {REPORT}")  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("work/gpu"), help="folder for figures (default: work/gpu)")
    parser.add_argument("--data", type=Path, help="a data-bin (default: of made-up text)")
    parser.add_argument("--raw", type=Path, help="the text of en_de_manuals, for real-text")
    parser.add_argument("--prepared", type=Path, help="what its recipe prepared (default: real-text prepares it)")
    parser.add_argument("--pack", type=Path, default=Path("work/gpu-pack"), help="folder of what is carried along")
    parser.add_argument("--minutes", type=float, help="that each stage may take at most (default: its own limit)")
    parser.add_argument("--dry-run", action="store_true", help="toy sizes, on a CPU where there is no GPU")
    return parser


def main() -> int:
    args = parser_of().parse_args()
    for name in ("data", "raw", "prepared"):
        folder = getattr(args, name)
        if folder is not None and not folder.is_dir():
            raise InputError(f"--{name} {folder}: no such folder")
    docnmt_fairseq.register()
    args.output.mkdir(parents=True, exist_ok=True)
    setting = Setting(args.output, args.dry_run, args.data, args.raw, args.prepared, args.pack)
    failures = 0
    for name in args.stages:
        if name == REPORT:
            print(write_report(args.output))
            continue
        if STAGES[name].needs_gpu and not args.dry_run and setting.device.type != "cuda":
            raise InputError(f"{name}: PyTorch finds no GPU here; --dry-run tries the stage out at toy size")
        if name == "real-text" and not args.dry_run and args.raw is None:
            raise InputError(f"{name}: give the folder of the text with --raw")
        outcome = run_stage(name, setting, minutes=args.minutes)
        counts = ", ".join(f"{len(points)} {what}" for what, points in vars(outcome).items() if points)
        print(f"{name}: {counts}" + "".join(f"\n  {what}: {', '.join(getattr(outcome, what))}"
                                            for what in ("failed", "left") if getattr(outcome, what)))  # fmt: skip
        failures += len(outcome.failed)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"error: {error}")
