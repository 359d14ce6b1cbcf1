"""``document_rnn`` through fairseq's own commands."""

import pytest
import torch

from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.documents import IDS

SEARCH = ["--beam", "3", "--max-len-b", "10"]


def train(data_bin, folder, arch, *options):
    return toy.train(data_bin, folder, *options, arch=arch, tiny=["--dropout", "0.1"])


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    """Returns a model that ends sentences at different steps."""
    return train(data_bin, tmp_path_factory.mktemp("rnn"), "document_rnn_conditional_gru_tiny", "--max-update", "60")


@pytest.mark.parametrize("search", ["--prefix-size 1 --beam 1", "--sampling --beam 2 --nbest 2"])
def test_search_options_work(data_bin, checkpoint, search):
    text = toy.generate_text(data_bin, checkpoint, "--max-len-b", "10", *search.split())
    assert {int(line[2:].split("\t")[0]) for line in text.splitlines() if line.startswith("H-")} == set(IDS)


def test_alignments_are_refused(data_bin, checkpoint):
    with pytest.raises(InputError):
        toy.generate_text(data_bin, checkpoint, "--print-alignment", "hard")


def test_scores_of_references(data_bin, checkpoint):
    translations = toy.generate(data_bin, checkpoint, *SEARCH).hypotheses
    assert len({len(tokens.split()) for tokens, _ in translations.values()}) > 2
    references = toy.generate(data_bin, checkpoint, "--score-reference").hypotheses
    same = [number for number in IDS if translations[number][0] == references[number][0]]
    assert same
    for number in same:
        assert translations[number][1] == pytest.approx(references[number][1], abs=2e-3)


@pytest.mark.slow
def test_resumed_training_equals_uninterrupted(data_bin, tmp_path):
    arch, options = "document_rnn_ca_rnn_tiny", ["--save-interval-updates", "3"]
    whole = train(data_bin, tmp_path / "whole", arch, *options, "--max-update", "6")
    train(data_bin, tmp_path / "parts", arch, *options, "--max-update", "3")
    parts = train(data_bin, tmp_path / "parts", arch, *options, "--max-update", "6")
    toy.assert_same_state(whole, parts)


def test_alternating_updates(data_bin, tmp_path):
    options = ["--combination-attention", "ca-att", "--em-steps", "2", "--save-interval-updates", "2"]
    at_two = toy.state(train(data_bin, tmp_path / "two", "document_rnn_tiny", *options, "--max-update", "2"))
    at_four = toy.state(train(data_bin, tmp_path / "four", "document_rnn_tiny", *options, "--max-update", "4"))
    fresh = toy.build(data_bin, *options, arch="document_rnn_tiny", tiny=["--dropout", "0.1"])[2].state_dict()
    moved = {
        key: (not torch.equal(at_two[key], fresh[key]), not torch.equal(at_four[key], at_two[key])) for key in fresh
    }
    of_chi = {key: both for key, both in moved.items() if key.startswith("decoder.attention.score.")}
    of_vectors = {key: both for key, both in moved.items() if key.startswith("decoder.attention.state_sum.free.")}
    assert set(of_chi.values()) == {(True, False)} and set(of_vectors.values()) == {(False, True)}
    assert moved["decoder.bridge.weight"] == (True, True)
