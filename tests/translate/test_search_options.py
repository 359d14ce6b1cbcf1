"""Search options of the translator: n-best lists, prefixes, sampling, precision."""

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.lines import Origin
from tests.support.translating import SAME_SEARCH, translator

LINES = ["a b c", "d", "e e a", "<p>", "b"]


def test_nbest_lists_and_scores(prepared, checkpoint, tmp_path):
    (tmp_path / "in").write_text("a b c\n<p>\nd\n\ne e a\n")
    command = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--input", str(tmp_path / "in")]
    command += ["--cpu", *SAME_SEARCH, "--output", str(tmp_path / "out")]
    assert cli.main([*command, "--nbest", "2"]) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    header, *rows = (tmp_path / "out.scores.tsv").read_text().splitlines()
    table = [row.split("\t") for row in rows]
    assert header.split("\t") == ["line", "rank", "score", "translation"]
    assert [row[:2] for row in table] == [[line, rank] for line in "135" for rank in "12"]
    assert [row[3] for row in table if row[1] == "1"] == [lines[0], lines[2], lines[4]]
    assert all(float(one[2]) >= float(other[2]) for one, other in zip(table[::2], table[1::2]))
    assert cli.main([*command, "--force", "--context", "shuffled", "--scores"]) == 0
    assert len((tmp_path / "out.scores.tsv").read_text().splitlines()) == 4


def test_sampling_depends_on_the_origin_of_a_line_only(prepared, checkpoint):
    sampling = translator(checkpoint, prepared, search=SearchOptions(beam=2, max_len_b=10, sampling=True, nbest=2))
    lines = ["a b c", "", "d", "", "e e a", "", "b"]  # a sentence per document

    def sampled(texts, *origins):
        found = sampling.translate_lines(texts, [Origin("x", *origin) for origin in origins])
        return [[one.text for one in line.translations] for text in found for line in text]

    whole = sampled([lines], ("a", 0))
    assert whole == sampled([lines[:2]], ("a", 0)) + sampled([lines[2:]], ("a", 2))
    assert whole == sampled([lines[:4], lines[4:]], ("a", 0), ("a", 4)) != sampled([lines], ("b", 0))
    assert sampled([lines], ("a", 7)) != whole
    assert sampled([lines, lines], ("b", 0), ("a", 0))[len(lines) :] == whole


@pytest.mark.cpu
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_low_precision_changes_scores_little(prepared, checkpoint, precision):
    full = translator(checkpoint, prepared).translate_lines([LINES])[0]
    found = translator(checkpoint, prepared, precision=precision).translate_lines([LINES])[0]
    for one, other in zip(full, found):
        for a, b in zip(one.translations[:1], other.translations[:1]):
            assert b.score == pytest.approx(a.score, rel=0.05)
