"""Feed-forward variants ``ca-nn`` and ``ca-res`` in the whole model, and alternating training of χ."""

import pytest
import torch

from tests.support import toy
from tests.support.decoding import logits, stir

VARIANTS = {
    "ca-nn": ["--feed-forward", "ca-nn"],
    "ca-res": ["--feed-forward", "ca-res"],
    "ca-res of three": ["--feed-forward", "ca-res", "--ca-res-block", "3,2,1,0"],
    "ca-res always on": ["--feed-forward", "ca-res", "--ca-res-block", "2,1,-,1"],
    "each side its own": ["--encoder-feed-forward", "ca-nn", "--decoder-feed-forward", "ca-res"],
}
NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
CONDITIONAL = ["--context-attention", "conditional", "--decoder-context-attention", "sentence-encodings"]


@pytest.mark.parametrize("norm", [[], NORM], ids=["post-norm", "pre-norm"])
def test_ca_nn_with_chi_one_equals_stock_transformer(data_bin, norm):
    _, _, stock = toy.build(data_bin, *norm, task="translation", arch="transformer")
    _, task, model = toy.build(data_bin, *norm, *VARIANTS["ca-nn"], "--chi-bias", "60")
    model.load_state_dict(stir(stock).state_dict(), strict=True)
    sample = toy.batch_of(task)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    torch.testing.assert_close(logits(model, sample)[real], stock(**net_input)[0][real], atol=1e-5, rtol=1e-5)


def test_frozen_model_trains_chi_and_default(data_bin):
    _, _, model = toy.build(data_bin, *VARIANTS["ca-nn"], "--freeze-sentence-model", "--em-steps", "2")
    trained = {name.split(".", 4)[-1] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {"score.weight", "score.bias", "default"}


@pytest.mark.slow
def test_resumed_alternating_training(data_bin, tmp_path):
    options = [*VARIANTS["ca-nn"], "--em-steps", "3", "--dropout", "0.1", "--save-interval-updates", "4"]
    at_three = toy.state(toy.train(data_bin, tmp_path / "half", *options, "--max-update", "3"))
    toy.train(data_bin, tmp_path / "parts", *options, "--max-update", "4")
    parts = toy.state(toy.train(data_bin, tmp_path / "parts", *options, "--max-update", "6"))
    whole = toy.state(toy.train(data_bin, tmp_path / "whole", *options, "--max-update", "6"))
    fresh = toy.build(data_bin, *VARIANTS["ca-nn"], "--dropout", "0.1")[2].state_dict()
    for key in whole:
        torch.testing.assert_close(parts[key], whole[key], atol=1e-6, rtol=1e-5, msg=key)
        if ".fc1.default" in key or ".fc1.v." in key:  # rested in updates 0, 1 and 2, trained in 3, 4 and 5
            assert torch.equal(at_three[key], fresh[key]) and not torch.equal(whole[key], at_three[key]), key
        if ".fc1.score" in key:  # the other way round; Adam's momentum does not move it on
            assert not torch.equal(at_three[key], fresh[key]) and torch.equal(whole[key], at_three[key]), key


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["ca-res always on", "each side its own"])
def test_a_model_trains_with_dropped_layers_validates_and_translates(data_bin, tmp_path, variant):
    options = [*VARIANTS[variant], *CONDITIONAL, "--encoder-layerdrop", "0.3", "--activation-dropout", "0.1"]
    trained = toy.train(data_bin, tmp_path, *options, "--max-update", "3", "--decoder-layerdrop", "0.3")
    assert len(toy.generate(data_bin, trained, "--beam", "2", "--max-len-b", "10").hypotheses) == 11
    criterion = {"criterion": {"_name": "document_label_smoothed_cross_entropy"}}
    found = toy.validation(data_bin, trained, "--model-overrides", str(criterion))
    chi = [value for name, value in found.items() if name.startswith("chi_")]
    assert bool(chi) == (variant != "ca-res always on") and all(0 < value < 1 for value in chi)
