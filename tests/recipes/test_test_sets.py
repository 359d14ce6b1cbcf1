"""Further test sets: every split that is none of train, valid and test."""

import json
from dataclasses import replace

import pytest

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import run_probes
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.recipes.metrics import FurtherMetrics
from docnmt_fairseq.recipes.splits import first_difference
from tests.support.pages import ROOT
from tests.support.recipes import MANUALS, changed, raw, recipe, unprobed, untrained

UNSEEN = "  unseen: {format: delimited, corpora: [[unseen.en, unseen.de]]}\n"
PARTS = ROOT / "benchmarks" / "experiments" / "talks_and_news.yaml"
LABELS = "{test: test.register.tsv, unseen: unseen.register.tsv}"


def without(tmp_path):
    return changed(tmp_path, (UNSEEN, ""), (LABELS, "{test: test.register.tsv}"))


def test_each_is_prepared_translated_and_scored(tmp_path, monkeypatch):
    _, translated = untrained(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    assert dataset.test_sets == {"test": "test", "unseen": "test1"}
    table = recipe(dataset, tmp_path / "out", ("sentence",)).run()
    assert translated == [("sentence-1", "test"), ("sentence-1", "test1")]
    folder, raw_folder = tmp_path / "out" / "models" / "sentence-1", tmp_path / "out" / "fixtures"
    for name, scores in (("test", "scores.json"), ("unseen", "scores.unseen.json")):
        assert list(read_lines(folder / f"{name}.txt")) == list(read_lines(raw_folder / f"{name}.de"))
        assert json.loads((folder / scores).read_text())["bleu"] == pytest.approx(100)
    assert (folder / "generate.log").exists() and (folder / "generate.unseen.log").exists()
    first, second = table.split("## unseen")
    assert "## test" in first and "| sentence | 100.00 |" in first and "| sentence | 100.00 |" in second
    assert ", unseen " in table.splitlines()[-1]


@pytest.mark.slow
def test_one_that_is_added_later_trains_nothing_again(tmp_path, monkeypatch):
    trained, translated = untrained(monkeypatch)
    recipe(without(tmp_path), tmp_path / "out", ("sentence",)).run()
    later = raw(read_dataset_config(MANUALS), tmp_path / "raw")
    recipe(read_dataset_config(MANUALS), tmp_path / "out", ("sentence",), raw=later).run()
    assert translated == [("sentence-1", "test"), ("sentence-1", "test1")]
    assert len({call["data"] for call in trained}) == 1


def test_one_that_is_mended_is_translated_and_scored_anew(tmp_path, monkeypatch):
    translation = {}
    _, translated = untrained(monkeypatch, lambda folder, line: translation.setdefault(line, line))
    dataset = read_dataset_config(MANUALS)
    files = raw(dataset, tmp_path / "raw")
    recipe(dataset, tmp_path / "out", ("sentence",), raw=files).run()
    translation.update((line.replace(" du.", " Du."), line) for line in list(translation))  # it stays as it was
    path = files / "unseen.de"
    path.write_text(path.read_text(encoding="utf-8").replace(" du.", " Du."), encoding="utf-8")
    table = recipe(dataset, tmp_path / "out", ("sentence",), raw=files).run()
    assert translated == [("sentence-1", "test"), ("sentence-1", "test1"), ("sentence-1", "test1")]
    scores = json.loads((tmp_path / "out" / "models" / "sentence-1" / "scores.unseen.json").read_text())
    assert scores["bleu"] < 99 and f"| {scores['bleu']:.2f} |" in table.split("## unseen")[1]


def test_a_mended_source_is_scored_anew_whatever_its_translation(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    scored = []
    monkeypatch.setattr(run_probes, "text_scores", lambda text, *rest: scored.append(text) or {})
    dataset = read_dataset_config(MANUALS)
    files = raw(dataset, tmp_path / "raw")
    recipe(dataset, tmp_path / "out", ("conditional",), raw=files, until="probe").run()
    del asked[:], scored[:]
    path = files / "unseen.en"
    path.write_text(path.read_text(encoding="utf-8").replace("you", "thou"), encoding="utf-8")
    recipe(dataset, tmp_path / "out", ("conditional",), raw=files, until="probe").run()
    assert [one[:3] for one in asked] == [("conditional-1", "test1", what) for what in ("shuffled", "none", "cxmi")]
    assert len(scored) == 2


def test_one_of_a_single_document_is_scored_and_compared_with_nothing(tmp_path, monkeypatch):
    untrained(monkeypatch)
    dataset = changed(tmp_path, (LABELS, "{test: test.register.tsv}"))
    files = raw(dataset, tmp_path / "raw")
    for side in ("en", "de"):
        path = files / f"unseen.{side}"
        path.write_text("".join(f"{line}\n" for line in read_lines(path) if line), encoding="utf-8")
    first, second = recipe(dataset, tmp_path / "out", raw=files).run().split("## unseen")
    assert "p, BLEU against sentence" in first and "p, BLEU" not in second and "| conditional | 100.00 |" in second


def test_of_several_formats(tmp_path, monkeypatch):
    untrained(monkeypatch)
    dataset = changed(tmp_path, (UNSEEN, UNSEEN.replace("delimited", "ted-tags")))
    options = {"smoke": False, "raw": raw(dataset, tmp_path / "raw"), "until": "prepare"}
    dataset.prepare["vocab_size"] = 60
    recipe(dataset, tmp_path / "out", **options).run()
    manifest = json.loads((tmp_path / "out" / "data" / "manifest.json").read_text())
    assert manifest["counts"]["test1"]["documents"] == 2 and manifest["options"]["test_format"] == "delimited"


def test_two_are_parts_of_the_same_files(tmp_path, monkeypatch):
    untrained(monkeypatch)
    dataset = read_dataset_config(PARTS)
    files = raw(dataset, tmp_path / "raw")
    lines = list(read_lines(files / "test.de"))
    whole = [document.split("\n") for document in "\n".join(lines).strip("\n").split("\n\n")]
    dataset.prepare["vocab_size"] = 60
    for name, documents in (("test", [0, 1]), ("news", [1, len(whole)])):
        dataset.splits[name] = replace(dataset.splits[name], documents=documents)
    recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
    for split, documents in (("test", whole[:1]), ("test1", whole[1:])):
        text = (tmp_path / "out" / "data" / "text" / f"{split}.de").read_text(encoding="utf-8").strip("\n")
        assert [document.split("\n") for document in text.split("\n\n")] == documents and documents


def test_files_are_read_again_where_they_are_read_otherwise(tmp_path):
    dataset = replace(read_dataset_config(MANUALS), prepare={"subwords": "none"}, scores=FurtherMetrics())
    files = raw(dataset, tmp_path / "raw")

    def documents():
        recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
        counts = json.loads((tmp_path / "out" / "data" / "manifest.json").read_text())["counts"]
        return [counts[split]["documents"] for split in ("valid", "test")]

    assert documents() == [3, 2]
    dataset.prepare["one_document_a_line"] = True
    assert documents() == [len(list(filter(None, read_lines(files / f"{split}.en")))) for split in ("valid", "test")]


def test_files_are_read_again_in_another_format(tmp_path):
    dataset = replace(read_dataset_config(MANUALS), prepare={"subwords": "none"}, scores=FurtherMetrics())
    files = raw(dataset, tmp_path / "raw")
    dataset.splits["test"] = replace(dataset.splits["test"], documents=[0, 1])  # so that splits are written anew
    found = []
    for format_name in ("delimited", "wmt-ape"):
        dataset.splits["valid"] = replace(dataset.splits["valid"], format=format_name)
        recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
        counts = json.loads((tmp_path / "out" / "data" / "manifest.json").read_text())["counts"]
        found.append((counts["valid"]["documents"], counts["valid"]["sentences"]))
    assert found[0][0] == 3 and found[1] == (found[0][1],) * 2  # every sentence is a document of its own


def test_a_part_of_the_training_set_from_which_others_are_cut(tmp_path):
    dataset = read_dataset_config(ROOT / "docnmt_fairseq" / "recipes" / "configs" / "opensubtitles_es_en.yaml")
    dataset = replace(dataset, hold_out=replace(dataset.hold_out, sentences=5), prepare={"subwords": "none"})
    files = raw(dataset, tmp_path / "raw")
    train = []
    for wanted, sentences in ((None, 5), ([0, 12], 5), ([0, 12], 7)):
        dataset.splits["train"] = replace(dataset.splits["train"], documents=wanted)
        dataset = replace(dataset, hold_out=replace(dataset.hold_out, sentences=sentences))
        recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
        counts = json.loads((tmp_path / "out" / "data" / "manifest.json").read_text())["counts"]
        assert [counts[split]["sentences"] for split in ("valid", "test")] == [sentences] * 2
        train.append(counts["train"]["documents"])
    assert train[1] < 12 < train[0]


def test_a_part_that_files_do_not_have_is_refused(tmp_path, monkeypatch):
    untrained(monkeypatch)
    dataset = read_dataset_config(PARTS)
    files = raw(dataset, tmp_path / "raw")
    with pytest.raises(InputError, match=r"splits: test: documents: \[0, 23\]: the files hold fewer"):
        recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()


def test_a_part_of_a_test_set_whose_lines_are_counted_is_refused(tmp_path):
    cut = UNSEEN.replace("format", "documents: [0, 2], format")
    with pytest.raises(InputError, match=r"unseen: documents: unseen\.register\.tsv counts lines of the whole file"):
        changed(tmp_path, (UNSEEN, cut))


@pytest.mark.parametrize("name", ["test1", "valid2", "train1", "un.seen", "../up"])
def test_names_that_mean_something_else_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"changed\.yaml: splits: .*: give the test set another name"):
        changed(tmp_path, ("  unseen: {format", f"  {name}: {{format"), (LABELS, "{test: test.register.tsv}"))


@pytest.mark.parametrize(
    ("native", "prepared", "cut", "line"),
    [
        (["a", "b", ""], ["a", "b", ""], False, None),
        (["a", "b"], ["a", "b", ""], False, None),
        (["a", "b", "", "", ""], ["a", "b", ""], False, None),
        (["a ", "\tb\u200b"], ["a", "b", ""], False, None),
        (["a", "", "", "b"], ["a", "", "b", ""], False, 3),
        (["a", "\u200b", "b"], ["a", "b", ""], False, 2),
        (["a", "b", "", "c"], ["a", "b", ""], False, 4),
        (["a", "b", "", "c"], ["a", "b", ""], True, None),
        (["a", "x", "", "c"], ["a", "b", ""], True, 2),
        (["a"], ["a", "b", ""], False, 2),
    ],
)
def test_lines_that_are_counted_are_those_prepared(tmp_path, native, prepared, cut, line):
    for name, lines in (("native", native), ("prepared", prepared)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    assert first_difference(tmp_path / "native", tmp_path / "prepared", cut) == line


def test_lines_of_several_files_are_counted_as_prepared(tmp_path):
    dataset = changed(tmp_path, ("[[unseen.en, unseen.de]]", "[[unseen.en, unseen.de], [test.en, test.de]]"))
    dataset.prepare["vocab_size"] = 60
    files = raw(dataset, tmp_path / "raw")
    recipe(dataset, tmp_path / "out", smoke=False, raw=files, until="prepare").run()
    prepared = list(read_lines(tmp_path / "out" / "data" / "text" / "test1.de"))
    assert prepared == [line for name in ("unseen", "test") for line in read_lines(files / f"{name}.de")]


def test_labels_of_other_lines_are_refused_before_anything_is_trained(tmp_path, monkeypatch):
    trained, _ = untrained(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    folder = raw(dataset, tmp_path / "raw")
    for side in ("en", "de"):
        lines = list(read_lines(folder / f"unseen.{side}"))
        lines[1:1] = ["\u200b" if side == "en" else "Etwas."]  # a pair that is left out
        (folder / f"unseen.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    message = r"raw/unseen.en:2: unseen.register.tsv counts these lines, but this is not line 2 of what was prepared"
    with pytest.raises(InputError, match=message):
        recipe(dataset, tmp_path / "out", raw=folder).run()
    assert not trained
