"""--context-lr-scale: what a sentence-level model does not have learns at a multiple of the learning rate."""

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf

from docnmt_fairseq import training_setup
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.lr_scales import group_by_scale, mark
from docnmt_fairseq.optim.fused_adamw import FusedAdamW, FusedAdamWConfig
from tests.support import toy

RATE = 0.01
CONTEXT = ["--context-attention", "conditional", "--target-context-attention", "han", "--lr", str(RATE)]
SCALED = [*CONTEXT, "--context-lr-scale", "8"]


@pytest.fixture(scope="module")
def start(data_bin, tmp_path_factory):
    """Returns the checkpoint of a sentence-level model."""
    return toy.train(data_bin, tmp_path_factory.mktemp("start"), "--context", "none", "--max-update", "4")


def trained(data_bin, folder, start, *options):
    """Returns the weights after some updates from a sentence-level start."""
    return toy.state(toy.train(data_bin, folder, *options, "--finetune-from-model", str(start)))


@pytest.mark.parametrize("optimizer", [["adam"], ["fused_adamw"], ["adam", "--bf16"], ["adam", "--bf16-in-place"]])
def test_the_first_update_of_what_is_added_is_a_multiple(data_bin, start, tmp_path, optimizer):
    options = ["--optimizer", *optimizer, "--max-update", "1"]
    if "--bf16-in-place" in options:
        options[options.index("--bf16-in-place")] = "--memory-efficient-bf16"
    plain = trained(data_bin, tmp_path / "1", start, *CONTEXT, *options)
    scaled = trained(data_bin, tmp_path / "8", start, *SCALED, *options)
    _, _, model = toy.build(data_bin, *CONTEXT)
    added = model.context_state_keys() - model.sentence_state_keys()
    grown = 0
    for name, value in plain.items():
        if name not in added:
            assert torch.equal(scaled[name], value), name
        elif name.endswith("context.out_proj.weight"):  # begins at zero, so that its values are the update
            assert value.abs().max() > RATE / 4
            torch.testing.assert_close(scaled[name], 8 * value, rtol=2**-7, atol=1e-6)
            grown += 1
    assert grown >= 1


def test_a_training_goes_on_as_if_it_had_not_stopped(data_bin, start, tmp_path):
    options = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "3", "--max-update"]
    whole = trained(data_bin, tmp_path / "whole", start, *SCALED, *options, "6")
    trained(data_bin, tmp_path / "parts", start, *SCALED, *options, "3")
    parts = trained(data_bin, tmp_path / "parts", start, *SCALED, *options, "6")
    assert all(torch.equal(parts[name], value) for name, value in whole.items())
    other = trained(data_bin, tmp_path / "other", start, *CONTEXT, *options, "6")
    assert not torch.equal(whole["encoder.embed_tokens.weight"], other["encoder.embed_tokens.weight"])


def test_a_checkpoint_of_one_rate_is_refused_by_name(data_bin, start, tmp_path):
    trained(data_bin, tmp_path, start, *CONTEXT, "--max-update", "2")
    with pytest.raises(InputError, match=r"--context-lr-scale: the checkpoint's optimizer has 1 .* this training 2;"):
        trained(data_bin, tmp_path, start, *SCALED, "--max-update", "4")
    toy.train(data_bin, tmp_path, *SCALED, "--max-update", "4", "--reset-optimizer", "--reset-lr-scheduler")


def optimizer_of(*scales, lr=0.5):
    """Returns an optimiser, and parameters of these scales."""
    parameters = [torch.nn.Parameter(torch.ones(2)) for _ in scales]
    for parameter, scale in zip(parameters, scales):
        mark([parameter], scale)
    return FusedAdamW(FusedAdamWConfig(lr=[lr]), parameters), parameters


def test_rates_follow_the_scheduler():
    optimizer, parameters = optimizer_of(3.0, 1.0, 3.0)
    group_by_scale(optimizer, parameters)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 2]
    assert optimizer.param_groups[1]["params"][1] is parameters[2]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.5] and optimizer.get_lr() == 0.5
    optimizer.set_lr(0.1)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.1, 0.3])
    optimizer.load_state_dict(optimizer.state_dict(), {"lr": 7.0})  # fairseq's, of the command line, for all groups
    optimizer.set_lr(0.2)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.2, 0.6])


def test_all_may_have_a_scale():
    optimizer, parameters = optimizer_of(4.0, 4.0)
    group_by_scale(optimizer, parameters)
    assert [group["lr"] for group in optimizer.param_groups] == [2.0] and optimizer.get_lr() == 0.5


def test_one_rate_leaves_the_optimizer_alone():
    optimizer, parameters = optimizer_of(1.0, 1.0)
    group = optimizer.param_groups[0]
    group_by_scale(optimizer, parameters)
    assert optimizer.param_groups == [group]


def test_groups_of_others_all_have_the_rate():
    optimizer, _ = optimizer_of(1.0)
    optimizer.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    optimizer.set_lr(0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.1]


def test_groups_of_others_are_refused():
    optimizer, parameters = optimizer_of(3.0, 1.0)
    with pytest.raises(InputError, match="--context-lr-scale: not with an optimizer that has groups of its own"):
        group_by_scale(optimizer, parameters[:1])


def configuration(**model):
    """Returns fairseq's configuration of a training on a CPU."""
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.cpu, cfg.model, cfg.task = True, {"_name": "m", **model}, {"_name": "t"}
    return cfg


def test_half_precision_keeps_parameters_apart(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for scale in (1.0, 3.0):
        cfg = configuration(context_lr_scale=scale)
        cfg.common.fp16, cfg.common.cpu = True, False
        training_setup.prepare(cfg)
        assert cfg.common.fp16_no_flatten_grads is (scale == 3.0)


@pytest.mark.parametrize("option", ["composite", "sharding"])
def test_what_has_no_place_for_rates_is_refused(option):
    cfg = configuration(context_lr_scale=3.0)
    if option == "composite":
        cfg.optimizer = {"_name": "composite"}
    else:
        cfg.distributed_training.zero_sharding = "os"
    with pytest.raises(InputError, match=f"--context-lr-scale: not with .*{option}"):
        training_setup.prepare(cfg)


@pytest.mark.parametrize("scale", ["-1", "nan"])
def test_scales_are_positive_numbers(data_bin, scale):
    with pytest.raises(InputError, match=f"--context-lr-scale {scale}.*must (be a number above 0|not be negative)"):
        toy.build(data_bin, "--context-attention", "conditional", "--context-lr-scale", scale)
