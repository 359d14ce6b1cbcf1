"""``document_transformer``: equal to the stock Transformer at the start, checkpoints, frozen parameters."""

from argparse import Namespace

import pytest
import torch
from omegaconf import OmegaConf

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.layers.positions import ADDED_LEVELS
from tests.support import toy
from tests.support.decoding import logits, stir

CONDITIONAL = ["--context-attention", "conditional"]
DECODER = ["--decoder-context-attention", "sentence-encodings", "--decoder-context-layers", "0,1"]
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
POSITIONS = [part for level in ADDED_LEVELS for part in (f"--{level}-positions", "learned")]


@pytest.mark.parametrize(
    "options",
    [
        [],
        PRE_NORM,
        CONDITIONAL,
        [*CONDITIONAL, *PRE_NORM, *DECODER],
        ["--context-attention", "sentence-encodings", "--context-placement", "heads"],
        ["--context-attention", "memory"],
        ["--context-attention", "memory", "--context-placement", "gated-feed-forward", *PRE_NORM],
        ["--context-attention", "han", "--target-context-attention", "han"],
        ["--context-attention", "tree", "--context-placement", "replace"],
        ["--decoder-context-attention", "ca-att"],
    ],
    ids=" ".join,
)
def test_new_model_equals_stock_transformer(data_bin, options):
    norm = PRE_NORM if PRE_NORM[0] in options else []
    _, _, stock = toy.build(data_bin, *norm, task="translation", arch="transformer")
    stir(stock)
    _, task, model = toy.build(data_bin, *options, *POSITIONS)
    model.load_state_dict(stock.state_dict(), strict=True)
    sample = toy.batch_of(task)
    if "replace" in options:  # not an added sub-layer: equal where there is no context
        lengths = sample["net_input"]["layout"].tokens.lengths
        sample["net_input"]["layout"] = DocumentLayout.of_single_sentences(lengths)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    expected = stock(**net_input)[0]
    torch.testing.assert_close(logits(model, sample)[real], expected[real], atol=1e-5, rtol=1e-5)


def test_sentence_level_embeddings_initialise_context_aware_ones(data_bin):
    _, _, sentence = toy.build(data_bin, "--share-all-embeddings")
    _, _, model = toy.build(data_bin, "--share-all-embeddings", "--token-embedding", "ca-em")
    model.load_state_dict(stir(sentence).state_dict(), strict=True)
    assert torch.equal(model.decoder.embed_tokens.weight, sentence.decoder.embed_tokens.weight)


def test_scoring_of_other_targets(data_bin):
    _, task, model = toy.build(data_bin, *CONDITIONAL, *DECODER)
    stir(model)
    sample = toy.batch_of(task)
    own = logits(model, sample)
    previous = sample["net_input"]["prev_output_tokens"]
    longer = torch.cat([previous, torch.full_like(previous[:, :2], 5)], dim=1)
    longer = torch.where(longer.eq(1), 6, longer)
    scored = logits(model, sample, prev_output_tokens=longer)
    assert scored.shape[1] == longer.shape[1] and (scored.abs().sum(-1) > 0).all()
    real = sample["target"].ne(1)
    torch.testing.assert_close(scored[:, : previous.size(1)][real], own[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "expected"), [(["conditional"], [2, 3]), (["han"], [3]), (["han", "--context-layers", "0,2"], [0, 2])]
)
def test_default_context_layers(data_bin, options, expected):
    _, _, model = toy.build(data_bin, "--encoder-layers", "4", "--context-attention", *options)
    assert [number for number, layer in enumerate(model.encoder.layers) if hasattr(layer, "context")] == expected


def test_frozen_model_trains_context(data_bin):
    _, _, model = toy.build(data_bin, *CONDITIONAL, *POSITIONS, "--freeze-sentence-model")
    trained = {name.split(".")[-2] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {"sentence_q_proj", "context_layer_norm", *ADDED_LEVELS} <= trained
    assert not {"fc1", "embed_tokens", "word", "encoder_attn_layer_norm"} & trained


def test_checkpoint_without_a_newer_option(data_bin):
    cfg, task, model = toy.build(data_bin, "--context-attention", "tree")
    known = OmegaConf.to_container(cfg.model) if OmegaConf.is_config(cfg.model) else vars(cfg.model)
    older = Namespace(**{name: value for name, value in known.items() if name not in ("context_kernel", "tree_merge")})
    again = stir(task.build_model(older, from_checkpoint=True).eval())
    sample = toy.batch_of(task)
    assert torch.equal(logits(again, sample), logits(stir(model), sample))


@pytest.mark.parametrize("norm", [[], ["--encoder-normalize-before"]], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("query", ["sub-layer", "attention"])
def test_memory_query(data_bin, norm, query):
    options = ["--context-attention", "memory", "--memory-query", query, *norm]
    _, task, model = toy.build(data_bin, *options)
    stir(model).eval()
    layer, seen = model.encoder.layers[-1], {}
    layer.self_attn.register_forward_hook(lambda module, given, result: seen.update(attended=result))
    layer.context.register_forward_hook(lambda module, given, result: seen.update(asked=given[0], entered=given[1]))
    layer.register_forward_hook(lambda module, given, result: seen.update(x=given[0]))
    model(**toy.batch_of(task)["net_input"])
    after = seen["x"] + seen["attended"]
    after = layer.context_layer_norm(after) if norm and query == "sub-layer" else after
    after = layer.self_attn_layer_norm(after) if not norm else after
    torch.testing.assert_close(seen["asked"], seen["attended"] if query == "attention" else after)
