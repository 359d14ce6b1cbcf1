"""Hypotheses of one sentence share what the encoder made of it, through every change of a search."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.sequence_generator import SequenceGenerator

from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from tests.support import toy


@pytest.fixture(scope="module")
def encoded(data_bin):
    """Returns (encoder, its output for 11 sentences)."""
    _, task, model = toy.build(data_bin)
    net_input = toy.batch_of(task)["net_input"]
    return model.encoder, model.encoder(net_input["src_tokens"], layout=net_input["layout"])


def expanded(output):
    """Returns ``encoder_out`` and mask with a column for every hypothesis, as fairseq has them."""
    rows = EncoderOutputs.of(output).row_sentence
    return output["encoder_out"][0].index_select(1, rows), output["encoder_padding_mask"][0].index_select(0, rows)


def same_rows(output, of_stock):
    states, mask = expanded(output)
    assert torch.equal(states, of_stock["encoder_out"][0]) and torch.equal(mask, of_stock["encoder_padding_mask"][0])


@pytest.mark.parametrize(
    "orders",
    [
        [torch.arange(11).repeat_interleave(3)],
        [torch.arange(11).repeat_interleave(3), torch.tensor([2, 0, 0, 10, 9, 11, 30, 32, 31])],
        [torch.arange(11).repeat_interleave(2), torch.arange(22), torch.tensor([1, 0]), torch.tensor([0, 0])],
        [torch.tensor([4, 4, 4, 1])],  # of no search
        [torch.arange(11).repeat_interleave(2), torch.tensor([5, 1, 0, 21])],
    ],
    ids=["begin", "finish", "one left", "uneven", "mixed"],
)
def test_reordering_equals_fairseq(encoded, orders):
    encoder, output = encoded
    of_stock = output
    for order in orders:
        output = encoder.reorder_encoder_out(output, order)
        of_stock = TransformerEncoderBase.reorder_encoder_out(encoder, of_stock, order)
        same_rows(output, of_stock)


def test_encoder_outputs_are_not_copied(encoded):
    encoder, output = encoded
    begun = encoder.reorder_encoder_out(output, torch.arange(11).repeat_interleave(4))
    assert begun["encoder_out"][0] is output["encoder_out"][0]
    changed = encoder.reorder_encoder_out(begun, torch.arange(44).view(11, 4).flip(1).flatten())
    assert changed["encoder_out"][0] is output["encoder_out"][0]
    assert encoder.reorder_encoder_out(changed, torch.arange(4, 44))["encoder_out"][0].size(1) == 10


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_keys_are_projected_once_per_sentence(data_bin, beam):
    _, task, model = toy.build(data_bin)
    sample = toy.batch_of(task)
    generator = task.build_generator([model], GenerationConfig(beam=beam, max_len_b=6), seq_gen_cls=SequenceGenerator)
    sizes = []
    model.decoder.layers[0].encoder_attn.k_proj.register_forward_pre_hook(lambda _, x: sizes.append(x[0].shape[:2]))
    task.inference_step(generator, [model], sample)
    assert sizes == [tuple(sample["net_input"]["src_tokens"].shape)]
