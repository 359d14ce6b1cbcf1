"""The section on speed of docs/benchmarks.md says what the results of the benchmarks say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_says_what_the_results_say():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.summary", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
