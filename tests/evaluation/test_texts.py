import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.texts import read_log, read_references, read_text
from tests.support.scored import delimited, documents, generate_log, write

REFERENCE = ["a b", "<p>", "c", "", "d", "e", ""]


@pytest.fixture
def references(tmp_path):
    return read_references([write(tmp_path / "ref", REFERENCE)])


def test_references_and_source_by_document(tmp_path):
    files = [
        write(tmp_path / name, [f"{line}{name}" if len(line) in (1, 2) else line for line in REFERENCE])
        for name in "xyz"
    ]
    found = read_references(files[:2], files[2])
    assert found.streams[1] == [["a b", "cy"], ["dy", "ey"]] and found.source == [["a b", "cz"], ["dz", "ez"]]
    assert found.lines == [[1, 3], [5, 6]] and (found.documents, found.sentences) == (2, 4)
    with pytest.raises(InputError, match="other:3: "):
        read_references([files[0], write(tmp_path / "other", ["a", "<p>", "", "", "d", "e", ""])])
    with pytest.raises(InputError, match="empty: holds no sentence"):
        read_references([write(tmp_path / "empty", ["", ""])])


@settings(max_examples=40, deadline=None)
@given(stream=documents, seed=st.integers(0, 999), nbest=st.integers(1, 3))
def test_any_log_is_restored_whatever_its_order(tmp_path_factory, stream, seed, nbest):
    folder, lines = tmp_path_factory.mktemp("log"), delimited(stream)
    references = read_references(
        [write(folder / "ref", [line and f"{line} x" if line != "<p>" else line for line in lines])]
    )
    log = write(folder / "log", generate_log(lines, seed, nbest))
    assert read_log(log, references) == stream == read_text(write(folder / "text", lines), references)


@settings(max_examples=40, deadline=None)
@given(stream=documents, seed=st.integers(0, 999), data=st.data())
def test_missing_and_duplicated_ids_are_refused_by_name(tmp_path_factory, stream, seed, data):
    folder, lines = tmp_path_factory.mktemp("log"), delimited(stream)
    references = read_references([write(folder / "ref", lines)])
    ids = [i for i, line in enumerate(lines) if line not in ("", "<p>")]
    chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=5, unique=True))
    named = ", ".join(map(str, sorted(chosen)))
    found = generate_log(lines, seed)
    kept = [line for line in found if int(line.split("\t")[0][2:]) not in chosen]
    again = [line for line in found if int(line.split("\t")[0][2:]) in chosen]
    if kept:
        with pytest.raises(InputError, match=f"without a hypothesis: {named};"):
            read_log(write(folder / "log", kept), references)
    with pytest.raises(InputError, match=f"more than once: {named};"):
        read_log(write(folder / "log", found + again), references)


def test_two_runs_of_hypotheses_alone_are_no_nbest_list(tmp_path, references):
    found = [line for line in generate_log(REFERENCE) if line.startswith("H")]
    with pytest.raises(InputError, match="more than once: 0, 2, 4, 5;"):
        read_log(write(tmp_path / "log", found + found), references)


@pytest.mark.parametrize(
    "lines, message",
    [
        (REFERENCE[:5], r"ref:6: .*text ended before this line \(unequal line counts\)"),
        ([*REFERENCE, "f"], r"text:8: .*ref ended before this line"),
        (["a", "<p>", "c", "d", "", "e", ""], "text:4: a sentence here, but the end of a document in .*ref"),
        (["a", "", "c", "", "d", "e", ""], "text:2: the end of a document here, but <p> in .*ref"),
        (["a", "<p>", "<p>", "", "d", "e", ""], "text:3: <p> here, but a sentence in .*ref"),
        (["a", "<p>", "c", "", "", "e", ""], "text:5: empty line here, .* --on-empty score accepts"),
        (["a", "<p>", "c", "", "\u2581d", "e", ""], r"holds subwords \(\u2581\)"),
        (["a", "<p>", "c", "", "d@@ f", "e", ""], r"holds subwords \(@@\)"),
    ],
)
def test_other_lines_or_documents_are_refused_by_file_and_line(tmp_path, references, lines, message):
    with pytest.raises(InputError, match=message):
        read_text(write(tmp_path / "text", lines), references)


def test_empty_translations_where_they_are_allowed(tmp_path, references):
    text = write(tmp_path / "text", ["a", "<p>", "", "", "", "e", ""])
    assert read_text(text, references, "score") == [["a", ""], ["", "e"]]
    log = write(tmp_path / "log", ["H-0\t-1\ta", "H-2\t-1\t", "H-4\t-1\t", "H-5\t-1\te"])
    assert read_log(log, references) == [["a", ""], ["", "e"]]
    with pytest.raises(InputError, match="text:4: a sentence here"):
        read_text(write(tmp_path / "text", ["a", "<p>", "c", "x", "", "e", ""]), references, "score")


def test_a_reference_may_hold_what_looks_like_subwords(tmp_path):
    lines = ["x \u2581y", "see@@ you", ""]
    found = read_references([write(tmp_path / "ref", lines)])
    assert read_text(write(tmp_path / "text", lines), found) == [lines[:2]]
