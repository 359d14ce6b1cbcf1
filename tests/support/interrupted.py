"""Translations of a file by stand-ins for a translator, some of which are interrupted."""

from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.files import translate_files
from docnmt_fairseq.translate.lines import TranslatedLine, Translation
from docnmt_fairseq.translate.request import Request
from docnmt_fairseq.translate.texts import texts_of
from tests.support.texts import Stub

TEXT = "".join(f"document {n}\nsecond line\n<p>\nthird\n\n" for n in range(20))
WANTED = TEXT.upper().replace("<P>", "<p>")
SETTINGS = {"beam": "5"}


class Scoring(Stub):
    """Gives every sentence two translations."""

    def translate_lines(self, documents, *arguments):
        best = self.translate(documents, *arguments)
        return [
            [
                TranslatedLine(line, [] if is_mark(line) else [Translation(line, -0.5), Translation("?", -1)])
                for line in one
            ]
            for one in best
        ]


class Failing(Scoring):
    """Is interrupted in the middle."""

    def __init__(self, calls, error=KeyboardInterrupt):
        super().__init__()
        self.calls, self.error = calls, error

    def translate(self, *arguments):
        self.calls -= 1
        if self.calls < 0:
            raise self.error()
        return super().translate(*arguments)


def run(folder, translator, *, output="out", settings=SETTINGS, inputs=("in",), scores=False, **options):
    texts = texts_of(Request([folder / name for name in inputs], folder / output, **options))
    progress = []
    translate_files(
        texts, translator, "document", progress.append, scores, resume=options.get("resume", False), settings=settings
    )
    return texts


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def table(lines):
    """Scores of the lines of a translation."""
    rows = [
        f"{n}\t1\t-0.500000\t{line}\n{n}\t2\t-1.000000\t?\n" for n, line in enumerate(lines, 1) if not is_mark(line)
    ]
    return "line\trank\tscore\ttranslation\n" + "".join(rows)
