from dataclasses import replace
from pathlib import Path

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import fixtures
from docnmt_fairseq.recipes.dataset_file import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.fetch import Source
from docnmt_fairseq.recipes.select import native_documents

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "docnmt_fairseq" / "recipes" / "configs").glob("*.yaml"))
SMALL = (ROOT / "docnmt_fairseq" / "recipes" / "configs" / "en_de_small.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_has_a_script_and_options_that_prepare_knows(path, tmp_path):
    dataset = read_dataset_config(path)
    assert f"recipe {path.stem} " in (ROOT / "scripts" / f"{path.stem}.sh").read_text(encoding="utf-8")
    languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
    config = config_of({**dataset.prepare, **languages, "output": tmp_path, "train": "x", "on_empty": "drop"})
    config.check()
    names = [download.name for download in dataset.downloads]
    held = [name for download in dataset.downloads for name in download.holds]
    assert len(set(names)) == len(names) and len(set(held)) == len(held)
    if dataset.downloads:
        assert all(download.urls or download.name in held for download in dataset.downloads)
        assert set(dataset.files) <= {*names, *held}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
@pytest.mark.parametrize("packed", [True, False])
def test_fixtures_are_read_as_the_native_files_they_stand_for(path, packed, tmp_path):
    dataset = read_dataset_config(path)
    fixtures.write_raw(dataset, tmp_path / "raw", packed)
    source = Source(dataset, tmp_path / "out", tmp_path / "raw")
    options = readers.Reading(dataset.source_lang, dataset.target_lang)
    for number, (name, split) in enumerate(dataset.splits.items()):
        paths = [[source.get(file) for file in corpus] for corpus in split.corpora]
        documents = native_documents(split, paths, options)()
        found = [[texts[:2] for texts in document.sentences()] for document in documents]
        languages = (dataset.source_lang, dataset.target_lang)
        counts = [fixtures.DOCUMENTS.get(name, fixtures.DOCUMENTS["test"])] * len(split.corpora)
        made = [fixtures.documents(count, languages, 100 * number + i) for i, count in enumerate(counts)]
        expected = [document for corpus in made for document in corpus]
        if split.format == "wmt-ape":
            expected = [[pair] for document in expected for pair in document]
        assert found == expected


def test_a_format_in_which_nothing_is_made_up_is_refused(tmp_path):
    dataset = read_dataset_config(RECIPES[0])
    dataset.splits["valid"] = replace(dataset.splits["valid"], format="jsonl")
    with pytest.raises(InputError, match=r"--smoke: .* made up for format jsonl \(delimited, .*--raw FOLDER"):
        fixtures.write_raw(dataset, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Small", "titel: Small", "unknown titel"),
        ("title: Small English-German documents", "", "title"),
        ("  size: small", "  sise: small", "training: unknown sise"),
        ("  valid: {format", "  validation: {format", "train, valid and test"),
        ("prepare: {", "prepare: {{", "no recipe"),
        ("prepare: {", "prepare: {vocab_sise: 3, ", "no such option of docnmt prepare: vocab_sise"),
        ("valid: {format: delimited", "valid: {format: sgm", "--format sgm: no such format"),
        ("train: {", "train: {balance_register: xx, ", "balance_register: no rules for 'xx'; there are de"),
        (
            "title: Small",
            "features: {image: {train: x.npy}}\ntitle: Small",
            "features: image: give a file for each of tr",
        ),
        (
            "title: Small",
            "features: {image: {train: a.npy, valid: b.npy, test: c.npy, more: d.npy}}\ntitle: Small",
            "features: image: give a file for each of train, valid, test$",
        ),
        ("valid: {", "valid: {balance_register: de, ", "valid: balance_register: is of train alone"),
        (
            "splits:\n  train: {",
            "hold_out: {splits: [more], sentences: 5}\nsplits:\n  train: {balance_register: de, ",
            "train: balance_register: is of train alone, and not beside hold_out",
        ),
        ("title: Small", "hold_out: {splits: [test], sentences: 5}\ntitle: Small", "splits: .* needed, each once"),
        ("valid: {", "valid: {documents: [3, 3], ", r"valid: documents: expected \[the first, .*; got \[3, 3\]"),
        ("valid: {", "valid: {documents: [-1, 3], ", r"valid: documents: expected \[the first, .*; got \[-1, 3\]"),
        ("valid: {", "valid: {documents: 3, ", "valid: documents: expected a list of whole numbers, got 3$"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    assert old in SMALL
    path = tmp_path / "x.yaml"
    path.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_dataset_config(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1: 2\nnew: 3", "unknown 1, new; there are"),
        ("downloads: 3", "downloads: expected a list of keys and values, got 3$"),
        ("downloads: [{name: a, urls: b}]", "downloads: urls: expected a list of texts, got 'b'$"),
        ("hold_out: {splits: dev, sentences: 5}", "hold_out: splits: expected a list of texts, got 'dev'$"),
        ("features: []", r"features: expected keys and values, got \[\]$"),
        ("models: sentence", "models: expected a list of texts, got 'sentence'$"),
        ("published: {source: a, bleu: 3}", "published: bleu: expected keys and values, got 3$"),
        ("target_lang: no", "target_lang: expected a text, got False; .* needs quotes"),
        ("training: {batch_tokens: '64'}", "training: batch_tokens: expected a whole number, got '64'$"),
        ("training: {start: {model: tree, updates: 1, seed: x}}", "training: start: seed: expected a whole number"),
        ("training: {updates: 0}", "training: updates: 0 is not a number from 1 on$"),
        ("training: {batch_tokens: -1}", "training: batch_tokens: -1 is not a number from 1 on$"),
        ("training: {validate_every: 0}", "training: validate_every: 0 is not a number from 1 on$"),
        ("prepare: {vocab_size: '3'}", "prepare: vocab_size: expected a whole number, got '3'$"),
        ("prepare: {joint: 1}", "prepare: joint: expected true or false, got 1$"),
        ("prepare: {on_empty: error, format: tsv}", "prepare: on_empty, format: the recipe sees to that; leave"),
        ("prepare: [a]", r"prepare: expected keys and values, got \['a'\]$"),
        ("splits: 3", "splits: expected keys and values, got 3$"),
        (
            "splits: {train: {format: tsv, corpora: [a.en, a.de]}}",
            r"splits: train: corpora: expected a list of lists of texts, got \['a.en', 'a.de'\]$",
        ),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path, line, message):
    path = tmp_path / "x.yaml"
    path.write_text(f"like: en_de_small\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"x\.yaml: {message}"):
        read_dataset_config(path)


def test_a_recipe_is_like_another_but_for_what_it_says(tmp_path):
    small = read_dataset_config(recipe_path("en_de_small"))
    path = tmp_path / "mine.yaml"
    path.write_text("like: en_de_small\ntitle: mine\ntraining: {updates: 7}\n")
    mine = read_dataset_config(path)
    assert (mine.title, mine.training.updates, mine.training.options) == ("mine", 7, [])
    assert replace(mine, title=small.title, training=small.training) == small
    path.write_text("like: en_de_smal\n")
    with pytest.raises(InputError, match=r"mine.yaml: like: en_de_smal: no such recipe; there are .*en_de_small"):
        read_dataset_config(path)


def test_recipes_are_found_by_name_and_by_file():
    assert [recipe_path(path.stem) for path in RECIPES] == RECIPES == [recipe_path(str(path)) for path in RECIPES]
    with pytest.raises(InputError, match=r"no_such: no such recipe, .* there are ape, en_de_manuals"):
        recipe_path("no_such")


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: no recipe"):
        read_dataset_config(tmp_path / "nowhere.yaml")
