"""Tells what is installed and what works here: libraries, attention kernels, threads, GPU, loading of checkpoints.

Each line is ok, off (optional, or slower than need be) or BROKEN, with what to do about it. Exit status 1: something
that is needed does not work.
"""

import argparse
import dataclasses
import json
from typing import List

from docnmt_fairseq.cli import _installation as installation
from docnmt_fairseq.cli._installation import BROKEN, OFF, Finding

HELP = "what is installed, what works here, and what to do about the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the format."""
    parser.add_argument("--json", action="store_true", help="print a JSON list of findings")


def run(args: argparse.Namespace) -> int:
    """Prints the findings; the exit status says whether everything needed works."""
    findings = installation.examine()
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False, indent=1))
    else:
        print(told(findings))
    return int(any(finding.state == BROKEN for finding in findings))


def told(findings: List[Finding]) -> str:
    """The findings as text: a heading a part, a line a finding, its remedy below."""
    lines: List[str] = []
    width = max(len(finding.name) for finding in findings)
    part = None
    for finding in findings:
        if finding.part != part:
            part = finding.part
            lines.append(part)
        state = finding.state.upper() if finding.state == BROKEN else finding.state
        lines.append(f"  {state:<6}  {finding.name:<{width}}  {finding.detail}")
        if finding.remedy:
            lines.append(f"          {'':<{width}}  → {finding.remedy}")
    broken, off = (sum(finding.state == state for finding in findings) for state in (BROKEN, OFF))
    verdict = f"Needed, but broken: {broken}." if broken else "Everything needed works."
    return "\n".join([*lines, "", f"{verdict} Optional, and off: {off}." if off else verdict])
