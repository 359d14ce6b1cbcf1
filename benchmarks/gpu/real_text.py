"""Stage ``real-text``: the recipe of the handbooks, from a sentence-level start to a table, as far as its time goes."""

import json
import subprocess
import sys
import time
from typing import Iterator, List

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT

MODELS = ("sentence", "conditional", "han-target", "tree")
SIZE = ["--size", "base", "--updates", "1000"]


@STAGES.register("real-text")
class RealText(Stage):
    """One model after the other; killed at the limit, it goes on where it was when it is called again."""

    minutes = 9.5

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for name in MODELS[:2] if setting.dry else MODELS:
            yield name, lambda name=name: trained(name, setting)


def trained(name: str, setting: Setting) -> Figures:
    """Returns the scores of a model of the recipe, and the seconds that it took this time."""
    folder = setting.output / "recipe"
    words: List[str] = ["en_de_manuals", "--output", str(folder), "--models", name, "--workers", "4"]
    words += ["--smoke", "--updates", "4"] if setting.dry else [*SIZE, "--raw", str(setting.raw)]
    words += ["--until", "translate"]
    begun = time.monotonic()
    call = [sys.executable, "-m", "docnmt_fairseq", "recipe", *words]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    model = folder / "models" / f"{name}-1"
    found: Figures = {"seconds": time.monotonic() - begun}
    for scores in sorted(model.glob("scores*.json")):
        found[scores.stem] = json.loads(scores.read_text(encoding="utf-8"))
    return found
