"""docnmt embed, a corpus made here."""

import re

import numpy as np
import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.embedding.model import SentenceEmbedding
from tests.support.documents import write_lines

METHODS = ("ca-sem", "ca-sem-sensitive", "sif", "average")
TOPICS, FILLERS = 6, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Returns a folder with word vectors, a corpus and judged pairs: words of a topic are alike, fillers say nothing.

    Fillers are frequent, and all words share a direction, as those of real vectors do.
    """
    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(1)
    topics, common = rng.normal(size=(TOPICS, 12)), 2 * rng.normal(size=12)
    words = {f"t{t}w{w}": common + topics[t] + 0.5 * rng.normal(size=12) for t in range(TOPICS) for w in range(5)}
    words |= {f"f{number}": 2 * common + rng.normal(size=12) for number in range(FILLERS)}
    write_lines(folder / "vec", [f"{len(words)} 12", *(f"{w} {' '.join(map(str, v))}" for w, v in words.items())])

    def sentence(topic):
        of_topic = [f"t{topic}w{number}" for number in rng.integers(0, 5, 3)]
        return " ".join([*of_topic, *(f"f{number}" for number in rng.integers(0, FILLERS, rng.integers(1, 7)))])

    write_lines(folder / "corpus", [sentence(topic) for topic in rng.integers(0, TOPICS, 300)] + ["<p>", ""])
    pairs = [(sentence(a), sentence(b), 5 if a == b else 1) for a, b in rng.integers(0, 3, (80, 2))]
    write_lines(folder / "sts", [f"{score}\t{a}\t{b}" for a, b, score in pairs])
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    write_lines(folder / "sick", [header, *(f"{n}\t{a}\t{b}\t{score}\tX" for n, (a, b, score) in enumerate(pairs))])
    years = ["2012test", "2015"]
    rows = [f"genre\tfile\t{years[n % 2]}\t{n}\t{score}\t{a}\t{b}" for n, (a, b, score) in enumerate(pairs)]
    write_lines(folder / "benchmark", rows)
    for n, year in enumerate(years):
        write_lines(folder / f"sts-{year[:4]}", [f"{score}\t{a}\t{b}" for a, b, score in pairs[n::2]])
    for method in METHODS:
        options = ["--vectors", folder / "vec", "--corpus", folder / "corpus", "--output", folder / f"{method}.npz"]
        assert run("fit", *options, "--method", method) == 0
    return folder


def run(*arguments):
    return cli.main(["embed", *map(str, arguments)])


def test_transform_writes_one_row_per_line(made, tmp_path, monkeypatch):
    monkeypatch.setattr("docnmt_fairseq.embedding.model.CHUNK", 7)
    model = made / "ca-sem.npz"
    assert run("transform", "--model", model, "--input", made / "corpus", "--output", tmp_path / "out.npy") == 0
    found, fitted = np.load(tmp_path / "out.npy"), SentenceEmbedding.load(model)
    lines = (made / "corpus").read_text().splitlines()
    assert found.shape == (302, 12) and found.dtype == np.float32 and not found[300:].any()
    np.testing.assert_array_equal(found[:300], fitted.embed(fitted.vocabulary.encode(lines[:300])))
    assert not list(tmp_path.glob("*.partial"))


def correlations(capsys):
    return {method: float(r) for method, r in re.findall(r"\.npz +(\S+) +\S+ % +(\S+)$", capsys.readouterr().out, re.M)}


def test_similarity_of_all_methods_in_both_formats(made, capsys):
    models = [made / f"{method}.npz" for method in METHODS]
    capsys.readouterr()
    assert run("similarity", "--model", *models, "--set", made / "sts") == 0
    of_sts = correlations(capsys)
    assert run("similarity", "--model", *models, "--set", made / "sick", "--format", "sick") == 0
    assert correlations(capsys) == of_sts
    assert min(of_sts["ca-sem-sensitive"], of_sts["sif"]) > of_sts["average"] + 5
    assert of_sts["ca-sem"] == pytest.approx(of_sts["average"], abs=3)  # it approximates the sum of the word vectors


def test_similarity_by_year(made, capsys):
    capsys.readouterr()
    model = ["--model", made / "sif.npz"]
    assert run("similarity", *model, "--set", made / "benchmark", "--format", "sts-benchmark") == 0
    header = capsys.readouterr().out.splitlines()[0]
    found = dict(zip(header.split()[-2:], last_row(made, model, "benchmark", "sts-benchmark", capsys)[-2:]))
    for year in ("2012", "2015"):
        assert found[year] == last_row(made, model, f"sts-{year}", "sts", capsys)[-1]
    assert found["2012"] != found["2015"]


def last_row(made, model, name, form, capsys):
    assert run("similarity", *model, "--set", made / name, "--format", form) == 0
    return capsys.readouterr().out.splitlines()[-1].split()


FIT = ["fit", "--corpus", "c", "--output", "o"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (FIT, "give --vectors, or --path with its --data"),
        ([*FIT, "--vectors", "v", "--iterations", "0"], "--iterations 0"),
    ],
)
def test_bad_options(capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
