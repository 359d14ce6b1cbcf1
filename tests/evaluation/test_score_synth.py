import json
import os
import random

import pytest
from matplotlib.figure import Figure

from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.synth import SynthOptions, read_cases, write_corpus
from docnmt_fairseq.evaluation.synth_report import distance_ranges


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    options = SynthOptions(
        train_documents=100,
        valid_documents=1,
        test_documents=40,
        max_distance=5,
        sentences_per_document=(12, 16),
        introductions=3,
    )
    write_corpus(options, folder)
    write_log(folder, "document", lambda case, rng: case.right)
    write_log(folder, "sentence", lambda case, rng: min(case.right, *case.wrong))
    return folder


def write_log(folder, name, choose):
    cases = {case.id: case for case in read_cases(folder / "test.phenomena.tsv")}
    lines = (folder / "test.tgt").read_text().split("\n")[:-1]
    rng, blocks = random.Random(name), []
    for i, line in enumerate(lines):
        words = line.split()
        if i in cases:
            words[cases[i].position] = choose(cases[i], rng)
        if line not in ("", "<p>"):
            blocks.append(f"S-{i}\tx\nH-{i}\t-0.1\t{' '.join(words)}\nD-{i}\t-0.1\t{' '.join(words)}\nP-{i}\t-0.1\n")
    rng.shuffle(blocks)
    (folder / f"{name}.log").write_text("".join(blocks))


def score(corpus, output, *more):
    systems = [f"--system={name}={corpus / name}.log" for name in ("sentence", "document")]
    return main(["score-synth", "--corpus", str(corpus), *systems, "--output", str(output), *more])


def test_tables_results_and_picture(corpus, tmp_path, capsys):
    assert score(corpus, tmp_path, "--assert-minimum", "document=1.0", "--assert-ceiling", "sentence") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["system", "BLEU", "chrF", "ambiguous", "formality", "pronoun", "overall"]
    assert printed[2].split() == ["document"] + ["100.0"] * 6
    assert any(line.startswith("BLEU nrefs:1") for line in printed)
    assert printed[-2:] == [str(tmp_path / "results.json"), str(tmp_path / "accuracy_by_distance.png")]
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["systems"]["document"]["phenomena"]["overall"]["accuracy"] == 1
    assert results["systems"]["sentence"]["phenomena"]["overall"]["accuracy"] < 0.6
    assert set(results["ceiling"]["kinds"]) == {"ambiguous", "formality", "pronoun"}
    assert (tmp_path / "accuracy_by_distance.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--assert-minimum", "sentence=0.95"], "below it in ambiguous"),
        (["--assert-ceiling", "document"], "above the ceiling without context in ambiguous 100.0 %"),
        (["--assert-ceiling", "other"], "'other', which is not a --system"),
        (["--assert-minimum", "document=95"], "expected a share from 0 to 1"),
        (["--assert-minimum", "document"], "expected NAME=VALUE"),
        (["--system", "sentence=x"], "comes twice"),
    ],
)
def test_assertions_and_bad_options_fail(corpus, tmp_path, capsys, arguments, message):
    assert score(corpus, tmp_path, *arguments) == 2
    assert message in capsys.readouterr().err


def test_results_are_written_whatever_a_system_is_called(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("docnmt_fairseq.evaluation.plots.plot_accuracy_by_distance", lambda *drawn: None)
    name = os.fsdecode(b"caf\xe9")
    system = f"--system={name}={corpus / 'document'}.log"
    assert main(["score-synth", "--corpus", str(corpus), system, "--output", str(tmp_path)]) == 0
    assert list(json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["systems"]) == [name]


def test_the_picture_names_systems_as_they_are_called(corpus, tmp_path, monkeypatch):
    """matplotlib has no entry for a name with _ before it, and reads formulas between $, wrong ones with an error."""
    drawn, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, path: drawn.append(self) or save(self, path))
    names = ["_first", r"$\frac$", os.fsdecode(b"caf\xe9")]
    systems = [f"--system={name}={corpus / 'document'}.log" for name in names]
    assert main(["score-synth", "--corpus", str(corpus), *systems, "--output", str(tmp_path)]) == 0
    shown = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert shown == [*names[:2], "caf\ufffd", "best without context"]


def test_corpus_without_its_files_is_refused(tmp_path, capsys):
    assert score(tmp_path, tmp_path / "out") == 2
    assert "lexicon.json: no such file" in capsys.readouterr().err


def test_distance_ranges_cover_all():
    assert distance_ranges(1, 12) == [(1, 3), (4, 6), (7, 9), (10, 12)]
    assert distance_ranges(1, 5) == [(1, 2), (3, 4), (5, 5)]
    assert distance_ranges(3, 3) == [(3, 3)]
