"""fairseq's commands, those that load a model above all, say in one line what is wrong with their options."""

import shutil
import sys

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, FairseqLanguageModel

from docnmt_fairseq import compat  # noqa: F401  (changes fairseq)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.tasks.refused_options import problems_of_language_model
from tests.support import toy

TWENTY = "1" * 20  # digits
SUBWORDS = "fairseq knows no such subwords; give e.g. sentencepiece or '@@ ', or leave it out"


@pytest.mark.parametrize("command", ["generate", "interactive"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--path: not given; name the checkpoint"),
        (["--path", "{0}:nowhere.pt"], "--path nowhere.pt: no such file; name the checkpoint"),
        (["--path", "{0}", "--model-overrides", "dropout=0"], "--model-overrides dropout=0: is no dictionary"),
        (["--path", "{0}", "--model-overrides", "[1]"], r"--model-overrides \[1\]: is no dictionary"),
        (["--path", "{0}", "--beam", "0"], "--beam 0: must be at least 1"),
        (["--path", "{0}", "--num-workers", "-1"], "--num-workers -1: must be at least 0"),
        (["--path", "{0}", "--max-tokens", "0"], "--max-tokens 0: must be at least 1"),
        (["--path", "{0}", "--lm-path", "x.pt"], "--lm-path x.pt: no such file"),
        (
            ["--path", "{0}", "--num-shards", "2"],
            "--num-shards 2: fairseq does not read it here, every shard would hav",
        ),
        (["--path", "."], r"--path \.: is a folder; name a checkpoint in it"),
        (["--path", "{0}", "--bpe", "subword_nmt", "--bpe-codes", "x"], "--bpe-codes x: no such file"),
        (
            ["--path", "{0}", "--bpe", "sentencepiece", "--sentencepiece-model", "{0}"],
            r"--sentencepiece-model .*model\.pt: no model of SentencePiece's$",
        ),
        (["--path", "{0}", "--max-tokens", TWENTY], f"--max-tokens {TWENTY}: is too large, {2**63 - 1} at most$"),
        (["--path", "{0}", "--batch-size", TWENTY], f"--batch-size {TWENTY}: is too large"),
        (["--path", "{0}", "--seed", "-1"], f"--seed -1: must be from 0 to {2**32 - 1}"),
        (["--path", "{0}", "--remove-bpe", "nosuch"], f"--post-process nosuch: {SUBWORDS}"),
        (["--path", "{0}", "--log-file", "no/such/x"], "--log-file no/such/x: its folder is not there; make it, or"),
        (["--path", "{0}", "--results-path", "{0}"], "--results-path .*model.pt: .*model.pt is a file; give a folder"),
        (["--path", "{0}", "--results-path", "{0}/a/b"], "--results-path .*a/b: .*model.pt is a file; give a folder"),
    ],
)
@pytest.mark.sampled(1)
def test_options_that_nothing_can_be_loaded_with(tmp_path, monkeypatch, command, given, message):
    module = pytest.importorskip(f"fairseq_cli.{command}")
    (tmp_path / "model.pt").touch()
    options = [word.format(tmp_path / "model.pt") for word in given]
    monkeypatch.setattr(sys, "argv", [command, str(tmp_path), *options])
    with pytest.raises(InputError, match=message):
        module.cli_main()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--input", "nowhere.txt"], "--input nowhere.txt: no such file"),
        (["--input", "."], "--input .: is a folder; name a file"),
        (["--score-reference"], "--score-reference: fairseq-interactive does not read it; use fairseq-generate"),
        (["--prefix-size", "2"], "--prefix-size: fairseq-interactive does not read it; use fairseq-generate"),
    ],
)
@pytest.mark.sampled(1)
def test_what_is_typed_has_no_such_options(tmp_path, monkeypatch, given, message):
    module = pytest.importorskip("fairseq_cli.interactive")
    (tmp_path / "model.pt").touch()
    monkeypatch.setattr(sys, "argv", ["interactive", str(tmp_path), "--path", str(tmp_path / "model.pt"), *given])
    with pytest.raises(InputError, match=message):
        module.cli_main()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--max-tokens", "60"], "--task: not given; name the task of the model's training, e.g. --task document_tr"),
        (["--task", "document_translation"], "--max-tokens: not given; say how large batches are, with that or --batc"),
        (["--task", "document_translation", "--path", "a:a", "--max-tokens", "60"], "--path a:a: no such file"),
    ],
)
def test_validation_that_lacks_an_option(tmp_path, monkeypatch, given, message):
    from fairseq_cli import validate

    (tmp_path / "model.pt").touch()
    fixed = ["validate", str(tmp_path), "--user-dir", toy.PLUGIN, "--path", str(tmp_path / "model.pt")]
    monkeypatch.setattr(sys, "argv", [*fixed, *given])
    with pytest.raises(InputError, match=message):
        validate.cli_main()


