"""The report on the handbooks, of a recipe's output made here."""

import json
import shutil
import sys

import pytest

from benchmarks.experiments import manuals, manuals_report, register_by_project, register_worth
from benchmarks.lib.curves import validation_curve
from docnmt_fairseq.evaluation.register_rules import RULES

REFERENCE = ["Klick hier.", "Hast du es?", "Das ist gut.", "Du siehst es.", "Dein Haus.", "Nimm dich in Acht.", ""]
POLITE = ["Öffnen Sie es.", "Haben Sie es?", "Gut.", "Sehen Sie.", "Sind Sie da?", ""]
SURE = RULES["de"]()


@pytest.fixture
def work(tmp_path):
    """A start, a model that says Sie to everybody and one that gets one wrong, both on both test sets."""
    text, raw = tmp_path / "data" / "text", tmp_path / "raw"
    for folder in (text, raw):
        folder.mkdir(parents=True)
    reference = [*REFERENCE, *POLITE]
    for split, name in (("test", "test"), ("test1", "unseen")):
        (text / f"{split}.de").write_text("\n".join(reference) + "\n", encoding="utf-8")
        (text / f"{split}.en").write_text("".join("a | b\n" if line else "\n" for line in reference), encoding="utf-8")
        labels = [(number, SURE.register_of(line)) for number, line in enumerate(reference)]
        rows = "".join(f"{number}\t{label}\n" for number, label in labels if label)
        (raw / f"{name}.register.tsv").write_text(rows, encoding="utf-8")
        (raw / f"{name}.documents.tsv").write_text("0\t6\tone\n7\t5\tother\n", encoding="utf-8")
    wrong = [line.replace("Dein Haus", "Haben Sie ein Haus") for line in reference]
    polite = [line and "Haben Sie es?" for line in reference]
    for name, lines in (("start", None), ("sentence-1", polite), ("conditional-1", wrong)):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        validations = ((100, 6.5), (200, 6.0), (300, 6.25))
        rows = [
            f'x | {{"valid_nll_loss": "{loss}", "valid_num_updates": "{update}"}}\n' for update, loss in validations
        ]
        (folder / "train.log").write_text("".join(rows), encoding="utf-8")
        for test_set in ("test", "unseen") if lines else ():
            (folder / f"{test_set}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_register_is_counted_by_distance(work):
    test_set = manuals.test_set_of(work, "test", "test", work / "raw", SURE)
    assert test_set.distances == [None, None, 1, 2, 1, 1, None, 1, 1, 2, 1]
    assert [label is not None for label in test_set.labels] == [False, True, False, *[True] * 5, False, True, True]
    assert test_set.right_by_distance(("conditional", 1), SURE) == {
        "1": (3, 4), "2–3": (2, 2), "4–8": (0, 0), "9 and more": (0, 0), "none before": (2, 2),
    }  # fmt: skip
    assert test_set.right_by_distance(("sentence", 1), SURE)["1"] == (2, 4)


def test_every_distance_has_a_group():
    assert [manuals.group_of(distance) for distance in (None, 1, 2, 3, 4, 8, 9, 99)] == [
        "none before", "1", "2–3", "2–3", "4–8", "4–8", "9 and more", "9 and more",
    ]  # fmt: skip


def test_the_report_shows_table_curves_and_documents_and_keeps_findings(work, tmp_path, monkeypatch):
    (work / "table.md").write_text("# Handbooks\n\nthe table\n", encoding="utf-8")
    words = [{"word": word, "pcxmi": value, "count": 7} for word, value in (("en", 0.5), ("▁du", 0.25), ("▁", 0.2))]
    (work / "models" / "conditional-1" / "cxmi.unseen.json").write_text(json.dumps({"words": words}), encoding="utf-8")
    command = ["manuals", "--work", str(work), "--raw", str(work / "raw"), "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    manuals.main()
    report = (tmp_path / "manuals.md").read_text(encoding="utf-8")
    assert "the table" in report and "| conditional | 75.0 (4) | 100.0 (2) | – | – | 100.0 (2) |" in report
    assert "one: du" in report and "other: Sie" in report
    assert "unseen: words that gain" in report and "test: words that gain" not in report
    assert "| conditional | du 0.25 (7) |" in report
    assert "| a \\| b | Dein Haus. | Haben Sie es? | Haben Sie ein Haus. |" in report
    assert (tmp_path / "manuals.png").stat().st_size > 0 and str(tmp_path) not in report
    monkeypatch.setattr(sys, "argv", [*command, "--leave-out", "one"])
    manuals.main()
    without = (tmp_path / "manuals.md").read_text(encoding="utf-8")
    assert "one: du" not in without and "other: Sie" in without
    said = f"{manuals_report.FINDINGS}\n\nIt works.\n\n"
    (tmp_path / "manuals.md").write_text(report.replace("## Side by side", f"{said}## Side by side"), encoding="utf-8")
    manuals.main()
    assert (tmp_path / "manuals.md").read_text(encoding="utf-8").count(said) == 1


def test_models_that_the_recipe_has_not_come_last(work):
    for name in ("conditional-all-2", "conditional-all-1"):
        (work / "models" / name).mkdir()
    assert manuals.models_of(work) == [
        ("sentence", 1),
        ("conditional", 1),
        ("conditional-all", 1),
        ("conditional-all", 2),
    ]


def test_what_the_right_register_is_worth(work, tmp_path, monkeypatch, capsys):
    test_set = manuals.test_set_of(work, "test", "test", work / "raw", SURE)
    found = register_worth.worth(test_set, ("sentence", 1), ("conditional", 1), SURE)
    # The baseline says Sie to all: wrong in four lines to be said du, of which the model has one wrong, too.
    assert [found[key] for key in ("marked", "wrong", "repaired", "both")] == [8, 4, 3, 4]
    polite, reference = ["Haben Sie es?"] * 11, [line for line in [*REFERENCE, *POLITE] if line]
    repaired = [reference[place] if place in (1, 3, 5) else line for place, line in enumerate(polite)]
    assert [found[key] for key in ("before", "with repaired")] == [
        register_worth.bleu(texts, test_set) for texts in (polite, repaired)
    ]
    gain = found["with repaired"] - found["before"]
    assert gain > 0 and found["all"] == pytest.approx(found["before"] + gain * 4 / 3)
    assert found["before"] < found["with both"] < found["after"] < 100
    (tmp_path / "7-updates").mkdir()
    (tmp_path / "7-updates" / "seed-1").symlink_to(work)
    command = ["worth", "--work", str(tmp_path), "--raw", str(work / "raw"), "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        register_worth.main()
    assert "2000-updates/seed-1: has no models; train them" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command, "--updates", "7"])
    register_worth.main()
    report = (tmp_path / "register_worth.md").read_text(encoding="utf-8")
    assert "| test | conditional-1 | 8 | 4 | 3 |" in report and "| unseen | conditional-1 |" in report


def test_a_model_stands_beside_the_baseline_of_its_seed(work):
    for name, same_as in (("sentence-2", "conditional-1"), ("conditional-2", "conditional-1")):
        shutil.copytree(work / "models" / same_as, work / "models" / name)
    read = manuals.test_set_of(work, "test", "test", work / "raw", SURE)
    rows = register_worth.rows_of(read, manuals.models_of(work), "test", SURE)
    assert [row[1:5] for row in rows] == [["conditional-1", "8", "4", "3"], ["conditional-2", "8", "1", "0"]]


def test_register_is_counted_by_project(work, tmp_path, monkeypatch, capsys):
    raw = work / "raw"
    # Eleven lines of one: ten du, one Sie. Two of both. Other: not in training.
    training = ["Nimm dich in Acht."] * 10 + ["Sind Sie da?", "Gut.", "", "Dein Haus.", "Haben Sie es?"]
    (raw / "train.de").write_text("\n".join(training) + "\n", encoding="utf-8")
    (raw / "train.documents.tsv").write_text("0\t6\tone\n6\t6\tone\n13\t2\tboth\n", encoding="utf-8")
    (tmp_path / "7-updates").mkdir()
    (tmp_path / "7-updates" / "seed-1").symlink_to(work)
    command = ["by_project", "--work", str(tmp_path), "--raw", str(raw), "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        register_by_project.main()
    assert "2000-updates/seed-1: has no translations; train" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command, "--updates", "7"])
    register_by_project.main()
    report = (tmp_path / "register_by_project.md").read_text(encoding="utf-8")
    test, unseen = report.split("## unseen, seed 1")
    # Of the lines of one, the baseline has all four wrong, the model one; of other's, all four are right in both.
    for row in (
        "| one | 10 | 1 | 4 | 0 | 0.0 (4) | 75.0 (4) |",
        "| other | 0 | 0 | 0 | 4 | 100.0 (4) | 100.0 (4) |",
        "| *projects of one register* |  |  | 4 | 0 | 0.0 (4) | 75.0 (4) |",
        "| *their usual one* |  |  | 4 | 0 | 0.0 (4) | 75.0 (4) |",
        "| *projects not in training* |  |  | 0 | 4 | 100.0 (4) | 100.0 (4) |",
    ):
        assert row in test and row in unseen
    assert "*the other one*" not in report and "*projects of both*" not in report
    (raw / "train.documents.tsv").write_text("0\t12\tother\n13\t2\tone\n", encoding="utf-8")
    register_by_project.main()
    report = (tmp_path / "register_by_project.md").read_text(encoding="utf-8")
    assert "| *the other one* |  |  | 0 | 4 | 100.0 (4) | 100.0 (4) |" in report  # other's usual one now is du
    assert "| *projects of both* |  |  | 4 | 0 | 0.0 (4) | 75.0 (4) |" in report and "not in training*" not in report
    assert "*their usual one*" not in report


def test_a_curve_is_what_the_log_validates(work):
    assert validation_curve(work / "models" / "start" / "train.log") == [(100, 6.5), (200, 6.0), (300, 6.25)]


def test_a_curve_goes_on_in_another_log_and_has_the_loss_where_there_is_no_other(tmp_path):
    for name, lines in {"a": [(5, "2.5"), (9, "2.0")], "b": [(9, "1.5"), (12, "1.25")]}.items():
        rows = [
            f'{{"valid_loss": "{loss}", "valid_ppl": "3", "valid_num_updates": "{update}"}}' for update, loss in lines
        ]
        (tmp_path / name).write_text("\n".join([*rows, '{"loss": "7", "num_updates": "13"}']))
    assert validation_curve(tmp_path / "a", tmp_path / "b") == [(5, 2.5), (9, 1.5), (12, 1.25)]
