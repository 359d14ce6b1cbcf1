import json
import logging
import shutil

import pytest

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import fixtures, machines, training
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import model, models
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import Budget, restore_last_checkpoint, train, training_options, updates_of
from docnmt_fairseq.translate.view import DocumentView
from tests.support import toy

SMALL = named_recipes()["en_de_small"]
HERE = Machine(cpu=True)
BUDGET = Budget("tiny", 20, 80, 10, ["--patience", "9"], smoke=True)


@pytest.fixture(scope="module")
def trained(data_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    toy.train(data_bin, folder, "--max-update", "4", "--save-interval-updates", "1")
    return folder


def test_every_registered_mechanism_is_a_model():
    assert {"sentence", "concatenation", *CONTEXT_MECHANISMS.names()} - {"sentence-attention"} <= {
        *models(),
        "sentence",
    }


def test_unknown_models_are_named_with_those_that_exist():
    with pytest.raises(InputError, match="--models nonsense: no such model; there are sentence, concatenation"):
        model("nonsense")


@pytest.mark.parametrize("name", sorted(models()))
@pytest.mark.parametrize("smoke", [True, False])
def test_fairseq_takes_the_options_of_every_model(data_bin, name, smoke):
    from fairseq import options

    budget = Budget("tiny" if smoke else "base", 100, 80, 10, [], smoke)
    arguments = training_options(model(name), budget, seed=3)
    args = options.parse_args_and_arch(options.get_training_parser(), [str(data_bin), *arguments])
    assert args.seed == 3 and args.max_update == 100 and args.lr == [0.003 if smoke else 0.0007]
    assert args.encoder_embed_dim == (512 if not smoke else 32 if "rnn" in name else 64)
    if name in ("conditional", "tree"):
        assert (args.context_top_t_anneal_start, args.context_top_t_anneal_threshold, args.selection_loss) == (
            75,
            0.9,
            1.0,
        )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("concatenation-4to1", {"concatenate_source": 4, "concatenate_target": 1, "segment_embeddings": True}),
        ("tree", {"context_attention": "tree", "tree_order": "keys", "tree_beam": 16}),
        ("memory", {"context_attention": "memory"}),
        ("memory-3", {"context_attention": "memory", "context_sentences": 3, "memory_combination": "parallel"}),
        ("han-target", {"context_attention": "none", "target_context_attention": "han"}),
        ("conditional-target", {"context_top_t": 4, "target_context_attention": "han", "context_sentences": 8}),
        ("previous-flat", {"extra_sources": "previous:1", "attention_combination": "flat"}),
        ("mt-rnn-hierarchical", {"extra_sources": "text:mt", "attention_combination": "hierarchical"}),
        ("han-both", {"context_attention": "han", "target_context_attention": "han"}),
    ],
)
def test_what_a_name_stands_for(data_bin, name, expected):
    from fairseq import options

    arguments = training_options(model(name), BUDGET, seed=1)
    args = options.parse_args_and_arch(options.get_training_parser(), [str(data_bin), *arguments])
    assert {key: getattr(args, key) for key in expected} == expected


TABLE_1 = [  # [L]: combination, shared projections, sentinel
    ("concatenation", "concatenation", False, False),
    ("flat", "flat", False, False),
    ("flat-sentinel", "flat", False, True),
    ("flat-shared", "flat", True, False),
    ("flat-shared-sentinel", "flat", True, True),
    ("hierarchical", "hierarchical", False, False),
    ("hierarchical-sentinel", "hierarchical", False, True),
    ("hierarchical-shared", "hierarchical", True, False),
    ("hierarchical-shared-sentinel", "hierarchical", True, True),
]


@pytest.mark.parametrize(("row", "combination", "shared", "sentinel"), TABLE_1)
@pytest.mark.parametrize("task", ["mt-rnn", "image-rnn"])
def test_rows_of_the_table_of_combinations_have_the_papers_sizes(data_bin, task, row, combination, shared, sentinel):
    from fairseq import options

    recipe = read_dataset_config(named_recipes()["ape" if task == "mt-rnn" else "multi30k"])
    assert f"{task}-{row}" in recipe.published.bleu
    budget = Budget("", 100, 80, 10, recipe.training.options, common=recipe.training.common)
    arguments = training_options(model(f"{task}-{row}"), budget, seed=1)
    args = options.parse_args_and_arch(options.get_training_parser(), [str(data_bin), *arguments])
    expected = {
        "attention_combination": combination, "share_combination_projections": shared, "attention_sentinel": sentinel,
        "encoder_embed_dim": 300, "encoder_hidden_size": 300, "attention_dim": 500, "context_vector_dim": 500,
        "decoder_hidden_size": 300 if task == "mt-rnn" else 500, "attend_with": "updated",
        "concatenated_contexts": "whole", "lr": [1e-4], "criterion": "cross_entropy", "lr_scheduler": "fixed",
        "adam_betas": (0.9, 0.999), "dropout": 0,
    }  # fmt: skip
    expected["decoder_cell"] = (
        "conditional-gru" if task == "image-rnn" and row != "concatenation" else "gru-reset-before"
    )
    # Switches that are off are not there.
    assert {key: getattr(args, key, False) for key in expected} == expected


