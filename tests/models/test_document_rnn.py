from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt_fairseq.layers.capture import capture
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.rnn.decoder import RecurrentDecoder
from docnmt_fairseq.models.rnn.model import DocumentRNN
from docnmt_fairseq.multisource.packed import SourceStates
from docnmt_fairseq.recipes.models import model
from tests.support import toy
from tests.support.decoding import logits, padded, stepwise, stir
from tests.support.marks import slow_except
from tests.support.sources import Given
from tests.support.toy import TINY_RNN

VARIANTS = {
    "gru": [],
    "lstm": ["--encoder-cell", "lstm", "--decoder-cell", "lstm", "--encoder-layers", "2", "--decoder-layers", "3"],
    "ca-rnn": ["--encoder-cell", "ca-rnn", "--decoder-cell", "ca-rnn", "--encoder-layers", "2"],
    "ca-rnn-layers": ["--decoder-cell", "ca-rnn", "--decoder-layers", "2", "--decoder-out-embed-dim", "3"],
    "conditional-gru": ["--decoder-cell", "conditional-gru", "--decoder-layers", "2"],
    "rnnsearch": ["--deep-output", "maxout", "--initial-state", "last-backward"],
    "updated": ["--attend-with", "updated", "--attention-sentinel", "--decoder-layers", "2"],
    "reset-before": ["--encoder-cell", "gru-reset-before", "--decoder-cell", "gru-reset-before"],
    "cell-state": ["--decoder-cell", "ca-rnn", "--attention-query", "cell", "--attend-with", "updated"],
    "ca-em": ["--token-embedding", "ca-em", "--token-chi-dim", "2"],
    "chi-embeddings": ["--combination-attention", "ca-att", "--chi-embed-dim", "3"],
    "tied": ["--share-decoder-input-output-embed"],
    "flat-sentinel": ["--attention-sentinel", "--combination-attention", "luong"],
    "hierarchical-sentinel": ["--attention-combination", "hierarchical", "--attention-sentinel"],
    "heads": ["--combination-attention", "dot-product", "--decoder-attention-heads", "2"],
    "ca-att": ["--combination-attention", "ca-att", "--decoder-cell", "ca-rnn"],
}
QUICK = ("ca-rnn", "conditional-gru", "chi-embeddings", "hierarchical-sentinel")
every_variant = pytest.mark.parametrize("variant", slow_except(QUICK, VARIANTS))


def build(data_bin, variant, *extra):
    return toy.build(data_bin, *VARIANTS[variant], *extra, arch="document_rnn", tiny=TINY_RNN)


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("rnnsearch_tiny", []),
        ("document_rnn_zeng_tiny", []),
        (f"{model('caption-rnn').arch}_tiny", model("caption-rnn").options(1)),
    ],
)
def test_single_source_models_of_papers_do_not_project_contexts(data_bin, arch, options):
    _, _, built = toy.build(data_bin, *options, arch=arch, tiny=[])
    attention = built.decoder.attention
    assert all(name.startswith("attentions.0.score.") for name, _ in attention.named_parameters())
    assert attention.output_dim == built.encoder.output_dim


@every_variant
def test_sentence_is_independent_of_its_batch(data_bin, variant):
    _, task, model = build(data_bin, variant)
    stir(model)
    sample = toy.batch_of(task)
    together = logits(model, sample)
    for row in range(len(together)):
        length, target = int(sample["net_input"]["src_lengths"][row]), int(sample["target"][row].ne(1).sum())
        alone = {
            "src_tokens": sample["net_input"]["src_tokens"][row : row + 1, :length],
            "src_lengths": torch.tensor([length]),
            "prev_output_tokens": sample["net_input"]["prev_output_tokens"][row : row + 1, :target],
        }
        torch.testing.assert_close(together[row, :target], model(**alone)[0][0], atol=1e-5, rtol=1e-5)


@every_variant
def test_packed_loss_equals_padded_loss(data_bin, variant):
    cfg, task, model = build(data_bin, variant, "--criterion", "label_smoothed_cross_entropy")
    stir(model)
    criterion, sample = task.build_criterion(cfg.criterion), toy.batch_of(task)
    validation, _, _ = criterion(model, sample)
    model.train()
    packed, size, _ = criterion(model, sample)
    assert model(**sample["net_input"])[0].shape[0] == size == int(sample["target"].ne(1).sum())
    torch.testing.assert_close(packed, validation, atol=1e-4, rtol=1e-5)


@every_variant
@pytest.mark.parametrize("decode", [stepwise, padded])
def test_incremental_decoding_equals_packed_decoding(data_bin, variant, decode):
    _, task, model = build(data_bin, variant)
    stir(model)
    sample = toy.batch_of(task)
    real = sample["target"].ne(1)
    torch.testing.assert_close(decode(model, sample)[real], logits(model, sample)[real], atol=1e-5, rtol=1e-5)


