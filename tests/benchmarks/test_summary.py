"""The section on speed of docs/benchmarks.md agrees with the results."""

from benchmarks import summary


def test_page_agrees_with_the_results():
    assert summary.section() in summary.PAGE.read_text(encoding="utf-8")
