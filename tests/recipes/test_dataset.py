"""Configurations of data sets, and synthetic data in their formats."""

from dataclasses import replace
from pathlib import Path

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.register import RegisterAccuracyOptions
from docnmt_fairseq.recipes import synthetic_data
from docnmt_fairseq.recipes.dataset import ExtraMetrics
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config, recipe_path
from docnmt_fairseq.recipes.downloads import Source
from docnmt_fairseq.recipes.selection import native_documents
from tests.support.recipes import SMALL, changed

ROOT = Path(__file__).parents[2]
RECIPES = [pytest.param(path, id=name) for name, path in named_recipes().items()]
UNSEEN = "  unseen: {format"
LABELS = ", unseen: unseen.register.tsv}"


@pytest.mark.parametrize("path", RECIPES)
def test_every_recipe_has_a_script_and_valid_options_of_prepare(path, tmp_path):
    dataset = read_dataset_config(path)
    assert f"recipe {path.stem} " in (ROOT / "scripts" / f"{path.stem}.sh").read_text(encoding="utf-8")
    languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
    config_of({**dataset.prepare, **languages, "output": tmp_path, "train": "x", "on_empty": "drop"}).check()
    names = [download.name for download in dataset.downloads]
    held = [name for download in dataset.downloads for name in download.holds]
    assert len(set(names)) == len(names) and len(set(held)) == len(held)
    if dataset.downloads:
        assert all(download.urls or download.name in held for download in dataset.downloads)
        assert set(dataset.files) <= {*names, *held}


@pytest.mark.parametrize("path", RECIPES)
def test_synthetic_files_are_read_as_native_ones(path, tmp_path):
    dataset = read_dataset_config(path)
    synthetic_data.write_raw(dataset, tmp_path / "raw")
    source = Source(dataset, StepCache(tmp_path / "out", tmp_path / "out" / "table.md"), tmp_path / "raw")
    options = readers.Reading(dataset.source_lang, dataset.target_lang)
    for number, (name, split) in enumerate(dataset.splits.items()):
        paths = [[source.get(file) for file in corpus] for corpus in split.corpora]
        documents = native_documents(split, paths, options)()
        found = [[texts[:2] for texts in document.sentences()] for document in documents]
        languages = (dataset.source_lang, dataset.target_lang)
        count = synthetic_data.DOCUMENTS.get(name, synthetic_data.DOCUMENTS["test"])
        written = [synthetic_data.documents(count, languages, 100 * number + i) for i in range(len(split.corpora))]
        expected = [document for corpus in written for document in corpus]
        if split.format == "wmt-ape":
            expected = [[pair] for document in expected for pair in document]
        assert found == expected


def test_format_without_synthetic_data_is_an_error(tmp_path):
    dataset = read_dataset_config(SMALL)
    dataset.splits["valid"] = replace(dataset.splits["valid"], format="jsonl")
    with pytest.raises(InputError, match="--raw"):
        synthetic_data.write_raw(dataset, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("1: 2", "1"),
        ("downloads: 3", "downloads"),
        ("hold_out: {splits: dev, sentences: 5}", "hold_out.splits"),
        ("hold_out: {splits: [test], sentences: 5}", "splits"),
        ("published: {source: a, bleu: 3}", "published.bleu"),
        ("training: {sise: small}", "training.sise"),
        ("training: {updates: many}", "training.updates"),
        ("training: {start: {model: tree}}", "training.start.updates"),
        ("prepare: {vocab_sise: 3}", "vocab_sise"),
        ("prepare: {on_empty: error, format: tsv}", "prepare: format, on_empty"),
        ("splits: {train: {format: delimited, corpora: [[a, b]]}}", "splits"),
        ("features: {image: {train: x.npy}}", "features: image"),
        ("view: {sentences: 0}", "view: sentences"),
        ("view: {context: none}", "view"),
        ("probes: {contexts: [shuffled, no]}", "probes: contexts"),
        ("post_edits_of: mt\nprobes: {cxmi_sentences: 3}", "probes"),
        ("scores: {metrics: [registre]}", "scores: metrics: registre"),
        ("scores: {metrics: [bleu]}", "scores: metrics: bleu"),
        ("scores: {metrics: [register], register_langage: de}", "scores: register_langage"),
        ("scores: {metrics: [register], register_language: xx}", "scores: register: --register-language"),
        ("scores: {metrics: [terms], terms: {unsen: a.tsv}}", "scores: terms: .*unsen"),
        ("like: en_de_smal", "en_de_smal"),
    ],
)
def test_errors_name_the_key(tmp_path, line, key):
    path = tmp_path / "x.yaml"
    path.write_text(f"{line}\n" if line.startswith("like") else f"like: en_de_small\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=key):
        read_dataset_config(path)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("valid: {", "valid: {balance_register: de, ", "valid: balance_register"),
        ("balance_register: de", "balance_register: xx", "train: balance_register"),
        ("splits:", "hold_out: {splits: [more], sentences: 5}\nsplits:", "train: balance_register"),
        ("valid: {", "valid: {documents: [3, 3], ", "valid: documents"),
        (UNSEEN, UNSEEN.replace("format", "documents: [0, 2], format"), r"unseen: documents: unseen\.register\.tsv"),
    ],
)
def test_errors_of_splits(tmp_path, old, new, key):
    with pytest.raises(InputError, match=key):
        changed(tmp_path, (old, new))


@pytest.mark.parametrize("name", ["test1", "valid2", "un.seen", "../up", "none"])
def test_reserved_names_of_test_sets_are_errors(tmp_path, name):
    with pytest.raises(InputError, match="give the test set another name"):
        changed(tmp_path, (UNSEEN, f"  {name}: {{format"), (LABELS, "}"))


def test_recipe_can_be_based_on_another(tmp_path):
    small = read_dataset_config(recipe_path("en_de_small"))
    path = tmp_path / "mine.yaml"
    path.write_text("like: en_de_small\ntitle: mine\ntraining: {updates: 7, options: [--lr, 0.001]}\n")
    mine = read_dataset_config(path)
    assert (mine.title, mine.training.updates, mine.training.options) == ("mine", 7, ["--lr", "0.001"])
    assert replace(mine, title=small.title, training=small.training) == small


def test_recipes_are_found_by_name_and_by_file(tmp_path):
    assert all(recipe_path(name) == path == recipe_path(str(path)) for name, path in named_recipes().items())
    with pytest.raises(InputError, match=r"no_such.* ape, en_de_manuals"):
        recipe_path("no_such")
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        read_dataset_config(tmp_path / "nowhere.yaml")


def test_metric_options_may_be_given_by_test_set(tmp_path):
    options = {"register_language": "de", "register_labels": {"test": "a.tsv"}}
    extra = ExtraMetrics(["register"], options)
    labels = extra.options_of("register", "test", {"a.tsv": tmp_path / "a.tsv"})
    assert labels == RegisterAccuracyOptions("de", str(tmp_path / "a.tsv"))
    assert extra.options_of("register", "unseen", {}) == RegisterAccuracyOptions("de", None)
    assert extra.files == ["a.tsv"] and extra.line_files("test") == {"register_labels": "a.tsv"}
    assert extra.line_files("unseen") == {} and ExtraMetrics().files == []
    terms = ExtraMetrics(["terms"], {"terms": "list.tsv"})
    assert terms.files == ["list.tsv"] and terms.line_files("test") == {}
