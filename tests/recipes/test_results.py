"""Scores, significance tests and probes of models whose training and translation are replaced."""

import json

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import read_dataset_config
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.translate.view import DocumentView
from tests.support.recipes import HANDBOOKS, changed, fake_probes, fake_training, raw, small_recipe

TEXT = HANDBOOKS.read_text(encoding="utf-8")
START = TEXT.split("  start:")[1].split("scores:")[0]
PROBES = "".join(TEXT.partition("probes:")[1:])
UNSEEN = "  unseen: {format: delimited, corpora: [[unseen.en, unseen.de]]}\n"
LABELS = "{test: test.register.tsv, unseen: unseen.register.tsv}"
VIEW = "view: {max_document_sentences: 0}"
MODELS = ("sentence", "concatenation-2to2", "conditional")
DU, SIE = " du.", " Sie."  # ends of sentences in the synthetic text


def polite(folder, line):
    """Translation in which the sentence-level model uses Sie only."""
    return line.replace(DU, SIE) if folder.name.startswith("sentence") else line


def of_context(context, line):
    """Translation with du only if the context is shuffled, without a second person if there is none."""
    return line.replace(SIE, DU) if context == "shuffled" else line.replace(SIE, ".").replace(DU, ".")


def loaded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_test_set_is_translated_and_scored(tmp_path, monkeypatch):
    _, translated = fake_training(monkeypatch, polite)
    table = small_recipe(read_dataset_config(HANDBOOKS), tmp_path / "out", seeds=(1, 2)).run()
    assert [call[:2] for call in translated if call[0] == "sentence-1"] == [
        ("sentence-1", "test"), ("sentence-1", "test1")
    ]  # fmt: skip
    folders = tmp_path / "out" / "models"
    assert list(read_lines(folders / "conditional-1" / "unseen.txt")) == list(
        read_lines(tmp_path / "out" / "fixtures" / "unseen.de")
    )
    first, right = (
        loaded(folders / name / "scores.unseen.json")["metrics"] for name in ("sentence-1", "conditional-2")
    )
    assert 0 < first["register"]["score"] == first["register-of-all"]["score"] < 100 == right["register"]["score"]
    assert first["register-consistency"]["score"] == 100
    assert "register_labels:unseen.register.tsv|" in first["register"]["signature"]  # independent of the folder
    assert str(tmp_path) not in table and all(f"`{one['signature']}`" in table for one in first.values())
    test = loaded(folders / "conditional-1" / "significance.json")
    assert test["baseline"] == "sentence-1" and test["documents"] == 2 and test["difference"] > 0
    section = table.split("## unseen")[0]
    conditional, sentence = (
        next(line for line in section.splitlines() if line.startswith(f"| {name} |")) for name in
        ("conditional", "sentence")
    )  # fmt: skip
    assert f"| {test['p_value']:.3f}, {test['p_value']:.3f} | 1, 2 |" in conditional and "| –, – | 1, 2 |" in sentence
    assert not (folders / "sentence-1" / "significance.json").exists()


def test_further_references_count_in_every_score_and_test(tmp_path, monkeypatch):
    fake_training(monkeypatch, polite)
    fake_probes(monkeypatch, of_context)
    dataset = read_dataset_config(HANDBOOKS)
    dataset.splits["unseen"].references = ["unseen.de1"]
    files = raw(dataset, tmp_path / "raw")
    lines = list(read_lines(files / "unseen.de"))
    (files / "unseen.de1").write_text("".join(f"{line.replace(DU, SIE)}\n" for line in lines), encoding="utf-8")
    first, second = small_recipe(dataset, tmp_path / "out", raw=files).run().split("## unseen")
    folder = tmp_path / "out" / "models" / "sentence-1"
    scores = loaded(folder / "scores.unseen.json")
    assert [scores[name] for name in ("bleu", "bleu_tokens", "chrf")] == pytest.approx([100] * 3)
    assert "nrefs:2" in scores["bleu_signature"] and "nrefs:2" in scores["bleu_tokens_signature"]
    assert loaded(folder / "scores.json")["bleu"] < 100 and "with 2 references" in second.replace(first, "")
    of_model = tmp_path / "out" / "models" / "conditional-1"
    assert "nrefs:2" in loaded(of_model / "significance.unseen.json")["signature"]
    assert "nrefs:2" in loaded(of_model / "scores.unseen.none.json")["bleu_signature"]
    (files / "unseen.de1").write_text("".join(f"{line}\n" for line in lines[:3]), encoding="utf-8")
    with pytest.raises(InputError):
        small_recipe(dataset, tmp_path / "other", raw=files).run()


