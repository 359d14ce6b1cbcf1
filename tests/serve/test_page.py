"""Page in a browser: translation, attention of words, comparison without context, escaped text."""

import json

import pytest

from tests.support import browser as system
from tests.support.browser import CONTROL, RIGHT, Browser
from tests.support.serving import soon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(system.missing() is not None, reason=f"no browser to test with: {system.missing()}"),
]
TEXT = "a b c here. D e there.\n\nE e a now. b c d e again."
HOSTILE = """<script>document.title = "taken"</script> <img src=x onerror="document.title='taken'"> here.
</p></div><h1>a</h1> "'>&amp; {{7*7}} \u202eabc\u202c there. javascript:alert(1) <b>now</b>."""


@pytest.fixture
def page(server, tmp_path_factory):
    """Returns a browser at the page, which causes no warnings and loads nothing from elsewhere."""
    browser = Browser(downloads=tmp_path_factory.mktemp("downloads"))
    try:
        browser.open(f"{server.address}/")
        yield browser
        assert browser.complaints() == []
        asked = browser.requested()
        assert asked and [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []
    finally:
        browser.close()


def translate(page, text):
    page.fill("#text", text)
    page.click("#go")
    page.wait(
        "/sentences/.test(document.querySelector('#status').textContent) && !document.querySelector('#go').disabled"
    )


def test_translate_and_point_at_words(page, server):
    translate(page, TEXT)
    _, found = server.json({"text": TEXT})
    translations = [line for paragraph in found["paragraphs"] for line in paragraph]
    assert page.text("#status") == "4 sentences"
    texts = "(row) => ['.source', '.translation'].map((side) => row.querySelector(side).textContent.trim())"
    rows = page.run(f"return [...document.querySelectorAll('.sentence')].map({texts})")
    assert [row[1] for row in rows] == translations and len(rows) == 4
    assert page.run("return document.querySelectorAll('.sentence.paragraph').length") == 1
    assert page.text("#panel").startswith("Point at a word")
    page.point(".sentence:nth-of-type(2) .w:nth-of-type(1)")
    shown = page.wait("document.querySelector('#panel h3') && document.querySelector('#panel').innerText")
    assert "sentence 2" in shown and "Selected sentences, by relevance" in shown
    assert page.run("return document.querySelectorAll('.sentence.own').length") == 1
    assert page.run("return [...document.querySelectorAll('.sentence')].filter((s) => s.style.background).length") >= 2
    page.run("document.querySelector('.w').focus()")
    before = page.text("#panel h3")
    page.press(RIGHT)
    page.wait(f"document.querySelector('#panel h3').innerText !== {json.dumps(before)}")


def test_words_instead_of_tokens(page):
    translate(page, "a Жук b here. D there.")
    sources = page.run("return [...document.querySelectorAll('.source')].map((p) => p.textContent.trim())")
    assert sources == ["a Жук b here.", "D there."]
    assert "</s>" not in page.text("#result") and "<unk>" not in sources[0]
    page.point(".translation .w")
    shown = page.wait("document.querySelector('#panel h3') && document.querySelector('#panel').innerText")
    assert "no context of their own" in shown and "Point at a word of the source" in shown


def test_copy_and_download(page, server):
    translate(page, TEXT)
    text = server.json({"text": TEXT})[1]["text"]
    page.click("#copy")
    assert page.text("#status") == "copied"
    page.click("#result a[download]")
    soon(lambda: (page.downloads / "translation.tgt.txt").exists())
    assert (page.downloads / "translation.tgt.txt").read_text() == text
    page.fill("#text", "")
    page.press(CONTROL, "v")
    assert page.run("return document.querySelector('#text').value") == text


ENCODED = {"cp1252": "a café".encode("cp1252"), "utf-16": "a b".encode("utf-16"), "bytes": bytes(range(256))}


@pytest.mark.parametrize("name", ENCODED)
def test_files_that_are_not_utf8_are_refused(page, tmp_path, name):
    page.fill("#text", "my text")
    (tmp_path / "a.txt").write_bytes(ENCODED[name])
    page.type("#file", str(tmp_path / "a.txt"))
    page.wait("document.querySelector('#status.error')")
    assert page.text("#status") == "a.txt: not UTF-8; convert the file to UTF-8"
    assert page.run("return document.querySelector('#text').value") == "my text"


DROP = """const data = new DataTransfer();
data.items.add(new File(["a b here."], "talk.txt"));
const init = {bubbles: true, cancelable: true, dataTransfer: data};
const events = ["dragover", "drop"].map((name) => new DragEvent(name, init));
events.forEach((event) => document.querySelector(arguments[0]).dispatchEvent(event));
return events.map((event) => event.defaultPrevented);"""


@pytest.mark.parametrize("place", ["body", "h1", "#text", "#result"])
def test_files_can_be_dropped_anywhere(page, place):
    assert page.run(DROP, place) == [True, True]
    page.wait("document.querySelector('#text').value === 'a b here.' && document.querySelector('.sentence')")


def test_differences_without_context_are_marked(page, server):
    lines = ["a b c d e.", "d a.", "e e a b c.", "b.", "c d a e."]
    text = "\n\n".join(lines)
    with_context, without = (
        [line for lines in server.json({"text": text, "context": context})[1]["paragraphs"] for line in lines]
        for context in ("document", "none")
    )
    changed = [number for number, (one, other) in enumerate(zip(with_context, without)) if one != other]
    assert changed, "choose another text: context changes nothing"
    translate(page, text)
    page.click("#alone")
    page.wait("/without context/.test(document.querySelector('#status').textContent)")
    page.wait("!document.querySelector('#go').disabled")
    differ = "differs" if len(changed) == 1 else "differ"
    assert page.text("#status") == f"{len(lines)} sentences, {len(changed)} of them {differ} without context"
    found = page.run("return [...document.querySelectorAll('.sentence')].map((row) => "
                     "{ const p = row.querySelector('.alone'); return p && p.textContent.trim() })")  # fmt: skip
    assert [place for place, line in enumerate(found) if line] == changed
    assert [line for line in found if line] == [f"without context: {without[place]}" for place in changed]
    assert page.run("return document.querySelectorAll('.alone mark, .word.changed').length") >= len(changed)
    page.click("#alone")
    page.wait("!document.querySelector('.alone') && !document.querySelector('.changed')")


def test_markup_is_escaped(page):
    translate(page, HOSTILE)
    sources = page.run("return [...document.querySelectorAll('.source')].map((p) => p.textContent).join(' ')")
    assert (
        page.run("return document.title") != "taken"
        and page.run("return document.querySelector('#result img')") is None
    )
    assert page.run("return document.querySelectorAll('#result script, #result h1, #result b').length") == 0
    assert "unk" in sources or "script" in sources
    page.point("#result .w")
    page.wait("document.querySelector('#panel h3')")
    assert page.run("return document.querySelectorAll('#panel script, #panel img').length") == 0


def test_errors_and_long_documents(page, server):
    page.fill("#text", " ")
    page.click("#go")
    assert page.text("#status") == "There is no text yet."
    translate(page, "a b c d here.\n\n" * 30)
    assert "Attention is not shown" in page.text("#result .note")
    assert page.run("return document.querySelectorAll('.sentence').length") == 30
    page.fill("#text", "a" * 5000)
    page.click("#go")
    page.wait("document.querySelector('#status.error')")
    assert "5,000 characters" in page.text("#status")
    page.complaints()  # the browser itself reports the answer 422


def test_files(page, server, tmp_path):
    lines = ["a b <b>c</b> d e.", "d a.", "e e a b c.", "b.", "c d a e."]
    (tmp_path / "page.html").write_text("".join(f"<p>{line}</p>" for line in lines))
    page.click("#alone")
    page.type("#file", str(tmp_path / "page.html"))
    page.wait("document.querySelector('#result a[download]')")
    page.wait("/differs? without context/.test(document.querySelector('#status').textContent)")
    asked = {"text": "\n\n".join(lines).replace("<b>", "").replace("</b>", "")}
    wanted, without = (
        [line for (line,) in server.json({**asked, "context": context})[1]["paragraphs"]]
        for context in ("document", "none")
    )
    texts = "return [...document.querySelectorAll('#result .translation')].map((p) => p.textContent.trim())"
    assert page.run(texts) == wanted != without
    changed = page.run("return [...document.querySelectorAll('.alone')].map((p) => p.textContent.trim())")
    assert changed == [f"without context: {one}" for one, other in zip(without, wanted) if one != other]
    page.click("#result a")
    soon(lambda: (page.downloads / "page.html").exists())
    content = (page.downloads / "page.html").read_text()
    assert content.startswith("<p>") and content.count("<") == 12
    (tmp_path / "film.sbv").write_text("a b\n")
    page.type("#file", str(tmp_path / "film.sbv"))
    page.wait("/not known/.test(document.querySelector('#status.error')?.textContent)")
    page.complaints()  # the browser itself reports the answer 422
    change = "const f = document.querySelector('#format'); f.value = arguments[0]; f.dispatchEvent(new Event('change'))"
    page.run(change, "text")  # translates the refused file again
    page.wait("document.querySelector('#result a[download]')?.textContent === 'film.sbv'")
    page.run("document.querySelector('#format').value = ''")
    (tmp_path / "text.txt").write_text("a b c here.")
    page.type("#file", str(tmp_path / "text.txt"))
    page.wait("document.querySelector('#text').value === 'a b c here.' && document.querySelector('.sentence')")
