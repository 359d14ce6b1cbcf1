"""HTML: all text is translated, tags stay."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html

from tests.support.texts import WAYS, through

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset=utf-8><title>My  page &amp; yours</title>
<style>p > a { color: red }</style>
<script>if (a<b && c>d) { x = "</p><p>Not text</p>"; for(i=0;i<n;i++){} }</script></head>
<body class='a > b' data-x="it's">
<!-- a comment <p>Not text</p> -->
<h1>Head <em>line</em></h1>
<p>Hello <b>big   <i>wide</i></b>
   <a href="http://x.org/?a=b&c=Text" title="Title text">world</a>! Run <code>make all</code> now.<br>Second
   &mdash; last.</p>
<p translate="no">Brand Name</p><p>Keep <span translate=no>Docnmt Tool</span> here.</p>
<ul><li>One<li>Two &lt;tag&gt; a < b</ul>
<pre>code   stays</pre><textarea>This stays</textarea>
<table><tr><td>Cell<td>100</table>
<img src=a.png alt="Alternative"><p></p>
</body></html>
"""
TAGS = re.compile(r"<!--.*?-->|<[/!]?[a-zA-Z][^>]*>", re.DOTALL)


def test_unchanged_text_gives_the_same_bytes():
    for page in (
        PAGE,
        PAGE.replace("\n", "\r\n"),
        "\ufeff" + PAGE,
        "",
        "just text",
        "<p>never ended <b",
        "<",
        "a<b>c</x>",
    ):
        assert through("html", page, WAYS["same"])[0] == page.encode()


def test_every_text_is_translated_once():
    found, (lines,) = through("html", PAGE)
    assert [line for line in lines if line != "<p>"] == [
        "My page & yours", "Head line", "Hello big wide world!", "Run now.", "Title text", "Second — last.",
        "Keep here.", "One", "Two <tag> a < b", "Cell", "Alternative",
    ]  # fmt: skip
    text = found.decode()
    kept = ('x = "</p><p>Not text</p>"', "<!-- a comment <p>Not text</p> -->", "<code>make all</code>", "Docnmt Tool")
    kept += ("Brand Name", "code   stays", "This stays", 'href="http://x.org/?a=b&c=Text" title="TITLE TEXT"')
    assert [one for one in kept if one not in text] == []
    assert "<b>BIG   <i>WIDE</i></b>\n   <a" in text and ">WORLD</a>! RUN <code>" in text
    assert "TWO &lt;TAG&gt; A &lt; B" in text and "SECOND — LAST." in text


READ = """<html><head><meta content='What it is "about".' name=Description><meta name=viewport content="width=1">
<link rel=stylesheet title="Sheet" href=a.css></head><body title="Whole&nbsp;page">
<p>One <img src=a.png alt='Ein "Bild"' data-alt="no"> two <a title=Word href="?alt=x">three</a>.</p>
<input type=submit value="Send it" placeholder="100"><input type=text value="Anna" placeholder="Your name" />
<textarea placeholder="Say it">No</textarea><span aria-label="Close &amp; go">x</span>
<div translate=no title="Brand"><img alt="Brand"></div><code title="Number">n</code><b alt>v</b></body></html>"""


def test_readable_attributes_are_translated_once():
    found, (lines,) = through("html", READ)
    assert [line for line in lines if line != "<p>"] == [
        'What it is "about".', "Whole page", "One two three.", 'Ein "Bild"', "Word", "Send it", "Your name", "Say it",
        "x", "Close & go", "v", "Number",
    ]  # fmt: skip
    text = found.decode()
    for part in (
        'content="WHAT IT IS &quot;ABOUT&quot;." name=Description', 'content="width=1"', 'title="Sheet"',
        'alt="EIN &quot;BILD&quot;" data-alt="no"', 'title="WORD" href="?alt=x"', 'value="SEND IT" placeholder="100"',
        'value="Anna" placeholder="YOUR NAME" />', '<textarea placeholder="SAY IT">No<', 'aria-label="CLOSE &amp; GO"',
        'title="Brand"><img alt="Brand">', '<code title="NUMBER">n</code>',
    ):  # fmt: skip
        assert part in text
    assert through("html", READ, WAYS["same"])[0] == READ.encode()


DECLARED = {
    "meta": '<html><!-- <meta charset=koi8-r> --><meta charset="{}"><p title="A title">{}</p>',
    "http-equiv": "<meta http-equiv=Content-Type content='text/html; charset={}'><p>{}</p>",
    "XML": '<?xml version="1.0" encoding="{}"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><p>{}</p></html>',
}


