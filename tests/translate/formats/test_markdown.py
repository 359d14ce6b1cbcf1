"""Markdown: all text is translated; links, code and emphasis stay."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from docnmt_fairseq.translate.formats.markdown_dialects import common_lines
from tests.support.texts import WAYS, through

PAGE = """\
---
title: Stays as it is
---
# The *first* head #

A paragraph
  of **two bold words** and a [link *here*](http://x.org/a_(b) "Title text"). Use `make all` now.
It costs 5 \\* 3, see <https://y.org> or https://z.org/path_x, snake_case_name.

> A quote
> goes on. ![alt text](pic.png)

1. First item
   goes on
2. Second [ref], [^1] ~~gone~~
   - [ ] nested task

| Head a | Head `b` |
|--------|:--------:|
| Cell \\| one | **Cell two** |
| 100 | |

Line one{spaces}
line two\\
line three

Under line
==========

```python
def code(): "stays"
```

    indented code stays

<div>An HTML block stays</div>

[ref]: http://ref.org "Reference title"
[^1]: The note &amp; more.
""".replace("{spaces}", "  ")
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = ("text", "softbreak", "text_special")


def structure(page):
    """Returns the tokens of a page without text."""
    found = []
    for token in READER.parse("\n".join(common_lines(page.splitlines()))):
        found.append(
            (token.type, token.tag, token.info, token.content if token.type in ("fence", "code_block") else "")
        )
        for child in token.children or []:
            if child.type not in MARKS:
                content = " ".join(child.content.split()) if child.type in ("code_inline", "html_inline") else ""
                found.append((child.type, sorted(child.attrs.items()), content))
    return found


def test_unchanged_text_gives_the_same_bytes():
    for page in (PAGE, PAGE.replace("\n", "\r\n"), "\ufeff" + PAGE, "", "\n\n", "one", "- \n- a\n", "***\n"):
        assert through("markdown", page, WAYS["same"])[0] == page.encode()


def test_every_text_is_translated_once():
    found, (lines,) = through("markdown", PAGE)
    assert [line for line in lines if line != "<p>"] == [
        "The first head", "A paragraph of two bold words and a link here.", "Use now.",
        "It costs 5 * 3, see or snake_case_name.", "A quote goes on.", "First item goes on", "Second ref, gone",
        "nested task", "Head a", "Head", "Cell | one", "Cell two", "Line one", "line two", "line three", "Under line",
        "The note & more.",
    ]  # fmt: skip
    text = found.decode()
    kept = ("title: Stays", '](http://x.org/a_(b) "Title text")', "`make all`", "<https://y.org>", "stays</div>")
    kept += ("https://z.org/path_x", "![alt text](pic.png)", "|--------|:--------:|", "    indented code stays")
    kept += ('[ref]: http://ref.org "Reference title"', "SNAKE_CASE_NAME", "**CELL TWO**", "CELL \\| ONE")
    assert [one for one in kept if one not in text] == []
    assert "# THE *FIRST* HEAD #\n" in text and "LINE ONE  \nLINE TWO\\\nLINE THREE\n" in text
    assert "   - [ ] NESTED TASK\n" in text and "> A QUOTE GOES ON. ![alt text](pic.png)\n" in text


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"nothing"}))
def test_structure_stays(way, caplog):
    found = through("markdown", PAGE, WAYS[way])[0].decode()
    # A heading or a link that is written in capitals is the same one to the reader.
    assert structure(found) == structure(PAGE)


def test_text_stays_if_markup_would_change(caplog):
    found, _ = through("markdown", "A **bold** word.\n\nAnother one.\n", lambda line: "X")
    assert found == b"A **bold** word.\n\nX\n"
    assert "1 texts are not translated" in caplog.text


def test_underlined_heading_with_empty_translation(caplog):
    page = "Head\n====\nText\n\n> Part\n> ---\n\nLast\n"
    assert through("markdown", page, lambda line: "")[0].decode() == "Head\n====\n\n\n> Part\n> ---\n\n\n"
    assert "2 texts are not translated" in caplog.text
    assert through("markdown", page)[0].decode() == "HEAD\n====\nTEXT\n\n> PART\n> ---\n\nLAST\n"


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("> [!NOTE]\n> The file\n> is here.\n", "> [!NOTE]\n> THE FILE IS HERE.\n"),
        ("> [!tip]- A title\n> The file\n", "> [!tip]- A TITLE\n> THE FILE\n"),
        ("[![a](b)](c)\n[![d](e)](f)\nword\n", "[![a](b)](c) [![d](e)](f) WORD\n"),
        ("[^1]: One note.\n[^2]: Two notes\ngo on.\n", "[^1]: ONE NOTE.\n[^2]: TWO NOTES GO ON.\n"),
        ("- [X] Backup\n- [x] more\n- [ ] X ray\n", "- [X] BACKUP\n- [x] MORE\n- [ ] X RAY\n"),
        (":::note\nText\nhere\n:::\n", ":::note\nTEXT HERE\n:::\n"),
        (":::tip[My *title*]\n\nText\n\n:::\n", ":::tip[MY *TITLE*]\n\nTEXT\n\n:::\n"),
        ('```\n!!! note "A title"\n```\n', '```\n!!! note "A title"\n```\n'),
        ("Before\n::: tip A title\nText\n:::\nbehind\n", "BEFORE\n::: tip A TITLE\nTEXT\n:::\nBEHIND\n"),
        ('!!! note "A title"\n    Text\n    here.\n', '!!! note "A TITLE"\n    TEXT HERE.\n'),
        ("??? question\n    Text.\n", "??? question\n    TEXT.\n"),
        ('=== "Tab"\n    Text.\n', '=== "TAB"\n    TEXT.\n'),
        ("!!! Really, this is it.\n", "!!! REALLY, THIS IS IT.\n"),
        ("+++\ntitle = 'a'\nb = 1\n+++\nText\n", "+++\ntitle = 'a'\nb = 1\n+++\nTEXT\n"),
        ("Text\n$$\na + b\n$$\nmore\n", "TEXT\n$$\na + b\n$$\nMORE\n"),
        ("$$ a\nb + c $$\nmore $$a_b$$ here\n", "$$ a\nb + c $$\nMORE $$a_b$$ HERE\n"),
        ("Text {{< ref x >}} here {% if y %}\n", "TEXT {{< ref x >}} HERE {% if y %}\n"),
        ("## A head {#an-id .b}\n", "## A HEAD {#an-id .b}\n"),
        ("Term\n: What it is\n\n*[HTML]: A language\n", "TERM\n: WHAT IT IS\n\n*[HTML]: A LANGUAGE\n"),
        ("One\\\n[^1]: two  \nthree\n", "ONE\\\n[^1]: TWO  \nTHREE\n"),
        (
            "!!! note\n\n    One.\n\n    - two\n\n        more\n\nEnd\n",
            "!!! note\n\n    ONE.\n\n    - TWO\n\n        MORE\n\nEND\n",
        ),
        (
            '- item\n\n    ??? tip "A"\n\n        One.\n\n            code\n',
            '- ITEM\n\n    ??? tip "A"\n\n        ONE.\n\n            code\n',
        ),
        (
            '!!! a\n    One\n\n    === "B"\n\n        | x |\n        |---|\n        | y |\n',
            '!!! a\n    ONE\n\n    === "B"\n\n        | X |\n        |---|\n        | Y |\n',
        ),
        (
            "[^1]: One note.\n\n    More.\n\n    code?\n\nTwo\n\n    code\n",
            "[^1]: ONE NOTE.\n\n    MORE.\n\n    CODE?\n\nTWO\n\n    code\n",
        ),
        ("Term\n\n:   What it is\n\n    More of it.\n", "TERM\n\n:   WHAT IT IS\n\n    MORE OF IT.\n"),
        ("!!! note\n\tOne.\n\n\tTwo.\n", "!!! note\n\tONE.\n\n\tTWO.\n"),
        ("```\n!!! note\n```\n\n    code\n", "```\n!!! note\n```\n\n    code\n"),
        (
            "!!! note\n    ```py\n    a = b\n\n    c\n    ```\nText\n",
            "!!! note\n    ```py\n    a = b\n\n    c\n    ```\nTEXT\n",
        ),
        ("The $a_1$ and $x*y$ or $c*d$.\n", "THE $a_1$ AND $x*y$ OR $c*d$.\n"),
        ("From $5 to $10, or 3$ for me.\n", "FROM $5 TO $10, OR 3$ FOR ME.\n"),
        ("From \\$5 to \\$10.\n", "FROM \\$5 TO \\$10.\n"),
        ("Is \\(a_b\\) or \\[ x \\] (not \\(this\\))?\n", "IS \\(a_b\\) OR \\[ x \\] (NOT (THIS))?\n"),
        ("So $\\text{a}$ is `$x` and `$y`.\n", "SO $\\text{a}$ IS `$x` AND `$y`.\n"),
        (
            "See [the Page], [it][] or `[it]`.\n\n[the  page]: a\n[it]: b\n",
            "SEE [THE PAGE][the Page], [IT][it] OR `[it]`.\n\n[the  page]: a\n[it]: b\n",
        ),
        (
            "import {\n  a\n} from 'b';\n\nexport default function f() {\n  x();\n}\n\nimport this word\n",
            "import {\n  a\n} from 'b';\n\nexport default function f() {\n  x();\n}\n\nIMPORT THIS WORD\n",
        ),
        ("{/* a note */}\n\nThe {props.name} of {see it}\n", "{/* a note */}\n\nTHE {props.name} OF {SEE IT}\n"),
        (":rocket: Go at 10:20:30 :+1:, note:this:one\n", ":rocket: GO AT 10:20:30 :+1:, NOTE:THIS:ONE\n"),
        ("[A dog](a) | [**Two** cats](b) / [Home](c).\n", "[A DOG](a) | [**TWO** CATS](b) / [HOME](c).\n"),
        ("One\nTwo\n: What\nit is\n: More\n", "ONE\nTWO\n: WHAT IT IS\n: MORE\n"),
        ("So \\\\(x_1\\\\) or \\\\(not this\\\\)\n", "SO \\\\(x_1\\\\) OR \\\\(NOT THIS\\\\)\n"),
        ("Run: `make`, **`it`**.\n", "RUN: `make`, **`it`**.\n"),
        ("20 m<sup>2</sup> here.<sup>1</sup>\n", "20 M<sup>2</sup> HERE.<sup>1</sup>\n"),
        ("Is {a.b + ' c'} {x(y * z)}, {u ? \"v\" : w} so?\n", "IS {a.b + ' c'} {x(y * z)}, {u ? \"v\" : w} SO?\n"),
        ("{a.map((b) => (\n  <li>{b.c}</li>\n))}\n\n{/* d\n\ne */}\n\nEnd\n", None),
        (
            "<Tabs\n  values={[\n    {label: 'A b'},\n  ]}>\n\nText\n",
            "<Tabs\n  values={[\n    {label: 'A b'},\n  ]}>\n\nTEXT\n",
        ),
        ('A <C d={e => "f"} g="h">word</C> here\n', 'A <C d={e => "f"} g="h">WORD</C> HERE\n'),
        (
            "<kbd>Ctrl</kbd>+<kbd>c</kbd> or ++ctrl+c++ and ==see==\n",
            "<kbd>Ctrl</kbd>+<kbd>c</kbd> OR ++ctrl+c++ AND ==SEE==\n",
        ),
        ("H~2~o and x^2^ are here^[a note] ~~not~~\n", "H~2~o AND x^2^ ARE HERE^[A NOTE] ~~NOT~~\n"),
        ("- A list\n{:toc}\n\nText\n{: .lead #id }\n", "- A LIST\n{:toc}\n\nTEXT\n{: .lead #id }\n"),
        (
            "{% hint %}\nText\n{% endhint %}\n{{% a b %}}\nText\n{{% /a %}}\n",
            "{% hint %}\nTEXT\n{% endhint %}\n{{% a b %}}\nTEXT\n{{% /a %}}\n",
        ),
        ("{% highlight ruby %}\ndef a\n\n  b\n{% endhighlight %}\n\n{::comment}\nc\n{:/comment}\n", None),
        ('[^1]: Foot\n\n[TOC]\n\n--8<-- "a.md"\n', '[^1]: FOOT\n\n[TOC]\n\n--8<-- "a.md"\n'),
        ("::: a.b.C\n    options:\n      d: true\n\nText\n", "::: a.b.C\n    options:\n      d: true\n\nTEXT\n"),
        ("\\begin{align}\na = b\n\\end{align}\n", None),
        (
            'See [[A page]], src/main.py, @user, a/b#12, $HOME, ![i](a.png){ width="3" }.\n',
            'SEE [[A page]], src/main.py, @user, a/b#12, $HOME, ![i](a.png){ width="3" }.\n',
        ),
    ],
)
def test_dialects(page, wanted):
    wanted = wanted or page.replace("End", "END")
    assert through("markdown", page)[0].decode() == wanted
    assert through("markdown", page, WAYS["same"])[0].decode() == page


LINKED = """# Content

- [Start](#getting-started), [b](#using-c), [twice](#twice-1), [x]

## Getting *started*

Using `c`
---------

### Twice ###
### Twice ###
## Fixed {#fixed}
## 1984
See [it](#fixed), [year](#1984), <a href="#content">up</a>.

[x]: #%C3%BCber
# Über
"""


def test_links_to_headings_stay_alive():
    found = through("markdown", LINKED, lambda line: f"{line} new".upper())[0].decode()
    headings = re.findall(r"^#+ .*|^USING .*", found, re.MULTILINE)
    assert headings == [
        '# CONTENT NEW<a id="content"></a>',
        '## GETTING *STARTED NEW*<a id="getting-started"></a>',
        'USING NEW `c`<a id="using-c"></a>',
        "### TWICE NEW ###",
        '### TWICE NEW<a id="twice-1"></a> ###',
        "## FIXED NEW {#fixed}",
        "## 1984",
        '# ÜBER NEW<a id="über"></a>',
    ]
    assert "- [START NEW](#getting-started), [B NEW](#using-c), [TWICE NEW](#twice-1), [X NEW][x]\n" in found
    assert through("markdown", LINKED)[0].decode().count("<a id") == 0


def test_links_to_headings_of_other_files_are_reported(caplog):
    through("markdown", "See [a](other.md#the-part) and [b](https://x.org/a.md#b).\n")
    assert "x.markdown: 1 links to headings of other files" in caplog.text


WORDS = [
    "word",
    "two words",
    "*",
    "**",
    "_",
    "`",
    "``",
    "[",
    "](x)",
    "]",
    "\\",
    "<b>",
    "&amp;",
    "\n",
    "  \n",
    "# ",
    "- ",
]
WORDS += ["> ", "1. ", "|", "\n\n", "http://x.org", "!", "(", ")", "~~", "\t", "---\n", "[a]: b\n", "    "]
WORDS += [
    "\n[^1]: A note of words ",
    "\n: ",
    "$$",
    "\n$$\n",
    "\n:::\n",
    "> [!NOTE]\n> ",
    "{#id}",
    "[x] ",
    "{{x}}",
    "$",
    "\\(",
    "\\)",
    "!!! a\n",
    '=== "b"\n',
    ":a:",
    "[a]",
    "import 'a'\n",
]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.sampled_from(sorted(set(WAYS) - {"nothing"})))
def test_random_pages(page, way):
    found = through("markdown", page, WAYS[way])[0].decode()
    if way == "same":
        assert found == page
    assert structure(found) == structure(page)
    assert re.sub(r"\s", "", found) or not re.sub(r"\s", "", page)
