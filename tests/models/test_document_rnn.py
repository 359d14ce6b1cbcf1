"""``document_rnn``: models of papers, reordered hypotheses, several sources, dropout."""

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
from tests.support.decoding import stir
from tests.support.sources import Given
from tests.support.toy import TINY_RNN


def build(data_bin, *options):
    return toy.build(data_bin, *options, arch="document_rnn", tiny=TINY_RNN)


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


@pytest.mark.parametrize(
    "options",
    [
        ["--decoder-cell", "lstm", "--decoder-layers", "2", "--attention-combination", "hierarchical"],
        ["--attend-with", "updated", "--attention-sentinel", "--combination-attention", "luong"],
    ],
    ids=" ".join,
)
def test_reordered_hypotheses_and_finished_sentences(data_bin, options):
    _, task, model = build(data_bin, *options)
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


@pytest.mark.parametrize(
    ("cell", "options"),
    [("gru", []), ("conditional-gru", ["--attention-combination", "hierarchical", "--attention-sentinel"])],
)
def test_attention_to_several_sources(data_bin, cell, options):
    cfg, task, one = build(data_bin, "--decoder-cell", cell, *options)
    cfg.model.decoder_hidden_size, lengths = 4, np.array([2, 0, 1, 0, 0, 3, 1, 0, 0, 2, 1])
    rows = Given(tuple(lengths), tuple(np.arange(10) % 5))
    cfg.model.extra_sources = "features:image"
    decoder = RecurrentDecoder(cfg.model, task.target_dictionary, one.decoder.embed_tokens, (10, 3), [rows])
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
    _, task, model = build(data_bin, *sizes)
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