@every_variant
def test_reordered_hypotheses_and_finished_sentences(data_bin, variant):
    _, task, model = build(data_bin, variant)
    stir(model)
    sample = toy.batch_of(task)
    tokens = torch.randint(4, 9, (3, 2, 4), generator=torch.Generator().manual_seed(0))  # sentences, hypotheses, tokens
    tokens[2] = tokens[0]
    encoder, decoder, incremental = model.encoder, model.decoder, {}
    everyone = encoder.forward_torchscript(sample["net_input"])
    first = encoder.reorder_encoder_out(everyone, torch.tensor([4, 4, 2, 2, 4, 4]))
    for step in range(3):
        decoder(tokens.flatten(0, 1)[:, : step + 1], encoder_out=first, incremental_state=incremental)
    order = torch.tensor([5, 4, 2, 2])  # of rows; the first sentence is done
    decoder.reorder_incremental_state_scripting(incremental, order)
    left = encoder.reorder_encoder_out(first, order)
    assert EncoderOutputs.of(left).left == 2
    tokens = tokens.flatten(0, 1)[order]
    found, _ = decoder(tokens, encoder_out=left, incremental_state=incremental)
    for row, sentence in enumerate([4, 4, 2, 2]):
        alone = encoder.reorder_encoder_out(everyone, torch.tensor([sentence]))
        expected, _ = decoder(tokens[row : row + 1], encoder_out=alone)
        torch.testing.assert_close(found[row, 0], expected[0, -1], atol=1e-5, rtol=1e-5)


@every_variant
def test_every_parameter_gets_a_gradient(data_bin, variant):
    _, task, model = build(data_bin, variant)
    stir(model).train()
    model(**toy.batch_of(task)["net_input"])[0].sin().sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


@pytest.mark.parametrize("options", [[], ["--attention-combination", "hierarchical", "--attention-sentinel"]], ids=str)
@pytest.mark.parametrize("cell", ["gru", "conditional-gru"])
def test_attention_to_several_sources(data_bin, cell, options):
    cfg, task, one = build(data_bin, "gru", "--decoder-cell", cell, *options)
    cfg.model.decoder_hidden_size, lengths = 4, np.array([2, 0, 1, 0, 0, 3, 1, 0, 0, 2, 1])
    rows = Given(tuple(lengths), tuple(np.arange(10) % 5))
    names = ("source", "features", "sentinel")[: 3 if options else 2]
    embed = one.decoder.embed_tokens
    decoder = RecurrentDecoder(cfg.model, task.target_dictionary, embed, (10, 3), [rows], names)
    model = stir(DocumentRNN(one.encoder, decoder)).eval()
    features = SourceStates(torch.randn(5, 3, generator=torch.Generator().manual_seed(2)), rows)
    alone = model.encoder.encode

    def with_features(*batch):
        sources = alone(*batch)
        return replace(sources, by_source=[*sources.by_source, features])

    model.encoder.encode = with_features
    sample = toy.batch_of(task)
    with capture() as recording:
        full, _ = model(**sample["net_input"])
    encoder_out = model.encoder.forward_torchscript(sample["net_input"])
    stepwise, _ = model.decoder(sample["net_input"]["prev_output_tokens"], encoder_out=encoder_out)
    real = sample["target"].ne(1)
    torch.testing.assert_close(stepwise[real], full[real], atol=1e-5, rtol=1e-5)
    ((owner, evidence),) = recording.entries
    shares = evidence.shares  # of packed target tokens
    assert owner is model.decoder
    assert shares.shape == (int(real.sum()), 3 if options else 2)
    torch.testing.assert_close(shares.sum(-1), torch.ones(len(shares)))
    has_features = torch.from_numpy(lengths > 0).repeat_interleave(real.sum(1))
    assert torch.equal(shares[:, 1] > 0, has_features)


def test_positions_of_dropout(data_bin):
    sizes = ["--encoder-layers", "3", "--decoder-layers", "2", "--decoder-out-embed-dim", "9", "--dropout", "0.5"]
    _, task, model = build(data_bin, "gru", *sizes)
    dropped = []
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) and module.p == 0.5:
            module.register_forward_hook(lambda _, given, result: dropped.append(given[0].size(-1)))
    net_input = toy.batch_of(task)["net_input"]
    model.train()(**net_input)
    assert dropped == [6, 10, 10, 7, 4, 9]
    encoder_out, dropped[:] = model.encoder.forward_torchscript(net_input), []
    model.decoder(net_input["prev_output_tokens"][:, :1], encoder_out=encoder_out)
    assert dropped == [7, 4, 9]
