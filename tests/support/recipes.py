"""Recipes whose models are not trained: what they translate is made up, so that all around it runs in a second."""

import json

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.recipes import fixtures, results, run, run_probes
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

MANUALS = named_recipes()["en_de_manuals"]


def untrained(monkeypatch, write=lambda folder, line: line):
    """Puts something else in the place of training, translating and probing; returns the calls of the first two.

    Args:
        monkeypatch: pytest's.
        write: what the model of a folder makes of a line of the reference.
    """
    trained, translated = [], []

    def train(data, folder, model, budget, seed, machine, signature, start=None):
        trained.append({"folder": folder.name, "budget": budget, "seed": seed, "data": signature, "start": start})
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "training.json").write_text(json.dumps(folder.name))

    def translate(data, split, folder, output, model, tokens, subwords, cpu, view=None):
        translated.append((folder.name, split))
        lines = enumerate(read_lines(data.parent / "text" / f"{split}.de"))
        hypotheses = [f"H-{number}\t-1\t{write(folder, line)}\n" for number, line in lines if line]
        output.write_text("".join(hypotheses), encoding="utf-8")

    monkeypatch.setattr(run, "train", train)
    monkeypatch.setattr(results, "translate", translate)
    unprobed(monkeypatch)
    return trained, translated


def unprobed(monkeypatch, write=lambda context, line: line):
    """Puts something else in the place of probing; returns the calls: model, text, what, and what it is told.

    Args:
        monkeypatch: pytest's.
        write: what every model makes of a line of the reference with a context.
    """
    asked = []

    def translate(data, source, checkpoint, output, context, tokens, cpu, view=None):
        assert source.parent == data / "text" and source.suffix == ".en" and checkpoint.name == BEST and cpu
        asked.append((checkpoint.parent.name, source.stem, context, tokens))
        lines = read_lines(source.with_suffix(".de"))
        output.write_text("".join(f"{line and write(context, line)}\n" for line in lines), encoding="utf-8")

    def measure_cxmi(data, source, reference, checkpoint, output, sentences, cpu, view=None):
        assert (source.suffix, reference) == (".en", source.with_suffix(".de")) and checkpoint.name == BEST and cpu
        asked.append((checkpoint.parent.name, source.stem, "cxmi", sentences))
        figures = {"true": 1.25, "shuffled": -0.5, "random-document": -0.25, "empty": 0.0}
        probes = {context: {"cxmi": value, "cxmi_token": 9.0} for context, value in figures.items()}
        output.write_text(json.dumps({"about": {"sentences": sentences}, "probes": probes}))

    monkeypatch.setattr(run_probes, "translate", translate)
    monkeypatch.setattr(run_probes, "measure_cxmi", measure_cxmi)
    return asked


def changed(tmp_path, *replacements):
    """Returns the data set of handbooks, with other text in its YAML."""
    text = MANUALS.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = tmp_path / "changed.yaml"
    path.write_text(text, encoding="utf-8")
    return read_dataset_config(path)


def raw(dataset, folder):
    """Returns the folder, with made-up files of a data set."""
    fixtures.write_raw(dataset, folder)
    return folder


def recipe(dataset, output, models=("sentence", "conditional"), **options):
    """Returns a smoke run on the CPU."""
    return Recipe(dataset, Options(output, models=models, machine=Machine(cpu=True), **{"smoke": True, **options}))
