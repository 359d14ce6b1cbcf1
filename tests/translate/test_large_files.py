"""Memory does not grow with the length of a file."""

import os
import subprocess
import sys

import pytest

LARGE = """
import resource, sys
from pathlib import Path
from docnmt_fairseq.translate import translate_files as module
from docnmt_fairseq.translate.formats import Reading
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.inputs import Request
from docnmt_fairseq.translate.inputs import input_files
class Upper:
    def translate_lines(self, documents, names, empty_lines, progress):
        return [[TranslatedLine(line.upper(), []) for line in lines] for lines in documents]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder, reading = Path(sys.argv[1]), Reading(alone=lambda: True)
small, large = (
    input_files(Request([folder / name], folder / f"{name}.out", reading=reading)) for name in ("small", "large")
)
module.translate_files(small, Upper(), "document", lambda n: None)
before = peak()
module.translate_files(large, Upper(), "document", lambda n: None)
print(before, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in KiB on Linux")
def test_memory_of_long_files(tmp_path):
    for name, documents in (("small", 1_000), ("large", 30_000)):
        with open(tmp_path / name, "w") as stream:
            for number in range(documents):
                stream.write("".join(f"This is line {line} of document {number}, one of many.\n" for line in range(9)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LARGE, tmp_path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < 8 * 1024, f"{after - before} KiB more for a file of 30 times the size"
    with open(tmp_path / "large") as original, open(tmp_path / "large.out") as found:
        assert all(a.upper() == b for a, b in zip(original, found))
    assert (tmp_path / "large.out").stat().st_size == (tmp_path / "large").stat().st_size
