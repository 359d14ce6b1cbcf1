"""Result tables of recipes."""

from pathlib import Path

from docnmt_fairseq.recipes.dataset import DatasetConfig, Published, Training
from docnmt_fairseq.recipes.recipe import Options
from docnmt_fairseq.recipes.table import context_lines, scores_table

RUN = {"bleu_tokens": 10.0, "bleu": 9.0, "chrf": 30.0, "sentences": 1234, "bleu_signature": "SIGNED"}
POST_EDITED = {**RUN, "hter": 20.5, "hter_signature": "HTER-SIGNED"}
PUBLISHED = Published("A paper, Table 2", {"train": 100, "test": 1234}, {"other": 16.094, "memory": 18.65})


def table(scores, published=None, **options):
    dataset = DatasetConfig("Talks", "s", "t", "", {}, {}, Training(), published=published)
    return scores_table(dataset, scores, {"train": 90, "test": 1234}, **{"smoke": False, **options})


def test_seeds_are_averaged_next_to_published_scores_of_the_first_test_set():
    models = {"memory": {1: RUN, 2: {**RUN, "bleu_tokens": 12.0}}, "tree": {1: RUN}}
    text = table({"test": models, "unseen": {"memory": {1: RUN}}}, PUBLISHED)
    first, second = text.split("## unseen")
    assert "| memory | 11.00 ± 1.41 | 9.00 ± 0.00 | 30.00 ± 0.00 | 1, 2 | 18.65 |" in first
    assert "| tree | 10.00 | 9.00 | 30.00 | 1 | – |" in first and "| other | – | – | – | – | 16.09 |" in first
    assert "| memory | 10.00 | 9.00 | 30.00 | 1 |" in second and "18.65" not in second and "| other |" not in second
    assert "Sentences: train 90 (published: 100), test 1,234." in text
    assert "A paper, Table 2" in text and "`SIGNED`" in text and "meaningless" not in text


def test_smoke_run_without_published_scores():
    text = table({"test": {"tree": {1: RUN}}}, smoke=True)
    assert "published" not in text.lower() and "meaningless" in text


def test_post_editing_has_hter_and_a_row_for_the_machine_translation():
    published = Published("A paper", hter={"translation as it is": 24.8, "flat": 24.2})
    scores = {"translation as it is": {None: {**POST_EDITED, "hter": 24.76}}, "flat": {1: POST_EDITED, 2: POST_EDITED}}
    text = table({"test": scores}, published, changes=["--words"])
    header = "| model | BLEU over tokens | HTER over tokens↓ | BLEU | chrF | seeds | published, HTER over tokens↓ |"
    assert header in text and "`HTER-SIGNED`" in text
    assert "| translation as it is | 10.00 | 24.76 | 9.00 | 30.00 | – | 24.80 |" in text
    assert "| flat | 10.00 ± 0.00 | 20.50 ± 0.00 | 9.00 ± 0.00 | 30.00 ± 0.00 | 1, 2 | 24.20† |" in text


def test_published_figures_of_changed_models_are_marked():
    scores = {"test": {"memory": {1: RUN}, "tree": {1: RUN}}}
    text = table(scores, PUBLISHED, changes=["--updates 5", "--dropout", "0.3"])
    assert "| memory | 10.00 | 9.00 | 30.00 | 1 | 18.65† |" in text and "| 30.00 | 1 | – |" in text
    assert "| other | – | – | – | – | 16.09 |" in text and "`--updates 5 --dropout 0.3`" in text
    assert "†" not in table(scores, PUBLISHED)
    options = Options(Path("out"), size="small", updates=7, train_options=("--lr", "1"), words=True)
    assert options.changes == ["--size small", "--updates 7", "--words", "--lr", "1"]
    assert Options(Path("out")).changes == []


def run_of(bleu, shuffled=None, cxmi=None):
    contexts = {} if shuffled is None else {"shuffled": {"bleu": shuffled}, "none": {"bleu": shuffled - 1}}
    run = {"bleu": bleu, "chrf": 99.0, "contexts": contexts}
    if cxmi is not None:
        figures = {"empty": 0.0, "random-document": cxmi - 0.2, "shuffled": cxmi - 0.1, "true": cxmi}
        run.update(cxmi=figures, cxmi_sentences=1234)
    return run


def test_table_of_context_use_has_means_over_seeds_and_gaps():
    scores = {
        "sentence": [{"bleu": 50.0}],
        "tree": [run_of(30.0, 20.0, 0.5), run_of(32.0, 24.0, 0.7)],
        "new": [run_of(31.0)],
    }
    lines = context_lines([], scores)
    assert lines[2].splitlines() == [
        "| model | BLEU: true / shuffled / none | CXMI: true / shuffled / random document |",
        "| --- | --- | --- |",
        "| tree | 31.00 ± 1.41 / 22.00 ± 2.83 / 21.00 ± 2.83 | 0.600 ± 0.141 / 0.500 ± 0.141 / 0.400 ± 0.141 |",
        "| new | 31.00 / – / – | – / – / – |",
    ]
    assert "1,234" in lines[4]
    assert context_lines([], {"sentence": [{"bleu": 50.0}], "tree": [run_of(30.0)]}) == []
