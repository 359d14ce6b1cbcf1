from pathlib import Path

from docnmt_fairseq.recipes.dataset import DatasetConfig, Published, Training
from docnmt_fairseq.recipes.run import Options
from docnmt_fairseq.recipes.table import scores_table

RUN = {"bleu_tokens": 10.0, "bleu": 9.0, "chrf": 30.0, "sentences": 1234, "bleu_signature": "SIGNED"}


def dataset(published=None):
    return DatasetConfig("Talks", "s", "t", "", {}, {}, Training(), published=published)


def test_seeds_are_averaged_and_published_scores_stand_beside():
    published = Published("A paper, Table 2", {"train": 100, "test": 1234}, {"other": 16.094, "memory": 18.65})
    scores = {"memory": {1: RUN, 2: {**RUN, "bleu_tokens": 12.0}}, "tree": {1: RUN}}
    text = scores_table(dataset(published), {"test": scores}, {"train": 90, "test": 1234}, smoke=False)
    assert "| memory | 11.00 ± 1.41 | 9.00 ± 0.00 | 30.00 ± 0.00 | 1, 2 | 18.65 |" in text
    assert "| tree | 10.00 | 9.00 | 30.00 | 1 | – |" in text
    assert "| other | – | – | – | – | 16.09 |" in text
    assert "Sentences: train 90 (published: 100), test 1,234." in text
    assert "A paper, Table 2" in text and "`SIGNED`" in text and "mean nothing" not in text


def test_published_scores_stand_beside_the_test_set_that_has_them_each_once():
    published = Published("A paper, Table 2", {}, {"other": 16.094, "memory": 18.65})
    models = {"memory": {1: RUN}}
    text = scores_table(dataset(published), {"test": models, "unseen": models}, {"test": 1234}, smoke=False)
    first, second = text.split("## unseen")
    assert first.count("| memory |") == 1 and "| 18.65 |" in first and "| other |" in first
    assert "| memory | 10.00 | 9.00 | 30.00 | 1 |" in second and "18.65" not in second and "| other |" not in second


def test_without_published_scores_there_is_no_such_column():
    text = scores_table(dataset(), {"test": {"tree": {1: RUN}}}, {"test": 1234}, smoke=True)
    assert "published" not in text.lower() and "mean nothing" in text


def test_post_editing_is_scored_beside_the_translation_as_it_is():
    published = Published("A paper", hter={"translation as it is": 24.8, "flat": 24.2})
    edited = {**RUN, "hter": 20.5, "hter_signature": "HTER-SIGNED"}
    scores = {"translation as it is": {None: {**edited, "hter": 24.76}}, "tree": {1: edited, 2: edited}}
    text = scores_table(dataset(published), {"test": scores}, {"test": 1234}, smoke=False)
    assert (
        "| model | BLEU over tokens | HTER over tokens↓ | BLEU | chrF | seeds | published, HTER over tokens↓ |" in text
    )
    assert "| translation as it is | 10.00 | 24.76 | 9.00 | 30.00 | – | 24.80 |" in text
    assert "| tree | 10.00 ± 0.00 | 20.50 ± 0.00 | 9.00 ± 0.00 | 30.00 ± 0.00 | 1, 2 | – |" in text
    assert "| flat | – | – | – | – | – | 24.20 |" in text and "`HTER-SIGNED`" in text


def test_published_figures_beside_changed_models_are_marked():
    published = Published("A paper, Table 2", {}, {"other": 16.094, "memory": 18.65})
    scores = {"test": {"memory": {1: RUN}, "tree": {1: RUN}}}
    text = scores_table(dataset(published), scores, {"test": 1234}, False, changes=["--updates 5", "--dropout", "0.3"])
    assert (
        "| memory | 10.00 | 9.00 | 30.00 | 1 | 18.65† |" in text and "| tree | 10.00 | 9.00 | 30.00 | 1 | – |" in text
    )
    assert "| other | – | – | – | – | 16.09 |" in text  # nothing of ours beside it
    assert "† Of another model than this run's, which was changed by `--updates 5 --dropout 0.3`." in text
    assert "†" not in scores_table(dataset(published), scores, {"test": 1234}, False)
    asked = Options(Path("out"), size="small", updates=7, train_options=("--lr", "1"))
    assert asked.changes == ["--size small", "--updates 7", "--lr", "1"] and Options(Path("out")).changes == []


def test_figures_of_edit_operations_beside_models_of_words_are_marked():
    asked = Options(Path("out"), words=True)
    assert asked.changes == ["--words"]
    published = Published("A paper", hter={"translation as it is": 24.8, "flat": 24.2})
    edited = {**RUN, "hter": 20.5, "hter_signature": "SIGNED"}
    scores = {"test": {"translation as it is": {None: edited}, "flat": {1: edited}}}
    text = scores_table(dataset(published), scores, {"test": 1234}, False, changes=asked.changes)
    assert "| 1 | 24.20† |" in text and "changed by `--words`" in text
    assert "| – | 24.80 |" in text  # nothing was trained
