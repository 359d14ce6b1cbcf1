"""Decoders that attend to several sources: packed in training, shared by hypotheses in a search, from a checkpoint."""

import itertools

import pytest
import torch

from docnmt_fairseq.layers.capture import SourceShares, capture
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.transformer.combined_attention import CombinedAttention
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from tests.support import toy
from tests.support.decoding import logits, stir

VARIANTS = {
    f"{name}-{attention}": ["--attention-combination", name, "--combination-attention", attention]
    for name, attention in itertools.product(ATTENTION_COMBINATIONS.names(), ["dot-product", "luong", "ca-att"])
}
for _name in ("flat", "hierarchical"):
    VARIANTS[f"{_name}-sentinel"] = ["--attention-combination", _name, "--attention-sentinel"]
    VARIANTS[f"{_name}-shared"] = [
        "--attention-combination", _name, "--combination-attention", "bahdanau", "--share-combination-projections"
    ]  # fmt: skip


def build(data_bin, *options, extra="previous:1,next:2"):
    """Returns (cfg, task, model) that reads the sentences' own states of its neighbours, each encoded once."""
    sources = ["--extra-sources", extra, "--extra-encoder", "shared"] if extra else []
    cfg, task, model = toy.build(data_bin, *sources, *options)
    return cfg, task, stir(model.eval())


def projected_of(encoder_out, attention):
    """Returns what was projected once for an attention; it must have been."""
    return EncoderOutputs.of(encoder_out).per_sentence(attention, lambda: pytest.fail("computed again"))


def attentions(model):
    return [module for module in model.modules() if isinstance(module, CombinedAttention)]


@pytest.mark.parametrize("variant", ["flat-dot-product", "serial-ca-att"])
def test_hypotheses_share_projected_sources(data_bin, variant):
    _, task, model = build(data_bin, *VARIANTS[variant])
    net_input = toy.batch_of(task)["net_input"]
    output = model.encoder.forward_torchscript(net_input)
    sentences = len(net_input["src_tokens"])
    first_tokens = torch.full((sentences, 1), 2)
    model.decoder(first_tokens, encoder_out=output)
    once = {attention: projected_of(output, attention) for attention in attentions(model)}
    assert len(once) == 2
    twice = model.encoder.reorder_encoder_out(output, torch.arange(sentences).repeat_interleave(2))
    for attention, parts in once.items():  # nothing is copied for hypotheses
        assert all(a is b for a, b in zip(projected_of(twice, attention), parts, strict=True))
    kept = [3, 0]
    rows = torch.tensor([2 * sentence + place for sentence in kept for place in (1, 1)])
    finished = model.encoder.reorder_encoder_out(twice, rows)
    for attention in once:
        assert all(len(part) == 2 for part in projected_of(finished, attention))
    previous = torch.tensor([[2, 5], [2, 6]])
    before = [
        model.decoder(tokens.expand(sentences, -1), encoder_out=output)[0][kept] for tokens in previous
    ]  # [2, 2, V] of both tokens
    after = model.decoder(previous.repeat(2, 1), encoder_out=finished)[0].unflatten(0, (2, 2))
    torch.testing.assert_close(after, torch.stack(before, dim=1), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(after[:, 0], after[:, 1])


@pytest.mark.parametrize(
    ("name", "norm"), [("flat", ["--encoder-normalize-before", "--decoder-normalize-before"]), ("serial", [])]
)
def test_one_source_equals_stock_transformer(data_bin, name, norm):
    stock = stir(toy.build(data_bin, *norm, task="translation", arch="transformer")[2])
    _, task, model = build(data_bin, *norm, "--attention-combination", name, extra=None)
    model.load_state_dict(stock.state_dict(), strict=True)
    sample = toy.batch_of(task)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    torch.testing.assert_close(logits(model, sample)[real], stock(**net_input)[0][real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variant", ("flat-dot-product", "hierarchical-sentinel", "parallel-luong", "flat-shared"))
def test_sentence_level_checkpoint_initialises_main_source(data_bin, variant):
    _, _, sentence = toy.build(data_bin)
    for parameter in sentence.parameters():
        parameter.data.normal_(0, 0.2)
    _, task, model = build(data_bin, *VARIANTS[variant])
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(sentence.state_dict(), strict=True)
    loaded, prefix = model.state_dict(), "decoder.layers.0.encoder_attn"
    own = attentions(model)[0].combination.main_source()
    assert bool(own) == (variant.endswith("dot-product") or variant.endswith("sentinel"))
    taken = {f"{prefix}.combination.{part}.{kind}" for part in own.values() for kind in ("weight", "bias")}
    fresh = [name for name in loaded if name.startswith(f"{prefix}.") and name not in taken]
    assert fresh and all(torch.equal(loaded[name], initial[name]) for name in fresh)
    for stock, part in own.items():
        from_stock = sentence.state_dict()[f"{prefix}.{stock}.weight"]
        assert torch.equal(loaded[f"{prefix}.combination.{part}.weight"], from_stock)
    again = build(data_bin, *VARIANTS[variant])[2]
    again.load_state_dict(model.state_dict(), strict=True)
    sample = toy.batch_of(task)
    assert torch.equal(logits(again, sample), logits(model, sample))


def test_default_combination(data_bin):
    assert not attentions(build(data_bin, extra=None)[2])
    first, second = attentions(build(data_bin)[2])
    assert type(first.combination) is ATTENTION_COMBINATIONS["hierarchical"]
    assert not {id(parameter) for parameter in first.parameters()} & {id(p) for p in second.parameters()}


def test_shares_of_sources_are_recorded(data_bin):
    _, task, model = build(data_bin, *VARIANTS["hierarchical-sentinel"])
    sample = toy.batch_of(task)
    with capture() as recording:
        logits(model, sample)
    layout = sample["net_input"]["layout"]
    first_sentences = torch.from_numpy(layout.sentences.offsets[:-1])
    at_start = torch.isin(layout.targets.item_row, first_sentences)
    for attention in attentions(model):
        (evidence,) = (e for e in recording.of(attention) if isinstance(e, SourceShares))
        assert evidence.names == ("source", "previous:1", "next:2", "sentinel")
        assert evidence.shares.shape == (layout.targets.total, 4)
        torch.testing.assert_close(evidence.shares.sum(-1), torch.ones(layout.targets.total))
        assert torch.equal(evidence.shares[:, 1] == 0, at_start)
