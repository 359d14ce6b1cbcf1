"""fairseq's --store-ema with models whose state is more than parameters."""

import pytest
import torch
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA

from tests.support import toy

NARROWING = ["--context-attention", "conditional", "--context-top-t", "1", "--context-top-t-anneal-start", "2"]


@pytest.mark.parametrize(
    ("options", "progress"),
    [([], 1), (["--context-top-t-anneal-updates", "7", "--ema-fp32"], 1 / 7)],
    ids=["", "float32"],
)
def test_schedules_are_taken_over_and_parameters_averaged(data_bin, tmp_path, options, progress):
    averaging = ("--store-ema", "--ema-decay", "0.9", "--max-update", "4")
    path = toy.train(data_bin, tmp_path, *NARROWING, *options, *averaging)
    checkpoint = torch.load(path, weights_only=False)
    model, averaged = checkpoint["model"], checkpoint["extra_state"]["ema"]
    schedule, table = "encoder.layers.1.context.schedule.", "encoder.embed_tokens.weight"
    assert float(model[schedule + "progress"]) == progress
    assert all(torch.equal(averaged[name], value) for name, value in model.items() if name.startswith(schedule))
    assert not torch.equal(averaged[table], model[table])


@pytest.mark.parametrize("kind", ["", "float32", "of bfloat16 in float32"])
def test_a_parameter_of_several_names_is_averaged_once(data_bin, kind):
    _, _, model = toy.build(data_bin, "--share-all-embeddings")
    model.to(torch.bfloat16 if "bfloat16" in kind else torch.float32)
    average = EMA(model, EMAConfig(store_ema=True, ema_decay=0.5, ema_fp32="float32" in kind))
    names = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"]
    tied, other = model.encoder.embed_tokens.weight, model.encoder.layers[0].final_layer_norm.weight
    with torch.no_grad():
        for parameter in (tied, other):
            parameter.fill_(0)
        average.restore(model.state_dict(), build_fp32_params=bool(kind))
        for parameter in (tied, other):
            parameter.fill_(1)
    for wanted in (0.5, 0.75):
        average.step(model)
        kept = [average.get_model().state_dict(), *([average.fp32_params] if kind else [])]
        assert all(float(state[name].mean()) == wanted for state in kept for name in names)
        assert float(average.get_model().encoder.layers[0].final_layer_norm.weight.mean()) == wanted


def test_an_average_of_every_third_update_goes_on_as_if_it_had_not_stopped(data_bin, tmp_path):
    options = ["--store-ema", "--ema-decay", "0.5", "--ema-update-freq", "3"]
    for folder, updates in (("parts", "2"), ("parts", "4"), ("whole", "4")):
        toy.train(data_bin, tmp_path / folder, *options, "--max-update", updates)
    parts, whole = (
        torch.load(tmp_path / folder / "checkpoint_last.pt", weights_only=False) for folder in ("parts", "whole")
    )
    table = "encoder.embed_tokens.weight"
    assert torch.equal(parts["model"][table], whole["model"][table])
    assert torch.equal(parts["extra_state"]["ema"][table], whole["extra_state"]["ema"][table])


def test_it_averages_at_the_updates_at_which_fairseq_does(data_bin):
    _, _, model = toy.build(data_bin)
    ema = EMA(model, EMAConfig(store_ema=True, ema_decay=0.0, ema_update_freq=3))
    table, changed = "encoder.embed_tokens.weight", []
    for update in range(1, 8):
        before = ema.get_model().state_dict()[table].clone()
        with torch.no_grad():
            model.encoder.embed_tokens.weight.add_(1.0)
        ema.step(model, update)
        if not torch.equal(before, ema.get_model().state_dict()[table]):
            changed.append(update)
    assert changed == [3, 6]
