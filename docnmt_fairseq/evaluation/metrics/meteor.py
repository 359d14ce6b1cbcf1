"""METEOR (Denkowski and Lavie 2011) by the authors' Java program, which the user provides."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Dict, List, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.texts import References
from docnmt_fairseq.options import option

SEPARATOR = " ||| "  # of the program's interactive mode


@dataclass(frozen=True)
class MeteorOptions(MetricOptions):
    """Options of METEOR."""

    meteor: str = option("", "the authors' meteor-1.5.jar, next to its folder data; needs java", metavar="FILE")
    meteor_language: str = option("en", "language of the references for METEOR, such as de", metavar="LANG")


@METRICS.register("meteor")
class Meteor(Metric):
    """METEOR in percent; sums of the program's statistics are scored by the program."""

    title = "METEOR"
    help = "the authors' program, with --meteor FILE"
    Options = MeteorOptions
    options: MeteorOptions
    enabled_by = "meteor"

    def __init__(self, test_set: References, options: MeteorOptions):
        super().__init__(test_set, options)
        self.messages = TemporaryFile()  # noqa: SIM115  (lives as long as the program)
        self.program = subprocess.Popen(  # ends when this object does, with its input
            ["java", "-Xmx2G", "-jar", options.meteor, "-", "-", "-stdio", "-l", options.meteor_language, "-norm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.messages, encoding="utf-8",
        )  # fmt: skip

    def segment_statistics(self, translation: str, references: Sequence[str]) -> List[float]:
        """Statistics of the program."""
        texts = [" ".join(text.replace("|||", "").split()) for text in (*references, translation)]
        return [float(number) for number in self._answers(["SCORE", *texts], 1)[0].split()]

    def score(self, sums: Sequence[float]) -> float:
        """Score of the program; 0 without segments."""
        if not any(sums):
            return 0.0
        statistics = " ".join(
            f"{number:.15g}" for number in sums
        )  # counts without a point, as versions 1.3 and 1.5 read
        return 100 * float(self._answers(["EVAL", statistics], 2)[1])  # of the only segment, and of all

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature with the name of the program instead of its path."""
        path = self.options.meteor
        return super().format_signature(details).replace(path, Path(path).name)

    def _answers(self, request: Sequence[str], lines: int) -> List[str]:
        """Returns the lines with which the program answers a request."""
        stdin, stdout = self.program.stdin, self.program.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(SEPARATOR.join(request) + "\n")
            stdin.flush()
            answers = [stdout.readline().strip() for _ in range(lines)]
        except BrokenPipeError:
            answers = [""]
        if not all(answers):
            self.messages.seek(0)
            last = self.messages.read().decode(errors="replace").strip().splitlines()[-1:]
            raise InputError(f"--meteor {self.options.meteor}: ended without an answer: {''.join(last)}")
        return answers
