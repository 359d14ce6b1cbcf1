"""Messages in JSON: strings are translated; keys, placeholders and layout stay."""

import json

import pytest

from tests.support.texts import WAYS, through

NESTED = """\
{
\t"$schema": "https://example.org/schema of it",
\t"home": {"title": "Welcome home, {{ name }}!", "open": ["Open <1>the door</1>.", 3, true, null]},
\t"item_one": "{{count}} item" , "item_other": "{{count}} items",
\t"both": "One.\\nTwo of $t(home.title) \\"now\\" \\u00e9t\\u00e9",
\t"empty": "", "rate": "100 %", "url": "{url}"
}
"""
CHROME = """\
{"hello": {"message": "Hello $USER$, see $1.", "description": "A greeting",
 "placeholders": {"user": {"content": "$1", "example": "Some name"}}},
 "bye": {"message": "Bye now"}}
"""
ARB = """\
{
  "@@locale": "en",
  "hello": "Hello {name}",
  "@hello": {"description": "A greeting", "placeholders": {"name": {"type": "String"}}},
  "items": "{count, plural, =0{No items} one{# item of {name}} other{{count} items}}",
  "who": "{sex, select, male {He has {n, plural, offset:1 one {a dog} other {# dogs}}} other {They}}",
  "inside": "You have {n, plural, one{# mail} other{# mails}} here"
}
"""


def shape(data):
    """Returns a file with numbers in place of its strings."""
    if isinstance(data, dict):
        return {key: shape(value) for key, value in data.items()}
    return [shape(value) for value in data] if isinstance(data, list) else 0 if isinstance(data, str) else data


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("text", [NESTED, CHROME, ARB, NESTED.replace("\n", "\r\n"), "\ufeff[]", '"one"'])
def test_structure_stays(text, way):
    found = through("json", text, WAYS[way])[0].decode()
    assert shape(json.loads(found.lstrip("\ufeff"))) == shape(json.loads(text.lstrip("\ufeff")))
    if way == "same":
        assert found == text


def test_nested_messages():
    found, (lines,) = through("json", NESTED)
    assert lines[1:5] == ["<p>", "Open the door.", "<p>", "item"]
    data = json.loads(found)
    assert data["$schema"] == "https://example.org/schema of it"
    assert data["home"] == {"title": "WELCOME HOME, {{ name }}!", "open": ["OPEN <1>THE DOOR</1>.", 3, True, None]}
    assert data["item_other"] == "{{count}} ITEMS" and data["rate"] == "100 %" and data["url"] == "{url}"
    assert data["both"] == 'ONE.\nTWO OF $t(home.title) "NOW" \u00c9T\u00c9'


def test_messages_of_chrome():
    found = through("json", CHROME)[0].decode()
    wanted = CHROME.replace("Hello", "HELLO").replace("see", "SEE").replace("Bye now", "BYE NOW")
    assert found == wanted


def test_arb():
    found, (lines,) = through("json", ARB)
    assert "The description" not in lines and "They" in lines
    data = json.loads(found)
    assert data["@hello"] == json.loads(ARB)["@hello"] and data["@@locale"] == "en"
    assert data["items"] == "{count, plural, =0{NO ITEMS} one{# ITEM OF {name}} other{{count} ITEMS}}"
    assert data["inside"] == "YOU HAVE {n, plural, one{# MAIL} other{# MAILS}} HERE"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See {n, plural, one {a {x} dog} other {# dogs}}!", "SEE {n, plural, one {A {x} DOG} other {# DOGS}}!"),
        ("{a, select, b {{n, plural, other {# c}}} other {d}}", "{a, select, b {{n, plural, other {# C}}} other {D}}"),
        ("bad {n, plural, one {x} other {y}", "BAD {n, plural, one {x} other {y}"),
        ("no dog | one dog | {n} dogs", "NO DOG | ONE DOG | {n} DOGS"),
        ("<a\nhref='x'>one</a>\ttwo\nthree &amp; \\n four", "<a\nhref='x'>ONE</a>\tTWO\nTHREE &amp; \\n FOUR"),
        ("<0>to</0> \\(name), $t(b), @:c.d, $E$, #ff0000", "<0>TO</0> \\(name), $t(b), @:c.d, $E$, #ff0000"),
        ("at HH:mm or YYYY-MM-DD, {0:d MMM}", "AT HH:mm OR YYYY-MM-DD, {0:d MMM}"),
        ("use `a b`, ``c``, :ref:`d <e>` and |f|", "USE `a b`, ``c``, :ref:`d <e>` AND |f|"),
        ("[b]bold[/b] [gallery id='5'] of [x]", "[b]BOLD[/b] [gallery id='5'] OF [X]"),
        ("\u4f60\u597d\uff0c{name}\uff01ok", "\u4f60\u597d\uff0c{name}\uff01OK"),
        ("open a/b.py, /etc/passwd, ~/x and a.org/b", "OPEN a/b.py, /etc/passwd, ~/x AND a.org/b"),
    ],
)  # fmt: skip
def test_messages(text, wanted):
    found = through("json", json.dumps({"a": text, "_comment": "kept"}))[0]
    assert json.loads(found) == {"a": wanted, "_comment": "kept"}
