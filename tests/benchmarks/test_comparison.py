import json

CEILINGS = {"ambiguous": 0.4, "pronoun": 0.3}


def run(name, seed, near, far):
    """Returns the figures of a run: of 10 cases at each of two distances, so many right."""
    figures = {"1": [near, 10], "5": [far, 10], "6": [far, 30]}
    scores = {"bleu": 50.0 + seed, "chrf": 60.0, "bleu_signature": "B", "chrf_signature": "C"}
    known = {"part": "synthetic", "model": name, "seed": seed, "updates": 1500, "best_update": 1500}
    return {**known, "parameters": 1234, **scores, "right_of_cases": {kind: figures for kind in CEILINGS}}


def text_run(name, **losses):
    known = {key: value for key, value in run(name, 1, 0, 0).items() if key != "right_of_cases"}
    return {**known, "part": "text", **losses}


def store(path, *runs):
    from benchmarks.lib.store import Store

    stored = Store(path / "comparison.json")
    stored.facts.update(machine="a machine", ceilings=CEILINGS, chained={"pronoun": {"1": [2, 2], "4": [1, 3]}})
    stored.facts.update(text_sentences=99)
    stored.called("python -m benchmarks.experiments.comparison")
    for one in runs:
        stored.add(f"{one['part']}-{one['model']}-{one['seed']}", one)
    return stored


def test_accuracy_is_over_all_cases_of_a_range():
    from benchmarks.experiments.comparison_report import share

    assert share(run("han", 1, 9, 5), "pronoun", 1, 1) == 0.9
    assert share(run("han", 1, 9, 5), "pronoun", 4, 6) == 10 / 40
    assert share(run("han", 1, 9, 5), "pronoun", 1, 10) == 19 / 50
    assert share(run("han", 1, 9, 5), "pronoun", 2, 3) is None
    assert share(run("han", 1, 9, 5), "formality", 1, 10) is None


def test_report_has_both_parts_seeds_side_by_side_and_keeps_what_was_written_by_hand(tmp_path):
    from benchmarks.experiments.comparison_report import write

    write(store(tmp_path, run("tree", 2, 10, 2), run("sentence", 1, 3, 3), run("tree", 1, 8, 6)), tmp_path)
    path = tmp_path / "comparison.md"
    text = path.read_text()
    assert "English-German" not in text and (tmp_path / "comparison.png").stat().st_size
    assert "| tree | 80.0 / 100.0 | – / – | – / – | 30.0 / 10.0 | – / – |" in text
    assert "| tree | the whole document | 1,234 | 40.0 / 28.0 | 40.0 / 28.0 | 51.0 / 52.0 |" in text
    assert "| pronoun | 100.0 | – | – | 33.3 | – |" in text
    assert text.index("| sentence |") < text.index("| tree |")
    path.write_text(text.replace("## Commands", "## What it says\n\nBy hand.\n\n## Commands"))
    with_text = [text_run("memory", nll=5.5, nll_without_context=5.6), text_run("concatenation", nll=5.7)]
    write(store(tmp_path, *with_text), tmp_path)  # the earlier runs are read from the file
    text = path.read_text()
    assert text.count("## What it says\n\nBy hand.\n\n## Commands") == 1 and "| tree |" in text
    assert "| memory | 51.00 | 60.00 | 5.500 | 5.600 | 1,500 | 1,234 |" in text
    assert "| concatenation | 51.00 | 60.00 | 5.700 | – | 1,500 | 1,234 |" in text


def test_every_model_of_the_comparison_exists_and_gets_only_options_it_has():
    from benchmarks.experiments import comparison
    from benchmarks.experiments.comparison_report import REACH
    from docnmt_fairseq.recipes.models import models

    assert set(REACH) <= set(models()) and set(comparison.TEXT_MODELS) <= set(REACH)
    known = models()
    assert comparison.train_options("synthetic", known["han"]) == list(comparison.PARAGRAPHS)
    assert comparison.train_options("synthetic", known["concatenation"]) == []
    assert comparison.train_options("text", known["han"]) == []


