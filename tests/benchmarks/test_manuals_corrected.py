"""Lines that see the references before them: which line sees which."""

from pathlib import Path

from benchmarks.experiments.manuals_corrected import beside_the_text, elsewhere, report
from benchmarks.lib.store import Store
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


def test_the_report_keeps_models_of_earlier_calls(tmp_path):
    for name in ("first", "second"):
        stored = Store(tmp_path / "kept.json")
        stored.facts["machines"] = ["a machine"]
        stored.called(f"python {name}")
        rows = [[test_set, "the references", *"1234567"] for test_set in ("test", "unseen")]
        stored.add(f"{name}-9-1", {"model": name, "updates": 9, "seed": 1, "rows": rows})
    text = report(Store(tmp_path / "kept.json"))
    rows = [line.split(" | ")[:4] for line in text.splitlines() if line.startswith("| ") and "references" in line]
    expected = [("test", "first"), ("test", "second"), ("unseen", "first"), ("unseen", "second")]
    assert rows == [[f"| {test_set}", name, "9", "1"] for test_set, name in expected]
    assert text.count("a machine") == 1 and "`python first`" in text and "`python second`" in text
