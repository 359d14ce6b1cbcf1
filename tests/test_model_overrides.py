"""What --model-overrides cannot change of a checkpoint is refused, and what changes nothing is told."""

import logging
import os
import sys

import pytest
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from docnmt_fairseq import compat  # noqa: F401  (changes fairseq)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.model_overrides import checked, parse_overrides
from tests.support import toy


@pytest.fixture(scope="module")
def trained(data_bin, tmp_path_factory):
    return toy.train(data_bin, tmp_path_factory.mktemp("trained"), "--max-update", "1")


@pytest.fixture
def run(data_bin, trained, monkeypatch):
    """Runs a command that loads models: unless others are named, the trained one."""

    def run(name, *options, path=trained):
        module = pytest.importorskip(f"fairseq_cli.{name}")
        fixed = toy.translating(data_bin, path, "document_translation")
        monkeypatch.setattr(sys, "argv", [name, *fixed, "--max-tokens", "60", *options])
        module.cli_main()

    return run


@pytest.fixture
def warnings(caplog):
    logging.disable(logging.NOTSET)
    return lambda: [one.getMessage() for one in caplog.records if one.getMessage().startswith("--model-overrides")]


@pytest.mark.parametrize(
    ("expression", "options"),
    [(None, {}), ("", {}), ("{'a': [1], 2: {}}", {"a": [1], "2": {}})]
    + [(wrong, None) for wrong in ("[1]", "{'a'", "a", "{[]: 1}", "\0", "(" * 100_000, "-" * 100_000 + "1")],
    ids=lambda value: str(value)[:20],
)
def test_what_is_a_dictionary_of_options(expression, options):
    assert parse_overrides(expression) == options


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"model": {1: 2}}, "model.pt has no option 1;"),
        ({"task": {1: 2}}, "model.pt has no option 1;"),
        ({"model": 3}, r"3 is no dictionary of its options by name, such as {'model': {'_name': 'm'}}$"),
        ({"model": "x"}, r"'x' is no dictionary of its options by name, such as {'model': {'_name': 'x'}}$"),
    ],
    ids=str,
)
def test_what_is_no_option_is_refused_whatever_it_is(asked, told):
    model = {"_name": "m", "dropout": 0.1}
    cfg = OmegaConf.create({"task": {"_name": "document_translation"}, "model": model, "bmuf": None})
    with pytest.raises(InputError, match=f"^--model-overrides.*: {told}"), checked(["model.pt"], asked):
        checkpoint_utils.overwrite_args_by_name(cfg, asked)


@pytest.mark.parametrize("command", ["generate", "validate"])
@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ("{'encoder_embed_dim': 'x'}", "Value 'x' of type 'str' could not be converted to Integer .*encoder_embed_dim"),
        ("{'encoder_embed_dim': 16}", "size mismatch for encoder.embed_tokens.weight: copying a param"),
        ("{'encoder_layers': 3}", r"Missing key\(s\) in state_dict: \"encoder.layers.2"),
    ],
)
def test_what_a_model_cannot_be_loaded_with(run, trained, command, overrides, reason):
    told = rf"^--model-overrides {overrides}: {trained} cannot be loaded with that: .*{reason}.*; leave out what param"
    with pytest.raises(InputError, match=told):
        run(command, "--model-overrides", overrides)


@pytest.mark.parametrize("command", ["generate", "validate"])
@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ("{'context': 'nosuch'}", r"context: Invalid value 'nosuch', expected one of \[document, none\]"),
        ("{'model': {'context': 'nosuch'}}", "context: Invalid value 'nosuch'"),
        ("{'max_document_sentences': 'x'}", "max_document_sentences: Value 'x' of type 'str' could not be converted"),
        ("{'max_document_sentences': '3'}", "max_document_sentences: '3' is not of the option's type; give 3"),
        ("{'max_document_tokens': -3}", ": --max-document-tokens -3: must not be negative"),
    ],
)
@pytest.mark.sampled(1)
def test_options_of_the_task_have_no_other_values(run, command, overrides, reason):
    with pytest.raises(InputError, match=f"^--model-overrides:? ?{reason}"):
        run(command, "--model-overrides", overrides)


def test_context_may_be_hidden_so(run, warnings):
    run("generate", "--quiet", "--model-overrides", "{'context': 'none', 'max_document_sentences': 3}")
    assert not warnings()


@pytest.mark.parametrize(
    "overrides", ["{'dropuot': 0.1}", "{'model': {'dropuot': 0.1}}", "{'dropuot': 0, 'dropout': 0}"]
)
@pytest.mark.sampled(1)
def test_an_option_that_nothing_has(run, trained, overrides):
    with pytest.raises(InputError, match=f"^--model-overrides: {trained} has no option dropuot; name those of the mo"):
        run("generate", "--quiet", "--model-overrides", overrides)


def test_an_option_that_no_model_reads_is_told(run, warnings):
    run("generate", "--quiet", "--model-overrides", "{'upsample_primary': 2, 'dropout': 0.1}")
    assert warnings() == [
        "--model-overrides: no model reads upsample_primary, so it changes nothing; give --upsample-primary"
    ]


def test_an_option_that_one_of_several_models_has(run, data_bin, trained, tmp_path, warnings):
    """Members of an ensemble may have different architectures."""
    other = toy.train(data_bin, tmp_path, "--max-update", "1", arch="document_rnn", tiny=toy.TINY_RNN)
    both = os.pathsep.join([str(trained), str(other)])
    run("generate", "--quiet", "--model-overrides", "{'context_top_t': 3}", path=both)
    assert not warnings()


def test_validation_may_have_another_criterion(run, warnings):
    """By its options; its name alone changes nothing, and may be the checkpoint's own."""
    name = "document_label_smoothed_cross_entropy"
    for criterion in ({"_name": name, "report_cxmi": True}, "cross_entropy"):
        run("validate", "--model-overrides", str({"criterion": criterion}))
    assert not warnings()
    told = f"^--model-overrides criterion: '{name}' is no dictionary of its .* {{'criterion': {{'_name': '{name}'}}}}$"
    with pytest.raises(InputError, match=told):  # fairseq would leave it out
        run("validate", "--model-overrides", str({"criterion": name}))
