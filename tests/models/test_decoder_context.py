"""Decoder layers with context from the source document; properties of all architectures: test_architectures."""

import pytest
import torch

from docnmt_fairseq.context.base import DECODER_MECHANISMS
from tests.support import toy
from tests.support.decoding import logits, padded, stepwise, stir

OVERLAP = ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"]
every_mechanism = pytest.mark.parametrize("name", DECODER_MECHANISMS.names())


def build(data_bin, name="sentence-encodings", *extra):
    cfg, task, model = toy.build(data_bin, "--decoder-context-attention", name, *extra)
    return cfg, task, stir(model)


@every_mechanism
def test_target_tokens_see_their_source_document_only(data_bin, name):
    _, task, model = build(data_bin, name)
    sample = toy.batch_of(task)
    before = logits(model, sample)
    layout = sample["net_input"]["layout"]
    last = layout.sentences.lengths[0] - 1  # of the first document
    tokens = sample["net_input"]["src_tokens"].clone()
    tokens[last, 0] = torch.where(tokens[last, 0] == 5, 6, 5)
    after = logits(model, sample, src_tokens=tokens)
    changed = ((before - after).abs() > 1e-6).any(-1).any(-1)
    assert changed[: last + 1].all() and not changed[last + 1 :].any()


@every_mechanism
def test_incremental_decoding_with_context_only_sentences_and_another_width(data_bin, name):
    _, task, model = build(data_bin, name, *OVERLAP, "--decoder-embed-dim", "12", "--decoder-attention-heads", "3")
    sample = toy.batch_of(task)
    assert sample["net_input"]["layout"].decoded is not None
    full, real = logits(model, sample), sample["target"].ne(1)
    for other in (stepwise(model, sample), padded(model, sample)):
        torch.testing.assert_close(other[real], full[real], atol=1e-5, rtol=1e-5)


def test_attention_weights(data_bin):
    _, task, model = build(data_bin)
    sample = toy.batch_of(task)
    output, extra = model(**sample["net_input"], alignment_layer=1)
    real = sample["target"].ne(1)
    torch.testing.assert_close(output[real], logits(model, sample)[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(extra["attn"][0].sum(-1)[real], torch.ones(int(real.sum())))


def test_dropped_layers(data_bin):
    options = ["--decoder-layers", "3", "--decoder-context-layers", "0,2"]
    _, task, model = build(data_bin, "sentence-encodings", *options, "--decoder-layerdrop", "0.6")
    _, _, whole = build(data_bin, "sentence-encodings", *options)
    net_input = toy.batch_of(task)["net_input"]
    expected = whole(**net_input)[0]
    torch.testing.assert_close(model.eval()(**net_input)[0], expected)
    seen = set()
    for seed in range(12):
        torch.manual_seed(seed)
        output, _ = model.train()(**net_input)
        assert output.isfinite().all()
        seen.add(round(float(output.sum()), 3))
    assert len(seen) > 3  # different layers were dropped


def test_frozen_model_trains_decoder_context(data_bin):
    _, _, model = build(data_bin, "sentence-encodings", "--freeze-sentence-model")
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained and all(name.startswith("decoder.layers.1.context") for name in trained)
    context = {key for key in model.state_dict() if ".context" in key}
    assert trained == context == model.context_state_keys()
    assert model.sentence_state_keys() == model.state_dict().keys() - context


def test_checkpoint_without_decoder_context(data_bin):
    encoder_only = stir(toy.build(data_bin, "--context-attention", "sentence-encodings")[2])
    _, task, both = toy.build(
        data_bin, "--context-attention", "sentence-encodings", "--decoder-context-attention", "sentence-encodings"
    )
    both.load_state_dict(encoder_only.state_dict(), strict=True)
    sample = toy.batch_of(task)
    torch.testing.assert_close(logits(both, sample), logits(encoder_only, sample))
    lost = "decoder.layers.1.context.q_proj.weight"
    state = {key: value for key, value in both.state_dict().items() if key != lost}
    with pytest.raises(RuntimeError, match=lost):
        both.load_state_dict(state, strict=True)