@pytest.fixture(scope="module")
def trained(data_bin, tmp_path_factory):
    return toy.train(data_bin, tmp_path_factory.mktemp("trained"), "--max-update", "1")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{0}/checkpoint_last.pt", "^--lm-path: is no language model, but a DocumentTransformer; give one"),
        (
            "{1}/dict.src.txt",
            "^--lm-path .*dict.src.txt: cannot be loaded: .*; give a language model of fairseq's, whose ",
        ),
    ],
)
def test_what_is_no_language_model(data_bin, trained, monkeypatch, path, message):
    from fairseq_cli import generate

    given = ["--max-tokens", "60", "--lm-path", path.format(trained.parent, data_bin)]
    monkeypatch.setattr(sys, "argv", ["generate", *toy.translating(data_bin, trained, "document_translation"), *given])
    with pytest.raises(InputError, match=message):
        generate.cli_main()


def test_models_of_another_task_or_data_bin_are_told(data_bin, trained, tmp_path):
    with pytest.raises(InputError, match=r"^--task concatenated_tr\w+: .*t\.pt was trained with document_tr.*\(size"):
        toy.generate(data_bin, shutil.copy(trained, tmp_path), task="concatenated_translation")
    other = shutil.copytree(data_bin, tmp_path / "bin")
    for side in ("src", "tgt"):
        with open(other / f"dict.{side}.txt", "a") as stream:
            stream.write("more 1\n")
    state = torch.load(trained, weights_only=False)
    torch.save({**state, "task_state": {}}, tmp_path / "old.pt")  # of before checkpoints knew their dictionaries
    with pytest.raises(InputError, match=r"old\.pt: does not fit the dictionaries of the data-bin; .* \(size mismatch"):
        toy.generate(other, tmp_path / "old.pt")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (["--nbest", "3", "--beam", "2"], "^--nbest 3: at most 2, which is --beam$"),
        (["--eos-token", "c"], "^--eos-token c: not read by these tasks"),
    ],
)
@pytest.mark.sampled(1)
def test_what_a_search_would_not_do_is_refused(data_bin, trained, search, message):
    with pytest.raises(InputError, match=message):
        toy.generate(data_bin, trained, *search)


def test_these_are_no_language_models(data_bin, trained, monkeypatch):
    from fairseq_cli import eval_lm

    options = ["--user-dir", toy.PLUGIN, "--task", "document_translation", "--max-tokens", "60"]
    monkeypatch.setattr(sys, "argv", ["eval_lm", str(data_bin), "--path", str(trained), *options])
    with pytest.raises(InputError, match="fairseq-eval-lm is of language models; fairseq-generate --score-reference"):
        eval_lm.cli_main()


def test_a_language_model_has_the_symbols_of_the_target():
    one, other = Dictionary(), Dictionary()
    other.add_symbol("word")
    model = FairseqLanguageModel(FairseqDecoder(one))
    assert not list(problems_of_language_model(model, Dictionary())) and not list(
        problems_of_language_model(None, other)
    )
    (told,) = problems_of_language_model(model, other)
    assert told.startswith(
        "--lm-path: the language model has other symbols than the target, or in another order; train"
    )


def test_subwords_of_bleu_in_validation_are_known_before_training(data_bin, tmp_path):
    with pytest.raises(InputError, match=f"^--eval-bleu-remove-bpe nosuch: {SUBWORDS}"):
        toy.train(data_bin, tmp_path, "--max-update", "1", "--eval-bleu", "--eval-bleu-remove-bpe", "nosuch")
