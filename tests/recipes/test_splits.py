"""Preparation of splits: test sets, selected documents, feature files, and steps that are run again after changes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import ExtraMetrics, HoldOut, LeaveOut, named_recipes, read_dataset_config
from docnmt_fairseq.recipes.splits import first_difference, place_features
from tests.support.pages import ROOT
from tests.support.recipes import HANDBOOKS, SMALL, changed, fake_training, raw, small_recipe

UNSEEN = "  unseen: {format: delimited, corpora: [[unseen.en, unseen.de]]}\n"
TALKS_AND_NEWS = ROOT / "benchmarks" / "experiments" / "talks_and_news.yaml"


def counts_of(dataset, output, **options):
    """Prepares a data set and returns its counts by split."""
    small_recipe(dataset, output, **{"smoke": False, "stop_after": "prepare", **options}).run()
    return json.loads((output / "data" / "manifest.json").read_text())["counts"]


def test_test_sets_may_have_different_formats(tmp_path):
    dataset = changed(tmp_path, (UNSEEN, UNSEEN.replace("delimited", "d-lines")))
    dataset.prepare["vocab_size"] = 60
    files = raw(read_dataset_config(HANDBOOKS), tmp_path / "raw")
    for path in files.glob("unseen.??"):
        text = path.read_text(encoding="utf-8").strip("\n").replace("\n\n", "\n<d>\n")
        path.write_text(f"<d>\n{text}\n", encoding="utf-8")
    assert counts_of(dataset, tmp_path / "out", raw=files)["test1"]["documents"] == 2


def test_two_test_sets_from_the_same_files(tmp_path):
    dataset = read_dataset_config(TALKS_AND_NEWS)
    files = raw(dataset, tmp_path / "raw")
    whole = "\n".join(read_lines(files / "test.de")).strip("\n").split("\n\n")
    dataset.prepare["vocab_size"] = 60
    for name, documents in (("test", [0, 1]), ("news", [1, len(whole)])):
        dataset.splits[name] = replace(dataset.splits[name], documents=documents)
    counts_of(dataset, tmp_path / "out", raw=files)
    for split, documents in (("test", whole[:1]), ("test1", whole[1:])):
        text = (tmp_path / "out" / "data" / "text" / f"{split}.de").read_text(encoding="utf-8").strip("\n")
        assert text.split("\n\n") == documents and documents
    dataset.splits["test"] = replace(dataset.splits["test"], documents=[0, 23])
    with pytest.raises(InputError):
        counts_of(dataset, tmp_path / "out", raw=files)


def test_splits_are_read_again_when_their_settings_change(tmp_path):
    dataset = replace(read_dataset_config(HANDBOOKS), prepare={"subwords": "none"}, scores=ExtraMetrics())
    files = raw(dataset, tmp_path / "raw")

    def documents():
        counts = counts_of(dataset, tmp_path / "out", raw=files)
        return [counts[split]["documents"] for split in ("valid", "test")]

    sentences = [sum(map(bool, read_lines(files / f"{split}.en"))) for split in ("valid", "test")]
    assert documents() == [3, 2]
    dataset.prepare["one_document_a_line"] = True
    assert documents() == sentences
    del dataset.prepare["one_document_a_line"]
    dataset.splits["valid"] = replace(dataset.splits["valid"], format="wmt-ape")  # each sentence is a document
    assert documents() == [sentences[0], 2]


def test_listed_documents_are_left_out(tmp_path):
    dataset = replace(read_dataset_config(SMALL), prepare={"subwords": "none"})
    files = raw(dataset, tmp_path / "raw")
    whole = "\n".join(read_lines(files / "train.en")).strip("\n").split("\n\n")
    dataset.splits["train"].leave_out = LeaveOut("listed", "names")
    (files / "names").write_text("".join(f"{number}\t1\td{number}\n" for number in range(len(whole))))
    (files / "listed").write_text("d2\nd0\n")
    assert counts_of(dataset, tmp_path / "out", raw=files)["train"]["documents"] == len(whole) - 2
    text = (tmp_path / "out" / "data" / "text" / "train.en").read_text(encoding="utf-8").strip("\n")
    assert text.split("\n\n") == [whole[1], *whole[3:]]
    for name, content, key in (("listed", "d99\n", "listed: d99"), ("names", "d2\nd0\n", "names: 2 rows")):
        (files / name).write_text(content)
        with pytest.raises(InputError, match=key):
            counts_of(dataset, tmp_path / "out", raw=files)
        (files / "listed").write_text("d2\nd0\n")


def test_training_set_is_balanced_again_when_its_settings_change(tmp_path):
    dataset = replace(read_dataset_config(SMALL), prepare={"subwords": "none"})
    files = raw(dataset, tmp_path / "raw")
    target = ("Hast du dein Buch?", "Haben Sie Ihr Buch? he", "Haben Sie Ihr Buch? he", "she")
    for side, lines in (("en", "abcd"), ("de", target)):
        (files / f"train.{side}").write_text("".join(f"{line}\n\n" for line in lines), encoding="utf-8")
    dataset.splits["valid"] = replace(dataset.splits["valid"], documents=[0, 1])
    found = []
    for key, value in (("register", None), ("register", "de"), ("register", None), ("pronouns", ["he", "she"])):
        dataset.splits["train"] = replace(dataset.splits["train"], **{f"balance_{key}": value})
        found.append(counts_of(dataset, tmp_path / "out", raw=files)["train"]["documents"])
    assert found == [4, 5, 4, 5]


def test_held_out_splits_of_a_part_of_the_training_set(tmp_path):
    dataset = replace(read_dataset_config(SMALL), prepare={"subwords": "none"})
    files, train = raw(dataset, tmp_path / "raw"), []
    for wanted, sentences in ((None, 5), ([0, 12], 5), ([0, 12], 7)):
        dataset.splits["train"] = replace(dataset.splits["train"], documents=wanted)
        dataset = replace(dataset, hold_out=HoldOut(["more"], sentences))
        counts = counts_of(dataset, tmp_path / "out", raw=files)
        assert counts["test1"]["sentences"] == sentences
        train.append(counts["train"]["documents"])
    assert train[1] < 12 < train[0]


@pytest.mark.parametrize(
    ("native", "prepared", "cut", "line"),
    [
        (["a", "b", "", "", ""], ["a", "b", ""], False, None),
        (["a ", "\tb\u200b"], ["a", "b", ""], False, None),
        (["a", "", "", "b"], ["a", "", "b", ""], False, 3),
        (["a", "\u200b", "b"], ["a", "b", ""], False, 2),
        (["a", "b", "", "c"], ["a", "b", ""], True, None),
        (["a", "x", "", "c"], ["a", "b", ""], True, 2),
        (["a"], ["a", "b", ""], False, 2),
    ],
)
def test_first_difference_between_native_and_prepared_text(tmp_path, native, prepared, cut, line):
    for name, lines in (("native", native), ("prepared", prepared)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    assert first_difference(tmp_path / "native", tmp_path / "prepared", cut) == line


def test_labels_of_changed_lines_are_an_error_before_the_training(tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch)
    dataset = read_dataset_config(HANDBOOKS)
    folder = raw(dataset, tmp_path / "raw")
    for side in ("en", "de"):
        lines = list(read_lines(folder / f"unseen.{side}"))
        lines[1:1] = ["\u200b" if side == "en" else "Etwas."]  # a pair that is dropped
        (folder / f"unseen.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"raw/unseen.en:2: .*unseen.register.tsv"):
        small_recipe(dataset, tmp_path / "out", raw=folder).run()
    assert not trained


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "images.npy"
    np.save(path, np.arange(12.0).reshape(4, 3))
    return path


def test_feature_files_are_linked_or_cut(features, tmp_path):
    target = tmp_path / "train.image.npy"
    for _ in range(2):
        place_features(features, target, 4, cut=False)
        assert target.is_symlink() and np.array_equal(np.load(target), np.load(features))
    place_features(features, target, 3, cut=True)
    assert not target.is_symlink() and np.array_equal(np.load(target), np.load(features)[:3])


@pytest.mark.parametrize(("sentences", "cut"), [(3, False), (5, False), (5, True)])
def test_features_of_other_sentences_are_an_error(features, tmp_path, sentences, cut):
    with pytest.raises(InputError):
        place_features(features, tmp_path / "train.image.npy", sentences, cut)
    assert not (tmp_path / "train.image.npy").exists()


def test_trainings_and_translations_depend_on_features(tmp_path, monkeypatch):
    trained, translated = fake_training(monkeypatch)
    dataset = read_dataset_config(named_recipes()["multi30k"])
    files = raw(dataset, tmp_path / "raw")

    def run_with_changed(split):
        """Returns the number of translations and the data fingerprint of the training."""
        path = files / dataset.features["image"][split]
        np.save(path, -np.load(path))
        del trained[:], translated[:]
        small_recipe(dataset, tmp_path / "out", ("image-rnn-flat",), raw=files).run()
        return len(translated), trained[0]["data"]

    before = run_with_changed("test")
    assert before[0] == 1 and run_with_changed("test") == before
    assert len({before[1], run_with_changed("valid")[1], run_with_changed("train")[1]}) == 3
