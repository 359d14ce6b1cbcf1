"""Metrics beside BLEU and chrF, and tests of differences from the start's model."""

import json

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.register import RegisterAccuracyOptions
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.recipes.metrics import FurtherMetrics, further_metrics
from tests.support.recipes import MANUALS, changed, raw, recipe, untrained

START = MANUALS.read_text(encoding="utf-8").split("  start:")[1].split("scores:")[0]


def always_polite(folder, line):
    """Returns the reference; the sentence-level model says Sie to everybody."""
    return line.replace(" du.", " Sie.") if folder.name.startswith("sentence") else line


def test_scores_and_p_values_are_in_files_and_table(tmp_path, monkeypatch):
    untrained(monkeypatch, always_polite)
    table = recipe(read_dataset_config(MANUALS), tmp_path / "out", seeds=(1, 2)).run()
    models = tmp_path / "out" / "models"
    found = {
        name: json.loads((models / name / "scores.unseen.json").read_text()) for name in ("sentence-1", "conditional-2")
    }
    polite, right = found["sentence-1"]["metrics"], found["conditional-2"]["metrics"]
    assert 0 < polite["register"]["score"] == polite["register-of-all"]["score"] < 100 == right["register"]["score"]
    assert polite["register-consistency"]["score"] == 100  # Sie to everybody is consistent
    assert "register_labels:unseen.register.tsv|" in polite["register"]["signature"]  # whatever the folder
    assert str(tmp_path) not in table and all(f"`{one['signature']}`" in table for one in polite.values())
    header, sentence, conditional = (table.splitlines()[number] for number in (6, 8, 9))
    columns = ["register", "register of all", "register consistency", "p, BLEU against sentence", "seeds"]
    assert header.split(" | ")[4:] == [*columns[:-1], "seeds |"]
    test = json.loads((models / "conditional-1" / "significance.json").read_text())
    assert test["baseline"] == "sentence-1" and test["documents"] == 2 and test["difference"] > 0
    assert f"| {test['p_value']:.3f}, {test['p_value']:.3f} | 1, 2 |" in conditional and "| –, – | 1, 2 |" in sentence
    assert "resampled:documents" in test["signature"] and f"`{test['signature']}`" in table
    assert not (models / "sentence-1" / "significance.json").exists()


def test_what_was_mended_in_labels_or_references_is_scored_and_compared_anew(tmp_path, monkeypatch):
    untrained(monkeypatch, lambda folder, line: always_polite(folder, line.replace(" Du.", " du.")))
    dataset = read_dataset_config(MANUALS)
    files = raw(dataset, tmp_path / "raw")

    def found():
        """How many labelled lines the sentence-level model has right, and what sets the other apart from it."""
        recipe(dataset, tmp_path / "out", raw=files).run()
        folders = [tmp_path / "out" / "models" / f"{name}-1" for name in ("sentence", "conditional")]
        scores = json.loads((folders[0] / "scores.json").read_text())
        test = json.loads((folders[1] / "significance.json").read_text())
        return scores["metrics"]["register"]["score"], test["difference"]

    before = found()
    labels = files / "test.register.tsv"
    labels.write_text(labels.read_text(encoding="utf-8").replace("\tdu\n", "\tSie\n"), encoding="utf-8")
    after = found()
    assert before[0] < after[0] and before[1] == after[1]
    target = files / "test.de"
    target.write_text(target.read_text(encoding="utf-8").replace(" du.", " Du."), encoding="utf-8")
    assert found()[1] < after[1]


@pytest.mark.slow
def test_without_a_start_or_its_model_nothing_is_compared(tmp_path, monkeypatch):
    untrained(monkeypatch, always_polite)
    alone = changed(tmp_path, (f"  start:{START}", ""))
    assert "p, BLEU" not in recipe(alone, tmp_path / "alone").run()
    assert "p, BLEU" not in recipe(read_dataset_config(MANUALS), tmp_path / "other", ("conditional",)).run()


def test_what_metrics_lack_is_said_before_anything_is_trained(tmp_path, monkeypatch):
    trained, _ = untrained(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    folder = raw(dataset, tmp_path / "raw")
    (folder / "unseen.register.tsv").write_text("1\tvous\n", encoding="utf-8")
    dataset.prepare["vocab_size"] = 60
    with pytest.raises(InputError, match=r"scores: register of unseen: .*unseen\.register\.tsv:1: "):
        recipe(dataset, tmp_path / "out", smoke=False, raw=folder).run()
    (folder / "unseen.register.tsv").unlink()
    with pytest.raises(InputError, match=r"unseen\.register\.tsv: not in --raw"):
        recipe(dataset, tmp_path / "out", smoke=False, raw=folder).run()
    assert not trained


def test_a_smoke_run_may_have_nothing_to_score(tmp_path, monkeypatch, caplog):
    untrained(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    folder = raw(dataset, tmp_path / "raw")
    (folder / "unseen.register.tsv").write_text("1234\tdu\n", encoding="utf-8")  # beyond the documents taken
    table = recipe(dataset, tmp_path / "out", raw=folder).run()
    assert "| 100.00 | – | – | 100.00 | –" in table.split("## unseen")[1] and "line 1234 of" in caplog.text


def test_options_are_told_by_test_set(tmp_path):
    given = {"metrics": ["register"], "register_language": "de", "register_labels": {"test": "a.tsv"}}
    further = further_metrics(given, "x")
    assert further.told("register", "test", {"a.tsv": tmp_path / "a.tsv"}) == RegisterAccuracyOptions(
        "de", str(tmp_path / "a.tsv")
    )
    assert further.told("register", "unseen", {}) == RegisterAccuracyOptions("de", None)
    assert further.files == ["a.tsv"] and further.files_of_lines("test") == {"register_labels": "a.tsv"}
    assert further.files_of_lines("unseen") == {} and FurtherMetrics().files == []
    terms = further_metrics({"metrics": ["terms"], "terms": "list.tsv"}, "x")
    assert terms.files == ["list.tsv"] and terms.files_of_lines("test") == {}  # rows of terms are no lines


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metrics: [register, ", "metrics: [registre, ", "metrics: registre: give some of .*register-of-all"),
        (
            "metrics: [register, ",
            "metrics: [bleu, ",
            r"metrics: bleu: give some of .*\(bleu and chrf are scored anyway",
        ),
        (
            "metrics: [register, register-of-all, register-consistency]",
            "metrics: []",
            "metrics: give a list of .*comet",
        ),
        (
            "  register_language: de",
            "  register_langage: de",
            "register_langage: no option of register, register-of-all",
        ),
        ("  register_language: de", "  register_language: xx", "register: --register-language xx: must be one of de,"),
        ("unseen: unseen.reg", "unsen: unseen.reg", "register_labels: no test set unsen; there are test, unseen"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"changed.yaml: scores: {message}"):
        changed(tmp_path, (old, new))
