"""Edit operations: fewest changes, no loss, the order of Libovický et al."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.edits import DELETE, KEEP, apply_operations, edit_operations, edited_line, operations_line
from tests.reference.edits import edit_cost

WORDS = ["a", "b", "c", "<p>", "\\", KEEP, DELETE, f"\\{KEEP}", f"\\\\{KEEP}", f"\\{DELETE}"]
sentences = st.lists(st.sampled_from(WORDS), max_size=9)
few_words = st.lists(st.sampled_from(WORDS[:2]), max_size=12)


@given(sentences, sentences)
def test_nothing_is_lost(translation, edited):
    assert apply_operations(translation, edit_operations(translation, edited)) == edited


@given(few_words, few_words)
def test_as_few_changes_as_possible(translation, edited):
    operations = edit_operations(translation, edited)
    assert sum(operation != KEEP for operation in operations) == edit_cost(translation, edited)
    assert sum(operation in (KEEP, DELETE) for operation in operations) == len(translation)


@pytest.mark.parametrize(
    ("translation", "edited", "operations"),
    [
        ("", "", ""),
        ("a b", "a b", "<keep> <keep>"),
        ("a b c", "a x y c", "<keep> x y <delete> <keep>"),
        ("a b", "", "<delete> <delete>"),
        ("", "a b", "a b"),
        ("a b", "b a", "b <keep> <delete>"),  # of two ways the one whose deletion is last
        ("a <keep>", "<keep> \\<keep>", "<delete> <keep> \\\\<keep>"),
    ],
)
def test_edit_operations(translation, edited, operations):
    assert edit_operations(translation.split(), edited.split()) == operations.split()


@pytest.mark.parametrize(
    ("operations", "edited"),
    [
        ("", "a b c"),
        ("x <delete>", "x b c"),
        ("<keep> <keep> <keep> <keep> <delete> <keep> x", "a b c x"),
        ("<delete> <delete> <delete> <delete>", ""),
    ],
)
def test_too_few_and_too_many_operations(operations, edited):
    assert apply_operations(["a", "b", "c"], operations.split()) == edited.split()


lines = st.sampled_from(["", "<p>", "a", "a b", "<p> a", KEEP, DELETE])


@given(lines, lines)
def test_lines_and_boundaries_are_restored(translation, edited):
    operations = operations_line(translation, edited)
    assert edited_line(translation, operations) == edited
    assert operations == edited or translation != edited or edited not in ("", "<p>")
