"""Configurations of data sets."""

from dataclasses import replace

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.register import RegisterAccuracyOptions
from docnmt_fairseq.recipes.dataset import ExtraMetrics, named_recipes, read_dataset_config, recipe_path
from tests.support.recipes import changed

RECIPES = [pytest.param(path, id=name) for name, path in named_recipes().items()]


@pytest.mark.parametrize("path", RECIPES)
def test_every_recipe_has_valid_options_files_and_downloads(path, tmp_path):
    dataset = read_dataset_config(path)
    languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
    config = config_of({**dataset.prepare, **languages, "output": tmp_path, "train": "x", "on_empty": "drop"})
    config.check()
    for split in dataset.splits.values():
        reader, extra = readers.READERS[split.format](config.reading), len(config.pipelines) - 2
        files = [corpus[: len(corpus) - extra] for corpus in split.corpora]
        assert all(len(reader.resolve(corpus)) == len(corpus) for corpus in files)
    names = [download.name for download in dataset.downloads]
    held = [name for download in dataset.downloads for name in download.holds]
    assert len(set(names)) == len(names) and len(set(held)) == len(held)
    if dataset.downloads:
        assert all(download.urls or download.name in held for download in dataset.downloads)
        assert set(dataset.files) <= {*names, *held}


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("hold_out: {splits: [test], sentences: 5}", "splits"),
        ("prepare: {vocab_sise: 3}", "vocab_sise"),
        ("splits: {train: {format: delimited, corpora: [[a, b]]}}", "splits"),
        ("probes: {contexts: [shuffled, no]}", "probes: contexts"),
        ("scores: {metrics: [register], register_language: xx}", "--register-language"),
        ("scores: {metrics: [terms], terms: {unsen: a.tsv}}", "scores: terms: .*unsen"),
        ("like: en_de_smal", "en_de_smal"),
    ],
)
def test_errors_name_the_key(tmp_path, line, key):
    path = tmp_path / "x.yaml"
    path.write_text(f"{line}\n" if line.startswith("like") else f"like: en_de_small\n{line}\n", encoding="utf-8")
    with pytest.raises((InputError, TypeError), match=key):
        read_dataset_config(path)


@pytest.mark.parametrize(
    ("replacements", "key"),
    [
        ([("valid: {", "valid: {balance_register: de, ")], "valid: balance_register"),
        ([("valid: {", "valid: {balance_pronouns: [he, she], ")], "valid: balance_pronouns"),
        ([("train: {", "train: {balance_pronouns: [he, her], ")], "her: choose from he, she"),
        ([("splits:", "hold_out: {splits: [more], sentences: 5}\nsplits:")], "train: balance_register"),
    ],
)
def test_errors_of_splits(tmp_path, replacements, key):
    with pytest.raises(InputError, match=key):
        changed(tmp_path, *replacements)


def test_recipe_can_be_based_on_another(tmp_path):
    small = read_dataset_config(recipe_path("en_de_small"))
    path = tmp_path / "mine.yaml"
    path.write_text("like: en_de_small\ntitle: mine\ntraining: {updates: 7, options: [--lr, 0.001]}\n")
    mine = read_dataset_config(recipe_path(str(path)))
    assert (mine.title, mine.training.updates, mine.training.options) == ("mine", 7, ["--lr", "0.001"])
    assert replace(mine, title=small.title, training=small.training) == small


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
