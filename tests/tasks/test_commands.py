"""fairseq's commands, end to end on a toy data-bin."""

import pytest
import torch

from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.documents import IDS, write_lines

CONDITIONAL = ["--context-attention", "conditional", "--context-top-t", "2", "--sentence-positions", "learned"]


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    """Returns a conditional model after a few updates."""
    return toy.train(data_bin, tmp_path_factory.mktemp("conditional"), *CONDITIONAL, "--max-update", "12")


OPTIONS = [
    "--checkpoint-activations --attention-dropout 0.2 --activation-dropout 0.1 --context-always-keep-own",
    "--encoder-layerdrop 0.5 --decoder-layerdrop 0.5 --layernorm-embedding --decoder-embed-dim 12 --no-scale-embedding",
    "--word-positions learned --word-positions-from document --decoder-learned-pos",
    "--context-dropout 0.5 --max-document-sentences 2 --context-overlap 1 --num-workers 1",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_train(data_bin, tmp_path, options):
    toy.train(data_bin, tmp_path, *CONDITIONAL, "--max-update", "3", *options.split())


SEARCH = [
    "--sampling --sampling-topk 3 --beam 2",
    "--diversity-rate 0.5 --beam 2 --prefix-size 1",
    "--nbest 2 --beam 2 --lenpen 0.6 --no-repeat-ngram-size 2",
    "--score-reference",
    "--print-alignment hard --beam 2",
]


@pytest.mark.parametrize("search", SEARCH)
def test_search_options_work(data_bin, checkpoint, search):
    text = toy.generate_text(data_bin, checkpoint, "--max-len-b", "10", *search.split())
    assert {int(line[2:].split("\t")[0]) for line in text.splitlines() if line.startswith("H-")} == set(IDS)


def test_bleu_and_the_schedule_are_logged(data_bin, tmp_path, caplog):
    caplog.set_level("INFO")
    trained = toy.train(
        data_bin, tmp_path, *CONDITIONAL, "--max-update", "12", "--eval-bleu", "--log-interval", "1",
        "--context-top-t-anneal-start", "1", "--context-top-t-anneal-updates", "2", "--valid-subset", "train",
        "--eval-bleu-args", '{"max_len_b": 10, "min_len": 5}',
    )  # fmt: skip
    assert "kept_sentences" in caplog.text
    toy.assert_bleu_is_of_translations(caplog.text, data_bin, trained, "--max-len-b", "10", "--min-len", "5")


def typed(data_bin, checkpoint, tmp_path, lines, *options):
    write_lines(tmp_path / "input", lines)
    return toy.interactive(data_bin, checkpoint, tmp_path / "input", "--max-len-b", "10", *options).hypotheses


@pytest.mark.parametrize(
    ("lines", "ids"),
    [(["", "a"], [1]), (["<p>", "a", "<p>", "<p>", "b"], [1, 4]), (["", ""], []), (["<p>"], []), (["  ", "a b"], [1])],
)
def test_interactive_accepts_any_lines(data_bin, checkpoint, tmp_path, lines, ids):
    assert sorted(typed(data_bin, checkpoint, tmp_path, lines)) == ids
    assert sorted(typed(data_bin, checkpoint, tmp_path, lines, "--buffer-size", "10")) == ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--constraints", "--constraints"),
        ("--gen-subset tset", "no tset.src-tgt.src.idx; splits with src: test, train, valid"),
        ("--max-source-positions 1 --skip-invalid-size-inputs-valid-test", "every sentence is too long"),
    ],
)
def test_options_of_generate_are_refused(data_bin, checkpoint, options, message):
    with pytest.raises(InputError, match=message):
        toy.generate(data_bin, checkpoint, *options.split())


@pytest.mark.parametrize("arch", ["document_transformer_han_tiny", "document_rnn_tiny"])
def test_tasks_without_documents_are_refused(data_bin, arch):
    with pytest.raises(InputError, match=f"--task translation: --arch {arch} needs documents"):
        toy.build(data_bin, task="translation", arch=arch, tiny=[])


def test_finetuning_of_a_fairseq_checkpoint(data_bin, tmp_path):
    sentence = toy.train(
        data_bin, tmp_path / "sentence", "--max-update", "3", task="translation", arch="transformer"
    )  # fmt: skip
    options = [*CONDITIONAL, "--finetune-from-model", str(sentence), "--max-update", "1", "--lr", "1e-12"]
    document = toy.train(data_bin, tmp_path / "document", *options, "--freeze-sentence-model")
    before = toy.state(sentence)
    after = toy.state(document)
    shared = [key for key in before if key in after]
    assert len(shared) > 40
    for key in shared:
        torch.testing.assert_close(after[key], before[key], atol=1e-8, rtol=1e-6)
    search = ["--max-len-b", "10", "--required-batch-size-multiple", "1"]
    stock = toy.generate(data_bin, sentence, *search, task="translation").hypotheses
    ours = toy.generate(data_bin, document, *search).hypotheses
    assert {number: stock[number][0] for number in IDS} == {number: ours[number][0] for number in IDS}


@pytest.mark.slow
def test_fairseq_models(data_bin, tmp_path):
    stock = toy.train(data_bin, tmp_path, "--max-update", "3", "--eval-bleu", arch="transformer")
    ours = toy.generate(data_bin, stock, "--max-len-b", "10")
    search = ["--max-len-b", "10", "--required-batch-size-multiple", "1"]
    theirs = toy.generate(data_bin, stock, *search, task="translation").hypotheses
    assert ours.hypotheses == {number: theirs[number] for number in IDS}


def test_an_ensemble_with_and_without_context_is_refused(data_bin, checkpoint, tmp_path):
    stock = toy.train(data_bin, tmp_path, "--max-update", "1", arch="transformer")
    with pytest.raises(InputError):
        toy.generate(data_bin, f"{checkpoint}:{stock}")


def test_resumed_training_equals_uninterrupted(data_bin, tmp_path):
    options = [*CONDITIONAL, "--dropout", "0.1", "--context-dropout", "0.3", "--save-interval-updates", "5"]
    options += ["--context-top-t-anneal-start", "2", "--context-top-t-anneal-updates", "10"]
    whole = toy.train(data_bin, tmp_path / "whole", *options, "--max-update", "10")
    toy.train(data_bin, tmp_path / "parts", *options, "--max-update", "5")
    parts = toy.train(data_bin, tmp_path / "parts", *options, "--max-update", "10")
    state = toy.assert_same_state(whole, parts)
    assert float(state["encoder.layers.1.context.schedule.progress"]) == pytest.approx(0.7)  # of update 9, the last


def test_the_view_is_restored(data_bin, tmp_path, caplog):
    view = ["--max-document-sentences", "2", "--context-overlap", "1"]
    trained = toy.train(data_bin, tmp_path, *CONDITIONAL, "--max-update", "2", *view)
    caplog.set_level("INFO")
    plain = toy.generate(data_bin, trained).hypotheses
    assert "11 sentences; longest document 6 sentences; 6 chunks" in caplog.text
    assert plain == toy.generate(data_bin, trained, *view).hypotheses
    toy.generate(data_bin, trained, "--max-document-sentences", "0")
    assert "--max-document-sentences 0: the model was trained with 2" in caplog.text