def test_nothing_is_compared_without_the_start_or_its_model(tmp_path, monkeypatch):
    fake_training(monkeypatch, polite)
    dataset = changed(tmp_path, (f"  start:{START}", ""))
    assert "p, BLEU" not in small_recipe(dataset, tmp_path / "out").run()
    models = ("conditional",)
    assert "p, BLEU" not in small_recipe(read_dataset_config(HANDBOOKS), tmp_path / "other", models).run()


def test_test_set_of_one_document_has_no_significance_test_and_no_shuffled_context(tmp_path, monkeypatch):
    fake_training(monkeypatch)
    calls = fake_probes(monkeypatch)
    dataset = changed(tmp_path, (LABELS, "{test: test.register.tsv}"))
    files = raw(dataset, tmp_path / "raw")
    for side in ("en", "de"):
        path = files / f"unseen.{side}"
        path.write_text("".join(f"{line}\n" for line in read_lines(path) if line), encoding="utf-8")
    first, second = small_recipe(dataset, tmp_path / "out", raw=files).run().split("## unseen")
    assert "p, BLEU against sentence" in first and "p, BLEU" not in second and "| conditional | 100.00 |" in second
    assert [call[2] for call in calls if call[1] == "test1"] == ["none"]
    assert "BLEU: true / shuffled / none |" in first and "BLEU: true / none |" in second and "CXMI" not in second


def test_only_changed_test_sets_are_translated_and_scored_again(tmp_path, monkeypatch):
    reference = {}
    trained, translated = fake_training(monkeypatch, lambda folder, line: reference.setdefault(line, line))
    calls = fake_probes(monkeypatch)
    dataset = read_dataset_config(HANDBOOKS)
    files = raw(dataset, tmp_path / "raw")
    without = changed(tmp_path, (UNSEEN, ""), (LABELS, "{test: test.register.tsv}"))

    def run(data=dataset, models=("conditional",)):
        del translated[:], calls[:]
        small_recipe(data, tmp_path / "out", models, raw=files).run()
        return [call[1] for call in translated], [call[1:3] for call in calls]

    test, unseen = ([(split, what) for what in ("shuffled", "none", "cxmi")] for split in ("test", "test1"))
    assert run(without) == (["test"], test)
    assert run() == (["test1"], unseen) and run() == ([], [])
    assert len({call["data"] for call in trained}) == 1  # a further test set changes no training
    path = files / "unseen.de"
    reference.update((line.replace(DU, " Du."), line) for line in list(reference))  # same translation as before
    path.write_text(path.read_text(encoding="utf-8").replace(DU, " Du."), encoding="utf-8")
    assert run() == (["test1"], [("test1", "cxmi")])
    assert loaded(tmp_path / "out" / "models" / "conditional-1" / "scores.unseen.json")["bleu"] < 99
    labels, scores = files / "test.register.tsv", tmp_path / "out" / "models" / "conditional-1" / "scores.json"
    before = loaded(scores)["metrics"]["register"]["score"]
    labels.write_text(labels.read_text(encoding="utf-8").replace("\tdu\n", "\tSie\n"), encoding="utf-8")
    assert run() == ([], []) and loaded(scores)["metrics"]["register"]["score"] != before
    folder = tmp_path / "out" / "models" / "conditional-1"
    for name in ("scores.unseen.shuffled.json", "test.none.txt", "cxmi.unseen.json"):
        (folder / name).unlink()
    assert run() == ([], [("test", "none"), ("test1", "cxmi")])


def test_missing_input_of_metrics_is_reported_before_the_training(tmp_path, monkeypatch):
    trained, _ = fake_training(monkeypatch)
    dataset = read_dataset_config(HANDBOOKS)
    folder = raw(dataset, tmp_path / "raw")
    (folder / "unseen.register.tsv").write_text("1\tvous\n", encoding="utf-8")
    dataset.prepare["vocab_size"] = 60
    with pytest.raises(InputError, match=r"unseen\.register\.tsv:1"):
        small_recipe(dataset, tmp_path / "out", smoke=False, raw=folder).run()
    (folder / "unseen.register.tsv").unlink()
    with pytest.raises(InputError):
        small_recipe(dataset, tmp_path / "out", smoke=False, raw=folder).run()
    assert not trained


