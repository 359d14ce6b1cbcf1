"""``document_rnn`` through fairseq's own commands."""

import pytest
import torch

from tests.support import toy


def train(data_bin, folder, arch, *options):
    return toy.train(data_bin, folder, *options, arch=arch, tiny=["--dropout", "0.1"])


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
