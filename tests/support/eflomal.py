"""Fake of the program eflomal-align that links words by position."""

import json
import os
import sys
from pathlib import Path

PROGRAM = """#!{python} -S
import json, sys
files = dict(zip(sys.argv[1::2], sys.argv[2::2]))
source, target = (open(files[flag], encoding="utf-8").read().split("\\n")[:-1] for flag in ("-s", "-t"))
with open({seen!r}, "a", encoding="utf-8") as stream:
    print(json.dumps(list(zip(source, target))), file=stream)
for flag, links in (("-f", {forward!r}), ("-r", {reverse!r})):
    with open(files[flag], "w") as stream:
        for words, others in zip(source, target):
            n = min(len(words.split()), len(others.split()))
            pairs = [(i, i) for i in range(n)] if links is None else links
            print(*(f"{{i}}-{{j}}" for i, j in pairs), file=stream)
"""


class FakeEflomal:
    """Program in a folder that precedes all others on the path.

    Args:
        folder: existing folder.
        monkeypatch: fixture of pytest.
        forward, reverse: links of every sentence; None: by position.
    """

    def __init__(self, folder: Path, monkeypatch, forward=None, reverse=None):
        self.log, self.program = folder / "seen.jsonl", folder / "eflomal-align"
        text = PROGRAM.format(python=sys.executable, seen=str(self.log), forward=forward, reverse=reverse or forward)
        self.write(text)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def write(self, text):
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)

    @property
    def seen(self):
        """Sentence pairs of every call."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