@pytest.mark.parametrize("page", DECLARED.values(), ids=list(DECLARED))
@pytest.mark.parametrize(
    ("declared", "charset", "text"),
    [("ISO-8859-1", "cp1252", "A word"), ("iso-8859-1", "cp1252", "Ein M\u00fcller \u2013"),
     ("iso-8859-1", "utf-8", "\u00fc"), ("utf-8", "utf-8", "A word"), ("koi8-r", "koi8-r", "\u043e\u0434\u0438\u043d"),
     ("Shift_JIS", "shift_jis", "\u8a9e a")],
)  # fmt: skip
def test_declared_character_set(page, declared, charset, text):
    content = page.format(declared, text).encode(charset)
    found, (lines,) = through("html", content, lambda line: "\u00dcber \u2026 \u0416")
    assert text in lines and through("html", content, WAYS["same"])[0] == content
    shown = html.fromstring(found.decode(charset).partition("?>")[2] or found.decode(charset)).xpath("//p")[0]
    assert shown.text == "\u00dcber \u2026 \u0416"
    assert shown.get("title") in (None, "\u00dcber \u2026 \u0416")


@pytest.mark.parametrize(
    "page", ['<p x="a" " title="b>c" d="e">text</p>', "<a title=x/>y</a>", '<img alt="a>b\'>c"> d e']
)
def test_unbalanced_quotation_marks(page):
    assert all(through("html", page, way)[0].count(b"<") == page.count("<") for way in WAYS.values())
    assert through("html", page, WAYS["same"])[0].decode() == page


@st.composite
def trees(draw, depth=3):
    """Returns text with closed elements."""
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        parts.append(draw(st.sampled_from(["word", " two words. ", "&amp;", " 42 ", "x&lt;y", "\n", "Ende!"])))
        name = draw(st.sampled_from(["b", "i", "a", "p", "div", "code", "pre", "span", "br", ""]))
        if name == "br":
            parts.append("<br/>")
        elif name and depth:
            parts.append(f"<{name}>{draw(trees(depth - 1))}</{name}>")
    return "".join(parts)


@settings(deadline=None, max_examples=50)
@given(trees(), st.sampled_from(sorted(WAYS)))
def test_random_pages(page, way):
    found, (lines,) = through("html", page, WAYS[way])
    assert TAGS.findall(found.decode()) == TAGS.findall(page)
    if way == "same":
        assert found.decode() == page
    if way == "upper":  # every letter that was shown, and no other, is another one
        shown = "".join(line for line in lines if line != "<p>")
        changed = sum(a != b for a, b in zip(html_text(page), html_text(found.decode())))
        assert changed == sum(map(str.islower, shown))


def html_text(page):
    """Returns the letters outside tags and entities."""
    return re.findall("[a-zA-Z]", re.sub(r"&\w+;", "", TAGS.sub(" ", page)))


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<a>The dog</a><a>Cats</a>", ["The dog", "Cats"]),
        ("<nav><a><b>One</b></a> | <a>Two dogs</a> | <a>Three</a></nav>", ["One", "Two dogs", "Three"]),
        ("See <a>one</a>, <a>two dogs</a>.", ["See one, two dogs."]),
        ("<i>Big</i><b><a>dog</a></b> here", ["Big", "dog here"]),
        ("<label>Name<input></label><label>Your house</label>", ["Name", "Your house"]),
        ("Click<img src=a.png>here", ["Click here"]),
        ("Open<i class=icon></i>it", ["Open it"]),
        ("<b>Note:</b>The house", ["Note: The house"]),
        ("<b>B</b>ig dog", ["Big dog"]),
    ],
)
def test_words_of_different_elements_are_not_joined(page, wanted):
    found, (lines,) = through("html", page)
    assert [line for line in lines if line != "<p>"] == wanted
    assert TAGS.findall(found.decode()) == TAGS.findall(page)


def test_links_keep_their_words():
    page = "<p><a>Long text of a link</a> <a>Old</a><a>News today</a></p>"
    found = through("html", page, WAYS["backwards"])[0].decode()
    assert found == "<p><a>link a of text Long</a> <a>Old</a><a>today News</a></p>"


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("20 m<sup>2</sup> in all, CO<sub>2</sub>!", "It has in all 20 m<sup>2</sup>, CO<sub>2</sub>!"),
        ("10<sup>6</sup> and H<sub>2</sub>SO<sub>4</sub>.", "10<sup>6</sup> times H<sub>2</sub>SO<sub>4</sub>."),
        ("My H<sub>2</sub>O is good", "H<sub>2</sub>O ist mein bestes Wasser"),
        ("5 m<sup>2</sup> and 6 m<sup>2</sup>, then", "Here 5 m<sup>2</sup> and now 6 m<sup>2</sup>"),
    ],
)
def test_raised_digits_stay_in_their_words(page, wanted):
    found, (lines,) = through("html", page, lambda line: TAGS.sub("", wanted))
    assert lines == [TAGS.sub("", page)] and found.decode() == wanted


