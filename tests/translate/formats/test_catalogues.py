"""gettext and XLIFF."""

import re

import polib
import pytest
from lxml import etree

from tests.support.malformed import XLIFF as XLIFF_OF
from tests.support.texts import WAYS, through

PO = """\
# A comment
msgid ""
msgstr ""
"X-Generator: y\\n"
"Project-Id-Version: x\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=n%10==1 ? 0 : 1;\\n"

#. extracted
#: file.c:10
#, c-format
msgid "Hello %(name)s, you have <b>%d new</b> mails. Read them now!\\n"
msgstr ""

msgctxt "menu"
msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "First line.\\nSecond {line}."
msgstr ""

msgid "Done"
msgstr "Fertig"

#, fuzzy
#| msgid "Older text"
msgid "Newer text"
msgstr "Alter Text"

#~ msgid "Obsolete"
#~ msgstr "Veraltet"
"""
XLIFF = """\
<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><!-- a comment -->
<file original="a.txt" source-language="en" target-language="de" datatype="plaintext"><body>
  <trans-unit id="1">
  <source xml:lang="en">Hello <g id="1">big <x id="2"/>wide</g> world. <ph id="3">code</ph>Next.</source></trans-unit>
  <trans-unit id="2"><source>Done</source><target>Fertig</target></trans-unit>
  <trans-unit id="3" translate="no"><source>Brand name</source></trans-unit>
  <trans-unit id="4"><source>Open &amp; <mrk mtype="protected">Docnmt</mrk> it</source>
  <target state="new"/></trans-unit>
</body></file>
</xliff>
"""
XLIFF2 = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
<file id="f1"><unit id="u1"><segment id="s1" state="initial"><source>Hello <pc id="1">big</pc> world.</source></segment>
<ignorable><source> </source></ignorable><segment id="s2"><source>Second<ph id="2"/>.</source></segment></unit>
<unit id="u2" translate="no"><segment><source>Brand</source></segment></unit></file></xliff>
"""


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"nothing"}))
def test_gettext_messages(way):
    found = through("po", PO, WAYS[way])[0].decode()
    file, original = polib.pofile(found), polib.pofile(PO)
    assert file.metadata == original.metadata and file.header == original.header
    assert [(e.msgid, e.msgid_plural, e.msgctxt, e.comment, e.occurrences) for e in file] == [
        (e.msgid, e.msgid_plural, e.msgctxt, e.comment, e.occurrences) for e in original
    ]
    assert found.split("\n\n")[0] == PO.split("\n\n")[0]  # the header in its order
    filled = [entry for entry in file if entry.msgid != "Done" and not entry.obsolete]
    assert all(entry.fuzzy and (entry.msgstr or entry.msgstr_plural) for entry in filled)
    assert file.find("Done").msgstr == "Fertig" and file.find("Done").flags == []
    assert file.find("Newer text").previous_msgid is None and file[0].flags == ["fuzzy", "c-format"]
    first = file[0].msgstr
    assert first.endswith("\n") and (
        way == "marks" or all(first.count(part) == 1 for part in ("%(name)s", "<b>", "%d"))
    )
    assert sorted(file.find("One file", msgctxt="menu").msgstr_plural) == [0, 1, 2]


def test_gettext_example():
    found, (lines,) = through("po", PO)
    assert lines == [
        "Hello you have new mails.", "Read them now!", "<p>", "One file", "files", "<p>", "First line.", "Second.",
        "<p>", "Newer text",
    ]  # fmt: skip
    file = polib.pofile(found.decode())
    assert file[0].msgstr == "HELLO %(name)s, YOU HAVE <b>%d NEW</b> MAILS. READ THEM NOW!\n"
    assert file[1].msgstr_plural == {0: "ONE FILE", 1: "%d FILES", 2: "%d FILES"}
    assert file[2].msgstr == "FIRST LINE.\nSECOND {line}."
    done = found.decode().replace("#, fuzzy\n", "").replace("fuzzy, ", "")
    assert through("po", done)[0].decode() == done  # to the byte: all has a translation


def test_gettext_character_sets():
    text = PO.replace("UTF-8", "ISO-8859-1").replace("One file", "Für")
    found = through("po", text.encode("latin-1"))[0].decode("latin-1")
    assert 'msgstr[0] "FÜR"' in found


def test_only_translations_change():
    text = PO.replace("#~ msgid", '#~| msgid "Old"\n#~ msgid') + "\n# The last comment\n"
    for file in (text, text.replace("\n", "\r\n")):
        changed = re.compile(r"^(?:#, .*|#\| .*|msgstr.*|\"FIRST.*|\"SECOND.*|\".*\\n\")\r?\n", re.MULTILINE)
        assert changed.sub("", through("po", file)[0].decode()) == changed.sub("", file)
        assert through("po", file)[0].decode().endswith(file[file.index("#~|") :])
    text = 'msgid ""\nmsgstr ""\n\nmsgid "one"\n\nmsgstr ""\n#, c-format\nmsgctxt ""\n"a"\nmsgid ""\n"two"\nmsgstr ""'
    assert through("po", text)[0].decode() == (
        'msgid ""\nmsgstr ""\n\n#, fuzzy\nmsgid "one"\n\nmsgstr "ONE"\n'
        '#, fuzzy, c-format\nmsgctxt ""\n"a"\nmsgid ""\n"two"\nmsgstr "TWO"\n'
    )


def test_existing_plural_forms_stay():
    text = PO.replace('msgstr[0] ""', 'msgstr[0] "Eine Datei"')
    file = polib.pofile(through("po", text)[0].decode())
    assert file.find("One file", msgctxt="menu").msgstr_plural == {0: "Eine Datei", 1: "%d FILES", 2: "%d FILES"}


@pytest.mark.parametrize(("target", "forms"), [("pl", 3), ("ja", 1), ("de", 2), ("pt-BR", 2), ("ar", 6)])
def test_templates(target, forms):
    text = (
        'msgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
        '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\nmsgid "One"\nmsgid_plural "Many"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n'
    )
    file = polib.pofile(through("po", text, lambda line: "\u0141", languages=lambda: ("en", target))[0].decode())
    assert file.metadata["Language"] == target.replace("-", "_")
    assert file.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert f"nplurals={forms};" in file.metadata["Plural-Forms"] and len(file[0].msgstr_plural) == forms


def test_letters_outside_of_the_character_set():
    text = PO.replace("UTF-8", "ASCII")
    found = through("po", text, lambda line: "\u0141")[0].decode()
    assert "charset=UTF-8" in found and 'msgstr[0] "\u0141"' in found


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"nothing"}))
def test_xliff_segments(way):
    for text in (XLIFF, XLIFF2):
        found = through("xliff", text, WAYS[way], languages=lambda: ("en", "de"))[0]
        expected = text.replace('srcLang="en"', 'srcLang="en" trgLang="de"').replace("initial", "translated")
        expected = expected.replace('<segment id="s2">', '<segment id="s2" state="translated">')
        without = [etree.fromstring(content) for content in (found, expected.encode())]
        for tree in without:
            for target in tree.xpath("//*[local-name()='target']"):
                target.getparent().remove(target)
        assert etree.tostring(without[0], method="c14n") == etree.tostring(without[1], method="c14n")
        for segment in etree.fromstring(found).xpath("//*[local-name()='trans-unit' or local-name()='segment']"):
            source, target = (segment.xpath(f"*[local-name()='{name}']") for name in ("source", "target"))
            if target and target[0].text != "Fertig":
                codes = [[(one.tag, dict(one.attrib)) for one in element[0].iterdescendants()]
                         for element in (source, target)]  # fmt: skip
                assert codes[0] == codes[1]


def test_xliff_example():
    found, (lines,) = through("xliff", XLIFF, languages=lambda: ("en", "de"))
    assert lines == ["Hello big wide world.", "Next.", "<p>", "Open & it"]
    text = found.decode()
    assert (
        '<target xml:lang="de" state="translated">HELLO <g id="1">BIG <x id="2"/>WIDE</g> WORLD. '
        '<ph id="3">code</ph>NEXT.</target>'
    ) in text
    assert '<target state="translated">OPEN &amp; <mrk mtype="protected">Docnmt</mrk> IT</target>' in text
    assert through("xliff", found)[0] == found  # to the byte: all has a translation
    found, (lines,) = through("xliff", XLIFF2)
    assert lines == ["Hello big world.", "Second."]  # segments of a unit are a paragraph
    assert re.findall("<segment[^>]*>", found.decode()) == [
        '<segment id="s1" state="translated">', '<segment id="s2" state="translated">', "<segment>"
    ]  # fmt: skip


MESSAGE = "%@ sent %1$d of %lld to {name}: %s %(count)s {{ user }}, {n, number} mails. See <b>this</b> now."
PLURAL = "In {VAR_PLURAL, plural, =1 {one {x} item} other {# items}} here {Bob, who}."


@pytest.mark.parametrize(("name", "form"), [("po", 'msgid "{}"\nmsgstr ""\n'), ("xliff", XLIFF_OF)])
def test_placeholders_stay(name, form):
    written = MESSAGE.replace("<", "&lt;") if name == "xliff" else MESSAGE
    found, (lines,) = through(name, form.replace("{}", written))
    assert lines == ["sent of to mails.", "See this now."]
    shown = polib.pofile(found.decode())[0].msgstr if name == "po" else etree.fromstring(found).findtext(".//target")
    assert shown == "%@ SENT %1$d OF %lld TO {name}: %s %(count)s {{ user }}, {n, number} MAILS. SEE <b>THIS</b> NOW."
    found, (lines,) = through(name, form.replace("{}", PLURAL))
    assert lines == ["In here {Bob, who}.", "one item", "items"]
    assert "IN {VAR_PLURAL, plural, =1 {ONE {x} ITEM} other {# ITEMS}} HERE {BOB, WHO}." in found.decode()


@pytest.mark.parametrize(
    ("form", "done"),
    [
        ('<source>One</source><target state="new">One</target>', False),
        ('<source>One</source><target state="needs-translation">One</target>', False),
        ('<source>One</source><target state="new">Eins</target>', True),
        ("<source>One</source><target>One</target>", True),
        ('<source>One</source><target state="final">One</target>', True),
    ],
)
def test_xliff_copies_of_the_source(form, done):
    found, (lines,) = through("xliff", XLIFF_OF.replace("<source>{}</source>", form))
    assert lines == ([] if done else ["One"])
    assert ('<target state="translated">ONE</target>' in found.decode()) is not done
    form = '<segment state="initial"><source>One</source><target>One</target></segment>'
    assert '<segment state="translated"><source>One</source><target>ONE</target>' in (
        through("xliff", XLIFF_OF.replace("<source>{}</source>", form))[0].decode()
    )


PARTS = "<source>One. Two.</source><seg-source>{} {}</seg-source>".format(
    '<mrk mtype="seg" mid="a">One.</mrk>', '<g id="1"><mrk mtype="seg" mid="b">Two<x id="2"/>.</mrk></g>'
)
BOTH = '{a}ONE.</mrk> <g id="1">{b}TWO<x id="2"/>.</mrk></g>'


@pytest.mark.parametrize(
    ("target", "lines", "wanted"),
    [
        ("", ["One.", "Two."], BOTH),
        ('<target state="new">One. Two.</target>', ["One.", "Two."], BOTH),
        ("<target>{a}Eins.</mrk> <g>{b}</mrk></g></target>", ["Two."],
         '{a}Eins.</mrk> <g>{b}TWO<x id="2"/>.</mrk></g>'),
        ("<target><g>{b}Zwei.</mrk></g> {a}</mrk></target>", ["One."], "<g>{b}Zwei.</mrk></g> {a}ONE.</mrk>"),
        ("<target>{a}Eins.</mrk>\n</target>", ["Two."], '{a}Eins.</mrk>\n{b}TWO<x id="2"/>.</mrk>'),
        ("<target>Eins. Zwei.</target>", [], "Eins. Zwei."),
    ],
)  # fmt: skip
def test_xliff_segments_of_units(target, lines, wanted):
    a, b = (f'<mrk mtype="seg" mid="{mid}">' for mid in "ab")
    file = XLIFF_OF.replace("<source>{}</source>", PARTS + target.format(a=a, b=b))
    found, (shown,) = through("xliff", file)
    assert shown == lines
    assert wanted.format(a=a, b=b) in found.decode()


def test_icu_over_elements():
    text = "<g id='1'>See</g> {n, select, a {an <x id='1'/>} other {<g id='2'>no {x} items</g>}} in <g id='3'>here</g>."
    found, (lines,) = through("xliff", XLIFF_OF.replace("{}", text))
    assert lines == ["See in here.", "an", "no items"]
    for word in (">See", "{an", ">no", " items", "in <", ">here"):
        text = text.replace(word, word.upper())
    assert text.replace("'", '"') in found.decode()
