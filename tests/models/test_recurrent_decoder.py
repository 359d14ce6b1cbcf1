"""The recurrent decoder as a whole, token by token from its equations."""

import pytest
import torch

from tests.reference import recurrent as reference
from tests.reference.combination import COMBINATIONS
from tests.support import toy
from tests.support.decoding import stir
from tests.support.sources import rows_of
from tests.support.toy import TINY_RNN

VARIANTS = {
    "gru": ["--attention-combination", "hierarchical"],
    "lstm, two layers, sentinel": ["--decoder-cell", "lstm", "--decoder-layers", "2", "--attention-sentinel"],
    "ca-rnn, three layers": ["--decoder-cell", "ca-rnn", "--decoder-layers", "3", "--deep-output", "maxout"],
    "conditional-gru, sentinel": [
        "--decoder-cell", "conditional-gru", "--attention-combination", "hierarchical", "--attention-sentinel",
        "--decoder-layers", "2", "--initial-state", "last-backward",
    ],
}  # fmt: skip


def split_state(decoder, state):
    """Returns the state of each layer, its parts one after another."""
    parts = list(state.split(decoder.attending.cell.state_dim))
    return [tuple(parts.pop(0) for _ in range(count)) for count in decoder.state_parts]


def logits_of(decoder, tokens, sources):
    """Returns the logits of one sentence's tokens from what it sees of each source."""
    main = sources[0]
    half = main.size(1) // 2
    before = main.mean(0) if decoder.initial_from == "mean" else main[0, half:]
    first, *above = split_state(decoder, torch.tanh(decoder.bridge.weight @ before + decoder.bridge.bias))
    name = type(decoder.attention).__name__.replace("Combination", "").lower()
    logits = []
    for token in tokens:
        y, last = decoder.embed_tokens.weight[token], first[0]

        def attend(s, y=y, last=last):  # the sentinel's gate sees y_i and s_{i−1} ([L] eq. 4)
            evidence = torch.cat([y, last])
            return COMBINATIONS[name](decoder.attention, s, [list(states) for states in sources], evidence)[0]

        conditional = type(decoder.attending).__name__ == "ConditionalGRU"
        step = reference.conditional_gru if conditional else reference.attend_first
        first, context = step(decoder.attending, y, first, attend)
        s = first[0]
        for number, cell in enumerate(decoder.layers):
            of_cell, module = reference.step_of(cell)
            above[number] = of_cell(module, s, above[number])
            s = above[number][0]
        logits.append(decoder.output_projection.weight @ reference.deep_output(decoder.deep_output, s, y, context))
    return torch.stack(logits)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_decoder_is_its_equations(data_bin, variant):
    sizes = [*TINY_RNN, "--extra-sources", "previous", "--extra-encoder", "shared"]
    _, task, model = toy.build(data_bin, *VARIANTS[variant], arch="document_rnn", tiny=sizes)
    stir(model).double()
    net_input = toy.batch_of(task)["net_input"]
    layout = net_input["layout"]
    with torch.no_grad():
        found = model.train()(**net_input)[0].split(layout.targets.lengths.tolist())
        sources = model.encoder.encode(net_input["src_tokens"], layout)
        seen_by = list(zip(*(rows_of(source, sources.layout) for source in sources.of_sentences)))
        for row, length in enumerate(layout.targets.lengths):
            expected = logits_of(model.decoder, net_input["prev_output_tokens"][row, :length], seen_by[row])
            torch.testing.assert_close(found[row], expected, atol=1e-9, rtol=1e-9)
