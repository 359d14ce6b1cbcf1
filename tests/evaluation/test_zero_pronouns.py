"""Accuracy of zero pronouns: counted by hand, published counts, and the aligner."""

import ast
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.zero_pronouns import WORDS, ZeroPronounOptions, candidates, english
from docnmt_fairseq.evaluation.texts import References, read_references
from tests.support.eflomal import FakeEflomal
from tests.support.scored import write

DATA = Path(os.environ.get("DOCNMT_SHARED_DATA", "../shared/data")) / "mzprt-zh-en"
SYSTEMS = {
    "base_tgt": 225, "large_tgt": 213, "zhang_tgt": 218, "rec_tgt": 222, "cache_tgt": 230, "deep_oracle": 390
}  # fmt: skip
WITH_DATA = pytest.mark.skipif(not DATA.exists(), reason="no mzprt-zh-en in DOCNMT_SHARED_DATA")


def test_words_and_links(tmp_path, monkeypatch):
    fake = FakeEflomal(tmp_path, monkeypatch)
    source = write(tmp_path / "src", ["没问题，都办好了", "", "要看 DVD"])
    reference = write(tmp_path / "ref", ["No problem, it's done.", "", "Do you watch it?"])
    marks = write(tmp_path / "zp.tsv", ["0\t4\t它\tS", "2\t2\t我们的\tPa", "2\t0\t你\tS", "2\t1\t它\tUN"])
    metric = METRICS["zero-pronouns"](read_references([reference], source), ZeroPronounOptions(str(marks)))
    rows = metric.statistics([["No, it's"], ["You saw a DVD, our own."]])
    pairs = fake.seen[0]
    assert [one for one, _ in pairs] == ["没 问 题 ， 它 都 办 好 了", "你 要 看 我 们 的 DVD"] * 2
    assert [other for _, other in pairs][:3] == ["no , it 's", "you saw a dvd , our own .", "no problem , it 's done ."]
    # 它 is not aligned, and "it" is after the translation of "，"; "you" and "our" are near the aligned words.
    assert [row[:2] for row in rows] == [[0, 1], [2, 2]]
    parts = metric.part_scores([sum(column) for column in zip(*rows)])
    assert parts == {"it": 0, "you": 100, "we": 100}
    assert "aligner:eflomal" in metric.signature()


@pytest.mark.parametrize(
    "links, expected",
    [
        ({4: [5]}, "3 4 5 6 7 8"),
        ({4: [0, 9]}, "0 1 2 3 7 8 9"),
        ({2: [6, 4], 3: [7, 8], 6: [2]}, "7 8 9"),
        ({2: [6, 4]}, "4 5 6 7 8"),  # without the last word
        ({6: [2]}, "0 1 2 3 4 5 6 7 8 9"),
        ({}, "0 1 2 3 4 5 6 7 8"),
    ],
)
def test_candidates(links, expected):
    assert list(candidates(list("0123456789"), links, range(4, 5))) == expected.split()


def test_english_forms():
    for pronoun, role, form in (
        ("我", "S", "i"),
        ("你的", "S", "you"),
        ("他", "O", "him"),
        ("他", "Pa", "him"),
        ("他的", "Pa", "his"),
        ("它", "P", "it"),
        ("我", "Pa", "my"),
        ("我的", "P", "mine"),
        ("她自己", "R", "herself"),
        ("他們", "S", "they"),
    ):
        assert english(pronoun, role)[0] == form
    assert english("它", "UN") is None and english("这个", "O") is None


def test_words_of_both_languages():
    assert " ".join(WORDS.findall("don't 'say' 3.5, 我们！")) == "don 't ' say ' 3 . 5 , 我 们 ！"


@pytest.mark.parametrize("row", ["0\t0\t我", "0\tx\t我\tS", "1\t0\t我\tS", "0\t0\t我\tUN"])
def test_bad_marks(tmp_path, row):
    test_set = References(("ref",), [[["a"]]], [["b"]], [[1]])
    options = ZeroPronounOptions(str(write(tmp_path / "zp.tsv", [row])), alignments=["x=y"])
    with pytest.raises(InputError, match=r"zp\.tsv"):
        METRICS["zero-pronouns"](test_set, options)


