"""Recipes with fake training, translation and probes."""

import json

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.recipes import recipe, synthetic_data, translating
from docnmt_fairseq.recipes.dataset import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.recipe import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

HANDBOOKS = named_recipes()["en_de_manuals"]
SMALL = named_recipes()["en_de_small"]


def fake_training(monkeypatch, write=lambda folder, line: line):
    """Replaces training, translation and probes; returns the calls of the first two.

    Args:
        monkeypatch: pytest's.
        write: translation by the model in a folder, from a line of the reference.
    """
    trained, translated = [], []

    def train(data, folder, model, budget, seed, machine, fingerprint, start=None):
        call = {"folder": folder.name, "bins": str(data).split(":"), "budget": budget, "seed": seed, "start": start}
        trained.append({**call, "data": fingerprint})
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "training.json").write_text(json.dumps(folder.name))

    def translate(data, split, folder, output, model, tokens, joins, machine, view):
        translated.append((folder.name, split, view))
        lines = enumerate(read_lines(data.parent / "text" / f"{split}.de"))
        hypotheses = [f"H-{number}\t-1\t{write(folder, line)}\n" for number, line in lines if line]
        output.write_text("".join(hypotheses), encoding="utf-8")

    monkeypatch.setattr(recipe, "train", train)
    monkeypatch.setattr(translating, "generate", translate)
    fake_probes(monkeypatch)
    return trained, translated


def fake_probes(monkeypatch, write=lambda context, line: line):
    """Replaces the probes; returns the calls: model, split, probe, tokens or sentences, view.

    Args:
        monkeypatch: pytest's.
        write: translation with a context, from a line of the reference.
    """
    calls = []

    def translate(data, source, checkpoint, output, context, tokens, cpu, view):
        assert source.parent == data / "text" and source.suffix == ".en" and checkpoint.name == BEST and cpu
        calls.append((checkpoint.parent.name, source.stem, context, tokens, view))
        lines = read_lines(source.with_suffix(".de"))
        output.write_text("".join(f"{line and write(context, line)}\n" for line in lines), encoding="utf-8")

    def measure_cxmi(data, source, reference, checkpoint, output, sentences, cpu, view):
        assert (source.suffix, reference) == (".en", source.with_suffix(".de")) and checkpoint.name == BEST and cpu
        calls.append((checkpoint.parent.name, source.stem, "cxmi", sentences, view))
        figures = {"true": 1.25, "shuffled": -0.5, "random-document": -0.25, "empty": 0.0}
        by_context = {context: {"cxmi": value, "cxmi_token": 9.0} for context, value in figures.items()}
        output.write_text(json.dumps({"about": {"sentences": sentences}, "probes": by_context}))

    monkeypatch.setattr(translating, "translate_with_context", translate)
    monkeypatch.setattr(translating, "measure_cxmi", measure_cxmi)
    return calls


def changed(tmp_path, *replacements):
    """Returns the handbook data set with replacements in its YAML."""
    text = HANDBOOKS.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = tmp_path / "changed.yaml"
    path.write_text(text, encoding="utf-8")
    return read_dataset_config(path)


def raw(dataset, folder):
    """Returns the folder, with synthetic files of a data set."""
    synthetic_data.write_raw(dataset, folder)
    return folder


def small_recipe(dataset, output, models=("sentence", "conditional"), **options):
    """Returns a smoke run on the CPU."""
    return Recipe(dataset, Options(output, models=models, machine=Machine(cpu=True), **{"smoke": True, **options}))