def test_budgets_of_the_parts():
    from benchmarks.experiments import comparison

    synthetic, text = comparison.dataset_of("synthetic"), comparison.dataset_of("text")
    assert synthetic.prepare == {"subwords": "none"} and synthetic.training.updates == 1500
    assert text.training.updates == comparison.TEXT_TRAINING["updates"] and text.prepare["vocab_size"] == 4000
    assert "--share-all-embeddings" in text.training.options and text.training.options[-6:] == comparison.TEXT_PACE


def test_figures_are_read_from_a_models_folder(tmp_path):
    from benchmarks.experiments import comparison

    class Recipe:
        output = tmp_path

        class budget:
            updates = 40

    folder = tmp_path / "models" / "han-1"
    folder.mkdir(parents=True)
    records = [{"valid_nll_loss": loss, "valid_num_updates": update} for update, loss in (("20", "5.5"), ("40", "5.6"))]
    lines = ["num. shared model params: 1,234 (num. trained: 1,234)", *map(json.dumps, records)]
    (folder / "train.log").write_text("\n".join(lines))
    scores = {"bleu": 1.5, "chrf": 9.0, "bleu_signature": "B", "chrf_signature": "C", "sentences": 3}
    (folder / "scores.json").write_text(json.dumps(scores))
    found = comparison.trained(Recipe, "han", 1)
    assert (found["updates"], found["best_update"], found["parameters"], found["bleu"]) == (40, 20, 1234, 1.5)


def test_earlier_translations_carry_a_decision_on():
    from benchmarks.experiments.comparison_chains import in_reach
    from docnmt_fairseq.corpus.synth.table import Case

    def case(line, distance, kind="formality"):
        return Case(line, 0, kind, distance, "a", ("b",), "c")

    lines = [0, 1, 2, 3, 5, 6, 7, 8, 9]  # a mark on line 4, so that lines 5 to 9 are sentences 4 to 8
    cases = [case(2, 2), case(3, 1), case(3, 3, "pronoun"), case(5, 4), case(7, 6), case(8, 3), case(9, 8)]
    #        reached     reached     not so, nor does it help others, by way of line 2, of line 5, reached, of line 7
    assert in_reach(cases, lines, back=2) == [True, True, False, True, True, False, True]
    assert in_reach(cases, lines, back=1) == [False, True, False, False, False, False, False]


def test_every_suite_of_variants_can_be_built_and_has_its_own_names():
    from benchmarks.experiments import variants
    from docnmt_fairseq.models.transformer.presets import SIZES

    for file in sorted(variants.FOLDER.glob("*.yaml")):
        suite = variants.Suite.read(file.stem)
        for part in ("synthetic", "text"):
            budget, models = suite.dataset(part).training, suite.models(part)
            assert budget.size in SIZES and budget.updates % budget.validate_every == 0 and len(models) > 1
            for name, model in models.items():
                options = [*budget.options, *model.options(budget.updates)]
                parsed = parse(f"{model.arch}_{budget.size}", options)
                assert parsed.task == "document_translation", name


def parse(arch, options):
    """Returns what fairseq-train makes of a model's options; it exits if it does not know one."""
    from fairseq import options as fairseq_options

    import docnmt_fairseq

    docnmt_fairseq.register()
    common = ["data", "--arch", arch, "--task", "document_translation", "--optimizer", "adam", "--lr-scheduler"]
    return fairseq_options.parse_args_and_arch(
        fairseq_options.get_training_parser(), [*common, "inverse_sqrt", *options]
    )


def test_report_of_variants(tmp_path):
    from benchmarks.experiments import variants_report

    runs = [
        {**run("flat", seed, 5, 5), "curve": [(150, 3.0 + seed), (300, 2.0)], "bleu": 50.0, "chrf": 60.0}
        for seed in (1, 2)
    ]
    made = store(tmp_path, *runs)
    variants_report.write(made, "Title", "Why?", ["serial", "flat"], tmp_path, "suite")
    text = (tmp_path / "variants_suite.md").read_text()
    assert "| flat | 1,234 | 2.000 / 2.000 | 50.00 / 50.00 | 60.00 / 60.00 |" in text and "serial" not in text
    assert (tmp_path / "variants_suite_synthetic.png").stat().st_size
    assert variants_report.line(runs[0]).startswith("synthetic: flat, seed 1: BLEU 50.00, nll 2.000")