def published(system):
    """Returns the rows of the published details, and the words of the translation of each sentence with marks."""
    details = (DATA / "published" / f"{system}.details").read_text(encoding="utf-8").splitlines()[1:]
    tagged = (DATA / "published" / f"{system}.tagged").read_text(encoding="utf-8").splitlines()
    words = [[word.strip("<>") or word for word in line.split()] for line in tagged]
    return [row.split("\t") for row in details], words


def links_of(position, places, found, words):
    """Returns an alignment for which the candidates are the published ones."""
    if isinstance(places, int):
        return f"{position}-{places}"
    for target in range(len(words)):
        if words[max(0, target - 2) : target + 4] == found and places[:1] == [max(0, target - 2)]:
            return f"{position}-{target}"
    starts = [start for start in range(len(words)) if found in (words[start:], words[start:-1])]
    start = starts[0] if starts else len(words) - 1
    previous = [f"{position - 1}-{start}"] if position else []
    return " ".join(previous + ([f"{position + 1}-{start}"] if found == words[start:] else []))


@WITH_DATA
@pytest.mark.parametrize("system", SYSTEMS)
def test_published_counts(tmp_path, system):
    """Counts for each pronoun and role, and every judgement, from the positions in the published details."""
    rows, sentences = published(system)
    source, target, links, marks, expected = [], [], [], [], []
    for line, (sentence, position, pronoun, _, places, found, case) in enumerate(rows):
        words = sentences[int(sentence)]
        bare, role = re.fullmatch("<(.*)>_(.*)", pronoun).groups()
        source.append("w " * int(position) + "w")
        target.append(" ".join(words))
        marks.append(f"{line}\t{2 * int(position)}\t{bare}\t{role}")
        places = ast.literal_eval(places)
        links.append(
            links_of(int(position), places, found if isinstance(places, int) else ast.literal_eval(found), words)
        )
        expected.append(case == "1")
    options = ZeroPronounOptions(
        str(write(tmp_path / "zp.tsv", marks)), alignments=[f"x={write(tmp_path / 'links', links)}"]
    )
    test_set = References(("ref",), [[target]], [source], [list(range(1, len(target) + 1))])
    metric = METRICS["zero-pronouns"](test_set, options)
    assert [of_line[0].form for of_line in metric.marks] == [row[3] for row in rows]
    statistics = metric.system_statistics("x", [target])
    assert [row[0] == 1 for row in statistics] == expected
    *by_pronoun, total = (DATA / "published" / f"{system}.score").read_text(encoding="utf-8").splitlines()
    counts = Counter((row[2], judged[0] == 1) for row, judged in zip(rows, statistics))
    for line in by_pronoun:
        name, correct, wrong = re.fullmatch(r"SRC_ZP:(.*?)\t.*Correct:(\d+)\tIncorrect:(\d+)\t.*", line).groups()
        assert (counts[name, True], counts[name, False]) == (int(correct), int(wrong))
    assert metric.corpus_score(statistics) == pytest.approx(100 * SYSTEMS[system] / 449)
    assert f"Correct entities:{SYSTEMS[system]}\t" in total


@WITH_DATA
@pytest.mark.skipif(shutil.which("eflomal-align") is None, reason="eflomal is not installed")
@pytest.mark.parametrize("system", SYSTEMS)
def test_alignments_by_eflomal_agree_with_published_judgements(tmp_path, system):
    """On the sentences with marks, whose translations are published."""
    rows, sentences = published(system)
    numbers = list(dict.fromkeys(int(row[0]) for row in rows))
    all_marks = [row.split("\t") for row in (DATA / "movie-test.pronouns.tsv").read_text("utf-8").splitlines()]
    lines = list(dict.fromkeys(int(line) for line, *_, role in all_marks if role != "UN"))
    texts = [(DATA / f"movie-test.{language}").read_text("utf-8").split("\n") for language in ("zh", "en")]
    source, reference = ([text[line] for line in lines] for text in texts)
    marks = [f"{lines.index(int(line))}\t" + "\t".join(more) for line, *more in all_marks if int(line) in lines]
    test_set = References(("ref",), [[reference]], [source], [list(range(1, len(lines) + 1))])
    metric = METRICS["zero-pronouns"](test_set, ZeroPronounOptions(str(write(tmp_path / "zp.tsv", marks))))
    assert [mark.form for of_line in metric.marks for mark in of_line] == [row[3] for row in rows]
    score = metric.corpus_score(metric.statistics([[" ".join(sentences[number]) for number in numbers]]))
    assert abs(score - 100 * SYSTEMS[system] / 449) < 6
