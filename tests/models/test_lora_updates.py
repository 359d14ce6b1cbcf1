"""``document_transformer`` with low-rank updates: projections, trained parameters, checkpoints, merging."""

import pytest
import torch

from docnmt_fairseq.layers.lora import LoRALinear, merge_lora
from docnmt_fairseq.models.transformer.lora import PROJECTIONS
from docnmt_fairseq.search.transformer_steps import fused
from tests.support import toy
from tests.support.decoding import logits, stir

CONTEXT = ["--context-attention", "conditional"]
FREEZE = "--freeze-sentence-model"
LORA = ["--lora-rank", "2"]
EVERYWHERE = [*LORA, "--lora-on", ",".join(PROJECTIONS)]
VARIANTS = [
    [],
    [*CONTEXT, "--context-placement", "replace"],
    ["--feed-forward", "ca-res", "--attention-combination", "flat"],
]


def places(model):
    """Returns the names of the projections with updates."""
    return {name for name, module in model.named_modules() if isinstance(module, LoRALinear)}


def trained(model):
    """Returns the names of the parameters that are trained."""
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_default_projections(data_bin):
    _, _, model = toy.build(data_bin, *LORA)
    attentions = ["encoder.layers.{}.self_attn", "decoder.layers.{}.self_attn", "decoder.layers.{}.encoder_attn"]
    names = [name.format(layer) for name in attentions for layer in (0, 1)]
    assert places(model) == {f"{name}.{part}" for name in names for part in ("q_proj", "v_proj")}


def test_chosen_projections(data_bin):
    _, _, model = toy.build(data_bin, *LORA, "--lora-on", "out,fc2", "--lora-side", "decoder")
    parts = ("self_attn.out_proj", "encoder_attn.out_proj", "feed_forward.fc2")
    assert places(model) == {f"decoder.layers.{layer}.{part}" for layer in (0, 1) for part in parts}
    _, _, model = toy.build(data_bin, *LORA, "--lora-on", "fc1", "--lora-side", "encoder", "--feed-forward", "ca-nn")
    assert places(model) == {f"encoder.layers.{layer}.feed_forward.v.fc1" for layer in (0, 1)}


def test_frozen_model_trains_context_and_updates(data_bin):
    _, _, alone = toy.build(data_bin, *CONTEXT, FREEZE)
    _, _, model = toy.build(data_bin, *CONTEXT, FREEZE, *EVERYWHERE)
    updates = {f"{name}.{part}" for name in places(model) for part in ("lora_A", "lora_B")}
    assert trained(model) == trained(alone) | updates and len(updates) == 2 * 2 * (6 + 10)
    _, _, model = toy.build(data_bin, FREEZE, *LORA)
    assert trained(model) == {f"{name}.{part}" for name in places(model) for part in ("lora_A", "lora_B")}


@pytest.mark.parametrize("variant", VARIANTS, ids=" ".join)
def test_checkpoint_without_updates(data_bin, variant):
    _, task, before = toy.build(data_bin, *variant)
    stir(before)
    _, _, model = toy.build(data_bin, *variant, *EVERYWHERE)
    model.load_state_dict(before.state_dict(), strict=True)
    sample = toy.batch_of(task)
    assert torch.equal(logits(model, sample), logits(before, sample))


def test_sentence_level_checkpoint_with_updates(data_bin):
    _, _, sentence = toy.build(data_bin, *LORA)
    stir(sentence)
    for more in (CONTEXT, [*CONTEXT, "--context-placement", "replace"]):
        _, _, model = toy.build(data_bin, *LORA, *more)
        model.load_state_dict(sentence.state_dict(), strict=True)
        own = model.state_dict()
        assert all(torch.equal(own[name], value) for name, value in sentence.state_dict().items())


@pytest.mark.parametrize("variant", [[], [*CONTEXT, "--context-placement", "replace"]], ids=["plain", "replace"])
def test_merged_model_computes_the_same(data_bin, variant):
    _, task, model = toy.build(data_bin, *variant, *EVERYWHERE, "--lora-dropout", "0.5")
    stir(model)
    sample = toy.batch_of(task)
    before = logits(model, sample)
    attention = model.decoder.layers[0].self_attn
    in_one = fused(attention).weight
    merge_lora(model)
    assert not places(model) and not [key for key in model.state_dict() if "lora" in key]
    torch.testing.assert_close(logits(model, sample), before, atol=1e-5, rtol=1e-5)
    assert torch.equal(fused(attention).weight, in_one)


def test_recomputed_activations(data_bin):
    def built(*options):
        cfg, task, model = toy.build(data_bin, *CONTEXT, FREEZE, *EVERYWHERE, *options)
        return cfg, task, stir(model)

    toy.assert_same_gradients_when_recomputed(built)
