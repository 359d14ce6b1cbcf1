"""Does it come from context? False context, no context and CXMI of trained models."""

import json
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import context_use
from docnmt_fairseq.recipes.context_table import context_lines
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import SEARCH, models
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.view import DocumentView
from tests.support.recipes import MANUALS, changed, raw, recipe, unprobed, untrained
from tests.support.texts import Plain

PROBES = "".join(MANUALS.read_text(encoding="utf-8").partition("probes:")[1:])
MODELS = ("sentence", "concatenation-2to2", "conditional")
DU, SIE = " du.", " Sie."  # how sentences of the made-up text end


def always(context, line):
    """Returns the reference with du to everybody where context is false, and without a register where there is none."""
    return line.replace(SIE, DU) if context == "shuffled" else line.replace(SIE, ".").replace(DU, ".")


def loaded(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def calls(model, tokens, sentences=400):
    return [
        call
        for split in ("test", "test1")
        for call in (
            (model, split, "shuffled", tokens),
            (model, split, "none", tokens),
            (model, split, "cxmi", sentences),
        )
    ]


def test_only_models_that_see_context_are_asked_each_with_its_tokens(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    recipe(read_dataset_config(MANUALS), tmp_path / "out", MODELS, seeds=(1, 2)).run()
    assert asked == [
        *calls("concatenation-2to2-1", 1200),
        *calls("concatenation-2to2-2", 1200),
        *calls("conditional-1", 600),
        *calls("conditional-2", 600),
    ]
    assert not list((tmp_path / "out" / "models" / "sentence-1").glob("*shuffled*"))


def test_models_say_whether_they_see_context():
    blind = {name for name, one in models().items() if not one.sees_context}
    others = {name for name in models() if name.startswith(("mt-", "image-"))}  # their sources are of the sentence
    assert blind == {"sentence", "rnnsearch", "caption-rnn", *others}
    assert {name for name, one in models().items() if "none" in one.options(1)} <= blind


def test_answers_are_scored_each_in_files_of_its_own(tmp_path, monkeypatch):
    untrained(monkeypatch)
    unprobed(monkeypatch, always)
    table = recipe(read_dataset_config(MANUALS), tmp_path / "out").run()
    folder, text = tmp_path / "out" / "models" / "conditional-1", tmp_path / "out" / "data" / "text"
    for test_set, split, scores in (("test", "test", "scores"), ("unseen", "test1", "scores.unseen")):
        reference = list(read_lines(text / f"{split}.de"))
        assert list(read_lines(folder / f"{test_set}.txt")) == reference
        found = {}
        for context in ("shuffled", "none"):
            assert list(read_lines(folder / f"{test_set}.{context}.txt")) == [always(context, one) for one in reference]
            found[context] = loaded(folder, f"{scores}.{context}.json")
        true = loaded(folder, f"{scores}.json")
        assert true["bleu"] > 99 > max(one["bleu"] for one in found.values())
        assert true["bleu_signature"] == found["none"]["bleu_signature"] and {"chrf", "sentences"} <= {*found["none"]}
        values = [one["metrics"]["register"]["score"] for one in (true, found["shuffled"], found["none"])]
        assert values[0] == 100 > values[1] > values[2] == 0
        section = table.split(f"## {test_set}\n")[1].split("### What context is worth\n")[1]
        row = next(line for line in section.splitlines() if line.startswith("| conditional |"))
        bleu, register = (
            " / ".join(f"{value:.2f}" for value in values)
            for values in ([one["bleu"] for one in (true, found["shuffled"], found["none"])], values)
        )
        assert row.startswith(f"| conditional | {bleu} | {register} | ")
        assert row.endswith("| 1.250 / -0.500 / -0.250 |")


def test_nothing_is_asked_twice(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    folder = tmp_path / "out" / "models" / "conditional-1"

    def again(dataset=MANUALS):
        asked.clear()
        assert recipe(read_dataset_config(dataset), tmp_path / "out").run() == table
        return asked

    table = recipe(read_dataset_config(MANUALS), tmp_path / "out").run()
    assert again() == []
    (folder / "scores.unseen.shuffled.json").unlink()
    assert again() == []
    (folder / "test.none.txt").unlink()
    (folder / "cxmi.unseen.json").unlink()
    assert again() == [("conditional-1", "test", "none", 600), ("conditional-1", "test1", "cxmi", 400)]
    other = changed(tmp_path, ("cxmi_sentences: 400", "cxmi_sentences: 0"))
    asked.clear()
    recipe(other, tmp_path / "out").run()
    assert asked == [("conditional-1", split, "cxmi", 0) for split in ("test", "test1")]


def test_another_model_is_asked_anew(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    recipe(dataset, tmp_path / "out").run()
    asked.clear()

    def train(data, folder, *rest):
        (folder / "training.json").write_text(json.dumps("another"))

    monkeypatch.setattr("docnmt_fairseq.recipes.run.train", train)
    recipe(dataset, tmp_path / "out").run()
    assert asked == calls("conditional-1", 600)


def test_the_step_comes_before_the_table(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    dataset = read_dataset_config(MANUALS)
    assert recipe(dataset, tmp_path / "out", until="translate").run() is None and asked == []
    assert recipe(dataset, tmp_path / "out", until="probe").run() is None and asked == calls("conditional-1", 600)
    assert not (tmp_path / "out" / "table.md").exists()
    assert "What context is worth" in recipe(dataset, tmp_path / "out").run() and len(asked) == 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("probes", "whats", "header"),
    [
        ("", [], None),
        ("probes: {contexts: [none]}", ["none"], "| model | BLEU: true / none | register: true / none |"),
        ("probes: {cxmi_sentences: 7}", ["cxmi"], "| model | CXMI: true / shuffled / random document |"),
    ],
)
def test_only_what_a_recipe_wants_is_asked(tmp_path, monkeypatch, probes, whats, header):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    table = recipe(changed(tmp_path, (PROBES, probes)), tmp_path / "out").run()
    assert [what for _, _, what, _ in asked] == whats * 2
    assert ("What context is worth" in table) == bool(whats) and (header or "# English") in table


def test_one_document_has_no_false_context(tmp_path, monkeypatch):
    untrained(monkeypatch)
    asked = unprobed(monkeypatch)
    dataset = changed(tmp_path, ("{test: test.register.tsv, unseen: unseen.register.tsv}", "{test: test.register.tsv}"))
    folder = raw(dataset, tmp_path / "raw")
    for side in ("en", "de"):
        path = folder / f"unseen.{side}"
        path.write_text(path.read_text(encoding="utf-8").split("\n\n")[0] + "\n\n", encoding="utf-8")
    table = recipe(dataset, tmp_path / "out", raw=folder).run()
    assert asked == [*calls("conditional-1", 600)[:3], ("conditional-1", "test1", "none", 600)]
    test, unseen = table.split("## unseen")
    assert "BLEU: true / shuffled / none |" in test and "BLEU: true / none |" in unseen and "CXMI" not in unseen


def run_of(bleu, shuffled=None, cxmi=None):
    contexts = {} if shuffled is None else {"shuffled": {"bleu": shuffled}, "none": {"bleu": shuffled - 1}}
    run = {"bleu": bleu, "chrf": 99.0, "contexts": contexts}
    if cxmi is not None:
        figures = {"empty": 0.0, "random-document": cxmi - 0.2, "shuffled": cxmi - 0.1, "true": cxmi}
        run.update(cxmi=figures, cxmi_sentences=1234)
    return run


def test_the_table_has_means_over_seeds_and_gaps(tmp_path):
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
    assert "mean of 1,234 sentences" in lines[4] and "shuffled: translated among sentences of other" in lines[4]
    assert context_lines([], {"sentence": [{"bleu": 50.0}], "tree": [run_of(30.0)]}) == []


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ("probes:", "expected keys and values, got None"),
        ("probes: {}", "asks for nothing; give contexts, cxmi_sentences or both"),
        ("probes: {contexts: []}", "asks for nothing"),
        ("probes: {context: [none]}", "unknown context; there are contexts, cxmi_sentences"),
        ("probes: {contexts: [shuffled, no]}", r"contexts: \['shuffled', False\]: give a list of shuffled, none"),
        ("probes: {contexts: shuffled}", "contexts: 'shuffled': give a list of shuffled, none"),
        ("probes: {contexts: [none, none]}", "contexts: none, none: each once"),
        ("probes: {cxmi_sentences: -1}", "cxmi_sentences: -1 is not a number from 0 on"),
        ("probes: {cxmi_sentences: 0.5}", "cxmi_sentences: 0.5 is not a number"),
        ("probes: {cxmi_sentences: true}", "cxmi_sentences: True is not a number"),
        ("probes: {cxmi_sentences: many}", "cxmi_sentences: 'many' is not a number"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, probes, message):
    with pytest.raises(InputError, match=f"changed.yaml: probes: {message}"):
        changed(tmp_path, (PROBES, probes))


def test_a_test_set_is_not_called_as_a_context(tmp_path):
    with pytest.raises(InputError, match=r"changed\.yaml: probes: contexts: none: a test set is called that, too"):
        changed(tmp_path, ("  unseen: {format", "  none: {format"), (", unseen: unseen.register.tsv}", "}"))


def test_post_edits_stand_in_no_document(tmp_path):
    path = tmp_path / "edits.yaml"
    path.write_text(named_recipes()["ape"].read_text(encoding="utf-8") + PROBES, encoding="utf-8")
    with pytest.raises(InputError, match=r"edits\.yaml: probes: not with post_edits_of"):
        read_dataset_config(path)


@pytest.mark.parametrize(("context", "view"), [("shuffled", None), ("none", "none")])
def test_the_model_is_shown_what_was_asked(tmp_path, monkeypatch, context, view):
    """Translations are upper-cased, and stand in their places whatever the model was shown."""
    loaded, seen = [], []

    class Shouting(Plain):
        @classmethod
        def from_checkpoint(cls, *paths, **options):
            loaded.append((paths, options))
            return cls()

        def translate(self, documents, names, empty_lines, progress):
            seen.extend(documents)
            return [[line.upper() for line in lines] for lines in documents]

    monkeypatch.setattr("docnmt_fairseq.translate.translator.DocumentTranslator", Shouting)
    lines = [line for document in "abcdef" for line in (f"{document} eins", f"{document} zwei", "")]
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{line}\n" for line in lines))
    output.write_text("an older translation")
    context_use.translate(Path("data"), source, Path("model.pt"), output, context, 77, cpu=True)
    assert list(read_lines(output)) == [line.upper() for line in lines]
    assert (seen == [lines]) == (context == "none") and sorted(seen[0]) == sorted(lines)
    (((path,), options),) = loaded
    assert (path, options["data"], options["max_tokens"], options["cpu"]) == (Path("model.pt"), Path("data"), 77, True)
    assert options["view"] == DocumentView(context=view)
    assert options["search"] == SearchOptions(**SEARCH)


@pytest.mark.slow
def test_true_translations_are_those_of_fairseq_generate_and_answers_those_of_the_commands(tmp_path, starts_soon):
    """Else true and false context could not be compared."""
    names = ("concatenation-2to2", "conditional", "han-target")
    options = ["--smoke", "--models", " ".join(names), "--workers", "1", "--output", str(tmp_path)]
    cut = MANUALS.read_text(encoding="utf-8").replace("max_document_sentences: 0", "max_document_sentences: 2")
    (tmp_path / "cut.yaml").write_text(cut, encoding="utf-8")
    assert cli.main(["recipe", str(tmp_path / "cut.yaml"), *options]) == 0
    data = tmp_path / "data"
    search = ["--beam", "4", "--lenpen", "0.6", "--max-len-a", "1.5", "--max-len-b", "50"]
    for name in names:
        folder = tmp_path / "models" / f"{name}-1"
        model = ["--path", str(folder / BEST), "--data", str(data), "--cpu"]
        if name != "concatenation-2to2":
            model += ["--max-document-sentences", "2"]
        for test_set, split in (("test", "test"), ("unseen", "test1")):
            translated = {}
            for context, text in (("document", "txt"), ("shuffled", "shuffled.txt"), ("none", "none.txt")):
                output = tmp_path / f"{name}.{test_set}.{text}"
                text_options = ["--input", str(data / "text" / f"{split}.en"), "--output", str(output)]
                assert cli.main(["translate", *model, *text_options, *search, "--context", context]) == 0
                translated[context] = output.read_bytes()
                assert translated[context] == (folder / f"{test_set}.{text}").read_bytes()
        report = tmp_path / f"{name}.json"
        how = ["--split", "test1", "--sentences", "400", "--format", "json", "--output", str(report)]
        assert cli.main(["cxmi", *model, *how]) == 0
        assert report.read_bytes() == (folder / "cxmi.unseen.json").read_bytes()
