"""Translation of files by stub translators, with interruptions."""

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.translate.inputs import Request, input_files
from docnmt_fairseq.translate.lines import TranslatedLine, Translation
from docnmt_fairseq.translate.translate_files import translate_files
from tests.support.texts import Stub

TEXT = "".join(f"document {n}\nsecond line\n<p>\nthird\n\n" for n in range(20))
EXPECTED = TEXT.upper().replace("<P>", "<p>")


class Scoring(Stub):
    """Stub with two translations of every sentence."""

    def translate_lines(self, documents, *arguments):
        best = self.translate(documents, *arguments)
        return [
            [
                TranslatedLine(line, [] if is_boundary(line) else [Translation(line, -0.5), Translation("?", -1)])
                for line in one
            ]
            for one in best
        ]


class Failing(Scoring):
    """Stub that raises an error after so many calls."""

    def __init__(self, calls, error=KeyboardInterrupt):
        super().__init__()
        self.calls, self.error = calls, error

    def translate(self, *arguments):
        self.calls -= 1
        if self.calls < 0:
            raise self.error()
        return super().translate(*arguments)


def run(folder, translator, *, output="out", fingerprint="x", inputs=("in",), scores=False, **options):
    """Translates files of a folder."""
    files = input_files(Request([folder / name for name in inputs], folder / output, **options))
    resume = options.get("resume", False)
    translate_files(files, translator, "document", lambda n: None, scores, resume=resume, fingerprint=fingerprint)
    return files


def names(folder):
    """Returns the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def table(lines):
    """Returns the table of scores of translated lines."""
    rows = [
        f"{n}\t1\t-0.500000\t{line}\n{n}\t2\t-1.000000\t?\n" for n, line in enumerate(lines, 1) if not is_boundary(line)
    ]
    return "line\trank\tscore\ttranslation\n" + "".join(rows)
