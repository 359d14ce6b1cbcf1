"""Stand-in for the authors' METEOR program: F1 of the words, in the protocol of ``-stdio``."""

import os
import sys
from pathlib import Path

PROGRAM = """#!{python}
import sys
from collections import Counter

assert sys.argv[1:3] == ["-Xmx2G", "-jar"] and "-stdio" in sys.argv, sys.argv
for line in iter(sys.stdin.readline, ""):
    request, *texts = line.rstrip("\\n").split(" ||| ")
    if request == "SCORE":
        *references, translation = [Counter(text.split()) for text in texts]
        best = max(references, key=lambda reference: (reference & translation).total())
        print((best & translation).total(), best.total() + translation.total(), flush=True)
    else:
        common, words = map(float, texts[0].split())
        print(2 * common / words, 2 * common / words, sep="\\n", flush=True)
"""


def fake_program(folder: Path, monkeypatch) -> str:
    """Makes ``java`` the program, and returns the name of its jar."""
    jar = str(folder / "meteor-1.5.jar")
    Path(jar).touch()
    java = folder / "bin" / "java"
    java.parent.mkdir(exist_ok=True)
    java.write_text(PROGRAM.format(python=sys.executable))
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}{os.environ['PATH']}")
    return jar
