"""Every source that the package or a page cites is in docs/references.md."""

import re

import pytest

from tests.support.pages import DOCS, PAGES, ROOT

REFERENCES = DOCS / "references.md"
ENDINGS = (".py", ".h", ".cpp", ".yaml", ".css", ".js")
SOURCES = sorted(path for path in (ROOT / "docnmt_fairseq").rglob("*") if path.suffix in ENDINGS)
# A key before what is cited of it, or before the authors: a shape such as [S, d] or [N] is neither.
PLACES = r"(?:,? (?:sec|eq|fig|figure|table|Table|alg|algorithm)\b|,? \d+\.\d|:? [A-Z]\w+ (?:and|et al)|:? [A-Z]\. )"
KEY = re.compile(rf"\[([A-Z]{{1,3}})\](?:``)?(?={PLACES})")
NAME = r"(?<![\w-])[A-ZŁ]\w+"
AUTHORS = re.compile(
    rf"({NAME})(?:(?:, {NAME})*,? and {NAME}| et al\.)?(?:,? \(?(?:[A-Z][A-Za-z]+ )?)((?:19|20)\d\d)(?=[),;:. ])"
)


def entries():
    """The entries, each with its key and text in one line."""
    found = re.findall(r"^(\S.*)\n:   ((?:.+\n)(?:    .+\n)*)", REFERENCES.read_text(encoding="utf-8"), re.MULTILINE)
    return {key: " ".join(text.split()) for key, text in found}


def cited(text):
    """The keys and the (author, year) pairs that a text cites."""
    text = re.sub(r"\s*\n\s*(?:# |// |\* )?", " ", text)
    months = ("January", "October", "November", "December", "IWSLT", "WMT", "ACL", "EMNLP", "NAACL", "DiscoMT")
    pairs = {(author, year) for author, year in AUTHORS.findall(text) if author not in months}
    return set(KEY.findall(text)), pairs


def known(author, year):
    return any(author in f"{key} {text}" and year in f"{key} {text}" for key, text in entries().items())


def test_the_references_have_entries():
    assert {"[T]", "[M]", "[L]", "[Z]", "[TS]", "[F]"} <= entries().keys() and len(entries()) > 25


@pytest.mark.parametrize("text, found", [
    ("softmax ([T] eq. 7) of [N, d]", ({"T"}, set())),
    ("([TS] Tiedemann and Scherrer, DiscoMT 2017)", ({"TS"}, {("Tiedemann", "2017")})),
    ("as Libovický, Helcl and Mareček (2018) have it", (set(), {("Libovický", "2018")})),
    ("``[L]`` J. Libovický", ({"L"}, set())),
    ("[S] sentences, [M] tokens", (set(), set())),
])  # fmt: skip
def test_citations_are_found(text, found):
    assert cited(text) == found


def test_cited_sources_are_listed():
    keys, authors = set(), set()
    for path in [*SOURCES, *PAGES]:
        found = cited(path.read_text(encoding="utf-8")) if path != REFERENCES else (set(), set())
        keys |= found[0]
        authors |= found[1]
    assert len(keys) >= 5 and len(authors) >= 20
    assert {key for key in keys if f"[{key}]" not in entries()} == set()
    assert {pair for pair in authors if not known(*pair)} == set()