def commands(monkeypatch):
    """Returns where commands are put instead of being run."""
    found = []
    for module in (training, machines):
        monkeypatch.setattr(module, "run", lambda command, *rest, **more: found.append(command))
    return found


@pytest.mark.parametrize(
    ("machine", "present", "absent"),
    [
        (Machine(1, cpu=True), ["--cpu"], ["docnmt_fairseq.torchrun", "--distributed-backend"]),
        (Machine(4), ["docnmt_fairseq.torchrun", "--nproc_per_node", "4"], ["--cpu"]),
        (Machine(2, cpu=True), ["docnmt_fairseq.torchrun", "--distributed-backend", "gloo", "--cpu"], []),
    ],
)
def test_processes_share_a_batch(tmp_path, monkeypatch, machine, present, absent):
    found = commands(monkeypatch)
    train(tmp_path, tmp_path, model("concatenation"), BUDGET, 1, machine, "data")
    (command,) = found
    assert set(present) <= set(command) and not set(absent) & set(command)
    assert command[command.index("--max-tokens") + 1] == str(2 * 80 // machine.processes)  # two sentences a sample


def test_all_data_bins_of_a_recipe_are_trained_on(tmp_path, monkeypatch):
    fixtures.write_raw(read_dataset_config(SMALL), tmp_path / "raw")
    text = SMALL.read_text(encoding="utf-8").replace("prepare: {", "prepare: {shards: 3, ")
    (tmp_path / "sharded.yaml").write_text(text, encoding="utf-8")
    seen, signatures = [], []

    def trained(data, folder, model, budget, seed, machine, signature, start):
        seen.append(str(data).split(":"))
        signatures.append(signature)

    monkeypatch.setattr("docnmt_fairseq.recipes.run.train", trained)
    for path in (tmp_path / "sharded.yaml", SMALL):
        options = Options(tmp_path / path.stem, tmp_path / "raw", ("sentence",), until="train", smoke=True)
        Recipe(read_dataset_config(path), options).run()
    bins = [[tmp_path / "sharded" / "data" / name for name in ("data-bin", "data-bin-1", "data-bin-2")]]
    assert seen == [list(map(str, one)) for one in (*bins, [tmp_path / SMALL.stem / "data" / "data-bin"])]
    assert all((one / "train.en-de.en.bin").is_file() for one in bins[0])
    assert len(json.loads(signatures[0])) == 3 and len(json.loads(signatures[1])) == 2


def test_a_training_that_ended_early_is_not_gone_on_with(tmp_path, monkeypatch, caplog):
    found = commands(monkeypatch)
    monkeypatch.setattr(training, "updates_of", lambda checkpoint: len(found) and 7)
    for _ in range(2):
        train(tmp_path, tmp_path, model("tree"), BUDGET, 1, Machine(cpu=True), "data")
    assert len(found) == 1 and "the training ended after 7 updates" in caplog.text
    assert json.loads((tmp_path / "ended.json").read_text()) == {"updates": 7}


def test_a_package_of_ones_own_is_imported_by_every_command(tmp_path, monkeypatch):
    found = commands(monkeypatch)
    mine = Machine(2, cpu=True, user_dir=tmp_path / "mine")
    train(tmp_path, tmp_path, model("tree"), BUDGET, 1, mine, "data")
    training.translate(tmp_path, "test", tmp_path, tmp_path / "log", model("tree"), 77, None, mine)
    assert [command[command.index("--user-dir") + 1] for command in found] == [str(tmp_path / "mine")] * 2
    assert "--distributed-backend" not in found[1]  # one process translates


def test_all_models_translate_by_the_same_search(tmp_path, monkeypatch):
    found = commands(monkeypatch)
    for name, joins in (("tree", "sentencepiece"), ("concatenation", "sentencepiece")):
        training.translate(tmp_path, "test1", tmp_path, tmp_path / "log", model(name), 77, joins, HERE)
    for command in map(" ".join, found):
        assert "--gen-subset test1 --max-tokens 77" in command and "--remove-bpe sentencepiece" in command
        assert "--beam 4 --lenpen 0.6 --max-len-a 1.5 --max-len-b 50" in command
    training.translate(tmp_path, "test", tmp_path, tmp_path / "log", model("tree"), 77, "@@ ", HERE)
    assert found[-1][found[-1].index("--remove-bpe") + 1] == "@@ "
    training.translate(tmp_path, "test", tmp_path, tmp_path / "log", model("tree"), 77, None, HERE)
    assert "--remove-bpe" not in found[-1] and "--max-document-sentences" not in found[-1]
    view = DocumentView(max_document_sentences=0)
    training.translate(tmp_path, "test", tmp_path, tmp_path / "log", model("tree"), 77, None, HERE, view)
    assert found[-1][found[-1].index("--max-document-sentences") + 1] == "0"


def test_another_model_in_the_folder_is_refused(tmp_path, monkeypatch):
    found = commands(monkeypatch)
    train(tmp_path, tmp_path, model("tree"), BUDGET, 1, Machine(cpu=True), "data")
    train(tmp_path, tmp_path, model("tree"), BUDGET, 1, Machine(4), "data")
    for other in (
        (model("tree"), BUDGET, 2, Machine(cpu=True), "data"),
        (model("conditional"), BUDGET, 1, Machine(cpu=True), "data"),
    ):
        with pytest.raises(InputError, match="holds a model of other options"):
            train(tmp_path, tmp_path, *other)
    with pytest.raises(InputError, match="holds a model of other data"):
        train(tmp_path, tmp_path, model("tree"), BUDGET, 1, Machine(cpu=True), "other")
    assert len(found) == 2 and json.loads((tmp_path / "training.json").read_text())["data"] == "data"


def test_a_finished_training_is_left_alone(trained, tmp_path, monkeypatch, caplog):
    logging.disable(logging.NOTSET)
    found = commands(monkeypatch)
    shutil.copytree(trained, tmp_path / "m")
    budget = Budget("tiny", 4, 80, 10, [], smoke=True)
    train(tmp_path, tmp_path / "m", model("sentence"), budget, 1, Machine(cpu=True), "data")
    assert not found
    budget = Budget("tiny", 5, 80, 10, [], smoke=True)
    (tmp_path / "m" / "training.json").unlink()
    train(tmp_path, tmp_path / "m", model("sentence"), budget, 1, Machine(cpu=True), "data")
    assert len(found) == 1 and "the training ended after 4 updates" in caplog.text


def test_gpus_have_fused_kernels_unless_a_training_began_without(data_bin, trained, tmp_path, monkeypatch):
    fused = ["--optimizer", "fused_adamw", "--adam-betas", "(0.9, 0.98)", "--max-update", "4"]
    toy.train(data_bin, tmp_path / "fused", *fused)
    shutil.copytree(trained, tmp_path / "adam")
    found = commands(monkeypatch)
    for folder, cpu, expected in (
        ("new", False, "fused_adamw"),
        ("new", True, "adam"),
        ("adam", False, "adam"),
        ("fused", True, "fused_adamw"),
    ):
        budget = Budget("tiny", 8, 80, 10, [], smoke=True)
        train(tmp_path, tmp_path / folder, model("sentence"), budget, 1, Machine(cpu=cpu), "data")
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        (tmp_path / folder / training.ENDED).unlink(missing_ok=True)
        assert machines.last_given("--optimizer", found[-1]) == expected
    other = Budget("tiny", 8, 80, 10, ["--optimizer", "adafactor"], smoke=True)
    train(tmp_path, tmp_path / "new", model("sentence"), other, 1, Machine(), "data")
    assert machines.last_given("--optimizer", found[-1]) == "adafactor"


def test_half_a_checkpoint_is_mended_from_the_newest_whole_one(trained, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(trained, folder)
    last, older = folder / training.LAST, sorted(folder.glob("checkpoint_*_*.pt"))
    assert [updates_of(path) for path in (last, *older)] == [4, 1, 2, 3]
    whole = last.read_bytes()
    restore_last_checkpoint(folder)
    assert last.read_bytes() == whole
    for newest, updates in (("checkpoint1.pt", 4), ("checkpoint_1_3.pt", 3)):  # the end of an epoch, then inside it
        last.write_bytes(whole[: len(whole) // 2])
        restore_last_checkpoint(folder)
        assert updates_of(last) == updates and last.read_bytes() == (folder / newest).read_bytes()
        (folder / newest).unlink()
    for path in folder.glob("*.pt"):
        path.write_bytes(path.read_bytes()[:99])
    restore_last_checkpoint(folder)
    assert not last.exists() and updates_of(last) == 0
