"""The report in a browser: no network requests, and the context of selected words."""

import pytest

from docnmt_fairseq.cli import main
from docnmt_fairseq.report.inspection import InspectedSentence, Inspection
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.views import RELEVANCE, View
from tests.support import browser as system
from tests.support.browser import LEFT, RIGHT, Browser
from tests.support.documents import write_lines
from tests.support.extra_sources import with_extra_sources
from tests.support.toy import train

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(system.missing() is not None, reason=f"no browser to test with: {system.missing()}"),
]
TREE = ["--context-attention", "tree", "--context-top-t", "2", "--context-init", "xavier"]
SOURCES = ["--extra-sources", "previous", "--attention-combination", "hierarchical", "--attention-sentinel"]


@pytest.fixture
def page(tmp_path):
    """Returns a function that writes a report and opens it in a browser; checks errors and requests afterwards."""
    browser = Browser()

    def shown(data_bin, checkpoint, *options):
        file = tmp_path / "report.html"
        arguments = ["report", "--path", str(checkpoint), "--data", str(data_bin), "--output", str(file)]
        assert main([*arguments, "--beam", "1", *options]) == 0
        browser.open(file.as_uri())
        return browser

    try:
        yield shown
        assert browser.complaints() == []
        assert {url.split(":")[0] for url in browser.requested()} <= {"file", "data"}
    finally:
        browser.close()


def test_sentences_tree_and_heads_of_a_word(page, data_bin, tmp_path):
    checkpoint = train(data_bin, tmp_path / "tree", *TREE, "--max-update", "1")
    write_lines(tmp_path / "text.src", ["a b c", "d", "e e a", "b <b>c</b> </script> d", "a"])
    found = page(data_bin, checkpoint, "--input", str(tmp_path / "text.src"))
    assert found.run("return document.querySelectorAll('.sentence').length") == 5
    found.point(".sentence:nth-of-type(3) .w:nth-of-type(1)")
    shown = found.wait("document.querySelector('#panel h3') && document.querySelector('#panel').innerText")
    assert "sentence 3" in shown and "Selected sentences, by relevance" in shown and "Select one head" in shown
    coloured = "[...document.querySelectorAll('.sentence')].filter((one) => one.style.background).length"
    assert found.run(f"return {coloured}") >= 2
    found.run("document.querySelector('.w').focus()")
    first = found.text("#panel h3")
    found.press(RIGHT)
    second = found.wait("document.querySelector('#panel h3').innerText")
    assert first != second and "sentence 1" in second
    found.run("const head = document.querySelector('#head'); head.value = 0; head.dispatchEvent(new Event('change'))")
    assert found.run("return document.querySelectorAll('#panel .tree li').length") > 2  # from the root to two leaves
    assert found.run(f"return {coloured}") == 2  # as many as are kept


def test_heat_maps_of_the_selected_layer(page, data_bin, tmp_path):
    extra_bin = with_extra_sources(data_bin, tmp_path / "bin")
    checkpoint = train(extra_bin, tmp_path / "sources", *SOURCES, "--max-update", "1")
    found = page(extra_bin, checkpoint)
    cells = "return [...document.querySelectorAll('.heat td[data-w]')].map((cell) => Number(cell.textContent))"
    before = found.run(cells)
    rows = found.run("return Math.max(...[...document.querySelectorAll('.heat td[data-w]')].map((c) => c.dataset.k))")
    assert rows == 2 and max(before) <= 100  # the sentence, the one before it, the sentinel
    found.run(
        "const layer = document.getElementById('source-layer');"
        "layer.value = layer.options[layer.selectedIndex ? 0 : 1].value; layer.dispatchEvent(new Event('change'))"
    )
    assert found.run(cells) != before


@pytest.fixture
def opened(tmp_path):
    """Returns a function that opens a page of sentences and views."""
    browser = Browser()

    def shown(sentences, views):
        html = Page("x", {}, Inspection(sentences, []), views).to_html()
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        browser.open((tmp_path / "page.html").as_uri())
        return browser

    try:
        yield shown
        assert browser.complaints() == []
    finally:
        browser.close()


def test_right_to_left_text(opened):
    hebrew, english = ["\u05d0\u05d1", "\u05d2\u05d3", "\u05d4\u05d5", "</s>"], ["a", "b", "c", "</s>"]
    entries = {word: [[(0, 1.0)]] for word in range(8)}
    views = [View(f"{side}.layers.0.context", "x", side_of, side_of, 1, {RELEVANCE: entries})
             for side, side_of in (("encoder", "source"), ("decoder", "target"))]  # fmt: skip
    sentences = [InspectedSentence(0, 0, hebrew, english, hebrew[1:]), InspectedSentence(1, 0, english, hebrew)]
    browser = opened(sentences, views)
    left = "[...document.querySelectorAll(arguments[0])].map((word) => word.getBoundingClientRect().left)"
    for place, side in enumerate(("source", "translation")):
        for row in (1, 2):
            words = browser.run(f"return {left}", f"#s{row} .{side} .w")
            assert len(words) == 4 and words == sorted(words, reverse=(row == 1) == (place == 0)), (row, side)
    direction = "getComputedStyle(document.querySelector(arguments[0])).direction"
    assert browser.run(f"return {direction}", "#s1 .reference span") == "rtl"
    for row, forward in ((1, LEFT), (2, RIGHT)):
        browser.run("document.querySelector(arguments[0]).focus()", f"#s{row} .source .w")
        browser.press(forward)
        assert browser.run("return document.activeElement.textContent") == sentences[row - 1].source[1]


def test_selection_is_kept_when_the_mouse_passes_the_other_side(opened):
    tokens = ["a", "b", "</s>"]
    entries = {word: [[(0, 1.0)], [(1, 1.0)]] for word in range(6)}
    sides = ("encoder.layers.0", "source"), ("encoder.layers.1", "source"), ("decoder.layers.0", "target")
    views = [View(f"{part}.context", "x", side, side, 2, {RELEVANCE: entries}) for part, side in sides]
    views[2].heads = 1
    browser = opened([InspectedSentence(number, 0, tokens, tokens) for number in range(2)], views)
    browser.click("#s1 .source .w")
    choose = "const [name, value] = arguments, one = document.getElementById(name); one.value = value;"
    for name, value in (("view", "1"), ("head", "1")):
        browser.run(f"{choose} one.dispatchEvent(new Event('change'))", name, value)
    chosen = "return ['view', 'head', 'measure'].map((name) => document.getElementById(name).value)"
    before = browser.run(chosen)
    browser.point("#s2 .translation .w")
    assert browser.run(chosen)[:2] == ["2", "all"]
    browser.point("h1")
    assert browser.run(chosen) == before == ["1", "1", RELEVANCE]
