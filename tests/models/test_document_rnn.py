"""``document_rnn``: models of papers, reordered hypotheses, several sources, dropout."""

import pytest
import torch

from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.recipes.models import model
from tests.support import toy
from tests.support.decoding import stir
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
