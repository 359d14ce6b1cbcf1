from pathlib import Path

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import fixtures
from docnmt_fairseq.recipes.facts import read_facts
from docnmt_fairseq.recipes.fetch import Source
from docnmt_fairseq.recipes.select import native_documents

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "configs" / "recipes").glob("*.yaml"))
SMALL = (ROOT / "configs" / "recipes" / "en_de_small.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_has_a_script_and_options_that_prepare_knows(path, tmp_path):
    facts = read_facts(path)
    assert f"recipe {path.stem} " in (ROOT / "scripts" / f"{path.stem}.sh").read_text(encoding="utf-8")
    config = PrepareConfig(facts.source_lang, facts.target_lang, tmp_path, train="x", on_empty="drop", **facts.prepare)
    config.check()
    names = [download.name for download in facts.downloads]
    held = [name for download in facts.downloads for name in download.holds]
    assert len(set(names)) == len(names) and len(set(held)) == len(held)
    if facts.downloads:
        assert all(download.urls or download.name in held for download in facts.downloads)
        assert set(facts.files) <= {*names, *held}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
@pytest.mark.parametrize("packed", [True, False])
def test_fixtures_are_read_as_the_native_files_they_stand_for(path, packed, tmp_path):
    facts = read_facts(path)
    fixtures.write_raw(facts, tmp_path / "raw", packed)
    source = Source(facts, tmp_path / "out", tmp_path / "raw")
    options = readers.ReadOptions(facts.source_lang, facts.target_lang)
    for number, (name, split) in enumerate(facts.splits.items()):
        paths = [[source.get(file) for file in corpus] for corpus in split.corpora]
        documents = native_documents(split, paths, options)()
        found = [[texts[:2] for texts in document.sentences()] for document in documents]
        languages = (facts.source_lang, facts.target_lang)
        counts = [fixtures.DOCUMENTS[name]] * len(split.corpora)
        made = [fixtures.documents(count, languages, 100 * number + i) for i, count in enumerate(counts)]
        expected = [document for corpus in made for document in corpus]
        if split.format == "wmt-ape":
            expected = [[pair] for document in expected for pair in document]
        assert found == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Small", "titel: Small", "unknown titel"),
        ("title: Small English-German documents", "", "title"),
        ("  size: small", "  sise: small", "training: unknown sise"),
        ("  valid: {format", "  validation: {format", "train, valid and test"),
        ("prepare: {", "prepare: {{", "no recipe"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    assert old in SMALL
    path = tmp_path / "x.yaml"
    path.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_facts(path)


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: no recipe"):
        read_facts(tmp_path / "nowhere.yaml")
