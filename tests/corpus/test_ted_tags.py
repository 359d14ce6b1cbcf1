import pytest

from docnmt_fairseq.corpus.readers import Reading
from tests.support.reading import read, refused, text, write

# As in the campaigns up to 2015; later ones have <doc> around a talk, and the names of reviewers after it.
PLAIN = """<url>http://example.org/talks/one.html</url>
<keywords>talks, climate & all</keywords>
<speaker>A. Speaker</speaker>
<talkid>1</talkid>
<title>A. Speaker: One</title>
<description>TED Talk Subtitles: <one> & all.</description>
 Thank you & good night.
I <3 it.
<url>http://example.org/talks/none.html</url>
<talkid>2</talkid>
<url>http://example.org/talks/three.html</url>
<talkid>3</talkid>
<i>Music</i>
"""
IN_DOC = """<doc docid="1" genre="lectures">
<url>http://example.org/talks/one.html</url>
<talkid>1</talkid>
Thank you & good night.
I <3 it.
<reviewer href="http://example.org/r">R. Reviewer
<translator href="http://example.org/t">T. Translator</translator>
<translator>U. Translator</translator>
</doc>

<doc docid="2">
<talkid>2</talkid>
</doc>
<doc docid="3">
<talkid>3</talkid>
<i>Music</i>
</doc>

"""


def upper(content):
    """Returns the content with its sentences in upper case."""
    return "".join(line if line.startswith(("<u", "<k", "<s", "<t", "<d", "</", "<r")) else line.upper()
                   for line in content.splitlines(keepends=True))  # fmt: skip


@pytest.mark.parametrize("source, target", [(PLAIN, IN_DOC), (IN_DOC, PLAIN)])
def test_talks(tmp_path, source, target):
    write(tmp_path, "train.tags.en-de.en", source)
    write(tmp_path, "train.tags.en-de.de", upper(target))
    documents = read("ted-tags", [tmp_path / "train.tags.en-de"])
    assert text(documents) == [
        [[("Thank you & good night.", "THANK YOU & GOOD NIGHT."), ("I <3 it.", "I <3 IT.")]],
        [[("<i>Music</i>", "<I>MUSIC</I>")]],
    ]
    lines = {PLAIN: (7, 13), IN_DOC: (4, 16)}
    assert [document.lines[0][0] for document in documents] == list(zip(lines[source], lines[target]))


def test_one_side_and_empty_lines(tmp_path):
    source = write(tmp_path, "en", PLAIN.replace("I <3 it.\n", "I <3 it.\n\nb\n"))
    target = write(tmp_path, "de", PLAIN.replace("I <3 it.\n", "\n\nB\n"))
    assert text(read("ted-tags", [source, target]))[0] == [
        [("Thank you & good night.",) * 2, ("I <3 it.", ""), ("b", "B")]
    ]
    assert text(read("ted-tags", [source], Reading("en")))[1] == [[("<i>Music</i>",)]]


@pytest.mark.parametrize(
    "old, new, parts",
    [
        ("I <3 it.\n", "", ["de:1", "talk 1: 2 source segments, but 1 here"]),
        ("<talkid>3", "<talkid>4", ["de:11", "talk 4 here, but talk 3"]),
        (PLAIN[PLAIN.index("<url>http://example.org/talks/three") :], "", ["de: talk 3 is missing"]),
        ("<talkid>2</talkid>", "", ["de:9", "without <talkid>"]),
        ("<url>http://example.org/talks/one.html</url>", "Hello", ["de:1", "before the first talk"]),
    ],
)
def test_bad_talks(tmp_path, old, new, parts):
    assert old in PLAIN
    files = [write(tmp_path, "en", PLAIN), write(tmp_path, "de", PLAIN.replace(old, new, 1))]
    refused("ted-tags", files, *parts)