@pytest.mark.parametrize("way", ["Im ersten Stock, 5 qm", "5 m2 im 1st Stock", "5 m2 groß 1st", "Hallo"])
def test_lost_words_raise_no_other_word(way):
    found, _ = through("html", "On the 1<sup>st</sup> floor, 5 m<sup>2</sup> big", lambda line: way)
    assert set(re.findall("<sup>(.*?)</sup>", found.decode())) <= {"", "2", "st"}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("It is here.<sup>1</sup> The cat<sup><a>[2]</a></sup> too", ["It is here.", "The cat too"]),
        ("<sup>*</sup>The note", ["The note"]),
        ("Since 1984<sup>3</sup> it is Docnmt<sup>TM</sup>.", ["Since 1984 it is Docnmt."]),
    ],
)
def test_marks_of_notes_are_objects(page, shown):
    found, (lines,) = through("html", page)
    assert lines == shown
    assert re.findall(r"<sup>.*?</sup>", found.decode()) == re.findall(r"<sup>.*?</sup>", page)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<div translate=no>A <b translate=yes>dog</b> and <i translate='yes'>a cat</i> here</div>x", "dog|a cat|x"),
        ("<p class='a notranslate'>A dog</p><p class=notranslates>A cat</p>", "A cat"),
        ("<p translate=no>One <b>two</b><p>Three<div translate=no>Four", "Three"),
        ("<div translate=no>A<p translate=yes>B <b translate=no>C</b></p>D</div>E", "B|E"),
        ("<pre>a<b translate=yes>b</b></pre>c", "c"),
        ("<span class='material-icons'>home</span> Home", "Home"),
    ],
)
def test_translate_attribute(page, shown):
    found, (lines,) = through("html", page, lambda line: f"{line}!")
    assert "|".join(line for line in lines if line != "<p>") == shown
    assert found.decode().replace("!", "") == page


TEMPLATES = [
    "{% if a.b > 1 %}", "{{ user.name|upper }}", "{{{raw}}}", "<%= user.name %>", "%name%", "{amount}", "${amount}",
    "[shop_name]", "__count__", "@user.Name", ":name", "%s", "%(name)s", "<?php if ($a > b) echo 'word'; ?>",
    "https://a.org/word?b=c&amp;d", "a.word@b.org", "www.word.org", "word.org/word", "src/word.py", "/word/word",
    "{# word #}", "{!! word !!}", "{{!-- word --}}", "{ word }", "[[word]]", "*|WORD|*", "%%word%%", "%a.word%",
    "$word", "@word", "@if (a.word()) {", "@foreach ($word as $a)", "{% comment %}word{% endcomment %}",
    "{0:dd MMM word}", "<kbd>word</kbd>", "#{a + word}", "[word id='word']", "@@word@@", "##word##",
    "{word, number, percent}",
    "[% word %]", "<#if word??>", "{if $word}", "\\(word\\)", "@(word + b)", "@A.b(word)", "%%=word(a)=%%",
    "{ word($a) }",
]  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_and_addresses_stay(template):
    page = f"<p>Dear {template}, the word: {template}.</p><img alt='A word {template}'>"
    found, (lines,) = through("html", page)
    assert found.decode().startswith(f"<p>DEAR {template}, THE WORD: {template}.</p>")
    assert lines[0] == "Dear the word:"


def test_han_text_as_words_with_spaces():
    words = {"大房子。": "The big house.", "狗見。": "Dog sees.", "漢字": "Chinese script"}
    page = "<p>大<b>房</b>子。狗<code>ls</code>見{{x}}。<ruby>漢<rt>kan</rt></ruby>字</p>"
    found, (lines,) = through("html", page, words.get)
    assert lines == list(words)
    ruby = "<ruby>Chinese <rt>kan</rt></ruby> script"
    assert found.decode() == f"<p>The <b>big</b> house. Dog <code>ls</code> sees {{{{x}}}}. {ruby}</p>"


@pytest.mark.parametrize(
    "page",
    [
        "“<em>no!</em>” — she (<b>5%</b>)",
        "use <b>save as…</b>, or <i>go</i>!",
        "you get a <b>discount</b>{% if x %}",
        "<i>one</i>, <i>two</i>, and <u>three</u>.",
        "user <bdi>x</bdi>: 3 posts",
        "at 10<sup>-3</sup> or so",
        "press <kbd>a</kbd>+<kbd>b</kbd> now",
    ],
)
def test_as_many_words_keep_their_elements(page):
    swapped = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
    found, _ = through("html", f"<p>{page}</p>", lambda line: line.translate(swapped))
    wanted = re.sub(
        r"<kbd>.*?</kbd>|<[^>]*>|{%.*?%}|[^<{]+",
        lambda part: part[0] if part[0][0] in "<{" else part[0].translate(swapped),
        page,
    )
    assert found.decode() == f"<p>{wanted}</p>"


def test_objects_do_not_touch_when_words_between_them_are_lost():
    found, _ = through("html", "<p>See <code>a</code> or <code>b</code> now</p>", lambda line: "See")
    assert found.decode() == "<p>See <code>a</code> <code>b</code></p>"


def test_branches_of_templates_keep_their_words():
    page = "<p>It is {% if x %}a big dog{% else %}red{% endif %}.</p>"
    found, _ = through("html", page)
    assert found.decode() == "<p>IT IS {% if x %}A BIG DOG{% else %}RED{% endif %}.</p>"