def test_models_that_see_context_are_probed_and_use_the_document_view(tmp_path, monkeypatch):
    _, translated = fake_training(monkeypatch)
    calls = fake_probes(monkeypatch)
    small_recipe(read_dataset_config(HANDBOOKS), tmp_path / "out", MODELS).run()
    whole, trained = DocumentView(max_document_sentences=0), DocumentView()
    assert calls == [
        call
        for model, tokens, view in (("concatenation-2to2-1", 1200, trained), ("conditional-1", 600, whole))
        for split in ("test", "test1")
        for call in (
            (model, split, "shuffled", tokens, view),
            (model, split, "none", tokens, trained),
            (model, split, "cxmi", 400, view),
        )
    ]
    assert {(name, view) for name, _, view in translated} == {
        ("sentence-1", trained), ("concatenation-2to2-1", trained), ("conditional-1", whole)
    }  # fmt: skip
    del translated[:], calls[:]
    other = DocumentView(max_document_sentences=2, context_overlap=1)
    dataset = changed(tmp_path, (VIEW, "view: {max_document_sentences: 2, context_overlap: 1}"))
    small_recipe(dataset, tmp_path / "out", MODELS).run()
    assert translated == [("conditional-1", split, other) for split in ("test", "test1")]
    assert [call[:3] for call in calls] == [
        ("conditional-1", split, what) for split in ("test", "test1") for what in ("shuffled", "cxmi")
    ]


def test_probes_are_scored_and_tabulated(tmp_path, monkeypatch):
    fake_training(monkeypatch)
    fake_probes(monkeypatch, of_context)
    table = small_recipe(read_dataset_config(HANDBOOKS), tmp_path / "out").run()
    folder, text = tmp_path / "out" / "models" / "conditional-1", tmp_path / "out" / "data" / "text"
    for test_set, split, scores in (("test", "test", "scores"), ("unseen", "test1", "scores.unseen")):
        reference = list(read_lines(text / f"{split}.de"))
        found = [loaded(folder / f"{scores}.json")]
        for context in ("shuffled", "none"):
            expected = [of_context(context, line) for line in reference]
            assert list(read_lines(folder / f"{test_set}.{context}.txt")) == expected
            found.append(loaded(folder / f"{scores}.{context}.json"))
        bleu, register = [one["bleu"] for one in found], [one["metrics"]["register"]["score"] for one in found]
        assert bleu[0] > 99 > max(bleu[1:]) and register[0] == 100 > register[1] > register[2] == 0
        section = table.split(f"## {test_set}\n")[1].split("### Context use\n")[1]
        row = next(line for line in section.splitlines() if line.startswith("| conditional |"))
        cells = [" / ".join(f"{value:.2f}" for value in values) for values in (bleu, register)]
        assert row.startswith(f"| conditional | {cells[0]} | {cells[1]} | ")
        assert row.endswith("| 1.250 / -0.500 / -0.250 |")


@pytest.mark.slow
def test_translations_and_probes_equal_those_of_the_commands(tmp_path, starts_soon):
    """fairseq-generate translates with true context, probes with false context: both must search equally."""
    names = ("concatenation-2to2", "han-target")
    options = ["--smoke", "--updates", "6", "--models", " ".join(names), "--workers", "1", "--output", str(tmp_path)]
    (tmp_path / "cut.yaml").write_text(TEXT.replace("max_document_sentences: 0", "max_document_sentences: 2"))
    assert cli.main(["recipe", str(tmp_path / "cut.yaml"), *options]) == 0
    data = tmp_path / "data"
    search = ["--beam", "4", "--lenpen", "0.6", "--max-len-a", "1.5", "--max-len-b", "50"]
    for name in names:
        folder = tmp_path / "models" / f"{name}-1"
        model = ["--path", str(folder / BEST), "--data", str(data), "--cpu"]
        if name != "concatenation-2to2":
            model += ["--max-document-sentences", "2"]
        for test_set, split in (("test", "test"), ("unseen", "test1")):
            for context, text in (("document", "txt"), ("shuffled", "shuffled.txt"), ("none", "none.txt")):
                output = tmp_path / f"{name}.{test_set}.{text}"
                text_options = ["--input", str(data / "text" / f"{split}.en"), "--output", str(output)]
                assert cli.main(["translate", *model, *text_options, *search, "--context", context]) == 0
                assert output.read_bytes() == (folder / f"{test_set}.{text}").read_bytes()
        report = tmp_path / f"{name}.json"
        arguments = ["--split", "test1", "--sentences", "400", "--format", "json", "--output", str(report)]
        assert cli.main(["cxmi", *model, *arguments]) == 0
        assert loaded(report) == loaded(folder / "cxmi.unseen.json")
