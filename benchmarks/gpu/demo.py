"""Stage ``demo``: scripts/demo.sh on the GPU, where fairseq-train and fairseq-generate are given no other option."""

import json
import os
import subprocess
import time
from typing import Iterator

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT

MOST_SECONDS = 360


@STAGES.register("demo")
class Demo(Stage):
    """Both models side by side; what the conditional one knows of its documents is known: all."""

    minutes = 7.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        yield "demo", lambda: ran(setting)


def ran(setting: Setting) -> Figures:
    """Returns the seconds of the whole demo, its exit status, and each model's BLEU and accuracy; toys: its syntax."""
    folder, script = (setting.output / "demo").resolve(), str(ROOT / "scripts" / "demo.sh")
    call = ["bash", "-n", script] if setting.dry else ["timeout", str(MOST_SECONDS), "bash", script, str(folder)]
    environment, begun = {**os.environ, "OMP_NUM_THREADS": "1"}, time.monotonic()
    done = subprocess.run(call, env=environment, check=False, capture_output=True, text=True)
    if setting.dry:  # models that learnt nothing translate for minutes
        return {"exit": done.returncode}
    results = folder / "report" / "results.json"
    if not results.exists():  # a model that is not as good as it should be ends so, too, but with results
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    found: Figures = {"seconds": time.monotonic() - begun, "exit": done.returncode}
    for name, system in json.loads(results.read_text(encoding="utf-8"))["systems"].items():
        found[f"{name}: BLEU"] = system["scores"]["bleu"]
        found[f"{name}: accuracy"] = system["phenomena"]["overall"]["accuracy"]
    return found
