"""Lines that see the references before them: which line sees which."""

from pathlib import Path

from benchmarks.experiments.manuals_corrected import beside_the_text, elsewhere
from docnmt_fairseq.evaluation.texts import References


def test_references_stand_beside_their_lines():
    """Marks are between the sentences: nothing stands beside these."""
    text = ["one", "<p>", "two", "", "three", ""]
    references = References((Path("x.de"),), [[["eins", "zwei"], ["drei"]]], None, [[1, 3], [5]])
    assert beside_the_text(references, ["eins", "zwei", "drei"], len(text)) == ["eins", "", "zwei", "", "drei", ""]


def test_elsewhere_each_is_used_once_and_none_in_its_place():
    sentences = list("abcdefg")
    moved = elsewhere(sentences)
    assert sorted(moved) == sentences and all(a != b for a, b in zip(sentences, moved))
    assert "".join(moved) == "defgabc"
