"""The recurrent decoder equals its equations, token by token."""

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
    "gru, updated state, flat sentinel": ["--attend-with", "updated", "--attention-sentinel"],
    "gru, updated state, hierarchical sentinel, two layers": [
        "--attend-with", "updated", "--attention-sentinel", "--attention-combination", "hierarchical",
        "--decoder-layers", "2", "--context-vector-dim", "3",
    ],
    "gru reset before, updated state, whole concatenation": [
        "--decoder-cell", "gru-reset-before", "--attend-with", "updated", "--attention-combination", "concatenation",
        "--concatenated-contexts", "whole",
    ],
    "ca-rnn, cell state, output alone": [
        "--decoder-cell", "ca-rnn", "--attention-query", "cell", "--decoder-layers", "2", "--deep-output", "state",
        "--decoder-out-embed-dim", "4",
    ],
    "ca-att of embeddings": ["--combination-attention", "ca-att", "--chi-embed-dim", "3"],
    "ca-att-bahdanau of embeddings, hierarchical": [
        "--combination-attention", "ca-att-bahdanau", "--chi-embed-dim", "3", "--attention-combination", "hierarchical",
    ],
    "lstm, updated cell state": ["--decoder-cell", "lstm", "--attention-query", "cell", "--attend-with", "updated"],
}  # fmt: skip


def split_state(decoder, state):
    """Returns the state of each layer, its parts one after another; no context vector has been attended to yet."""
    parts = list(state.split(decoder.attending.cell.state_dim))
    cells = (decoder.attending.cell, *decoder.layers)
    first, *above = [tuple(parts.pop(0) for _ in range(cell.parts)) for cell in cells]
    if type(decoder.attending).__name__ == "AttendUpdated":
        first = (*first, torch.zeros(decoder.attention.output_dim, dtype=state.dtype))
    return [first, *above]


def logits_of(decoder, tokens, sources):
    """Returns the logits of one sentence's tokens from what it sees of each source."""
    main = sources[0][:, : decoder.source_dim]
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

        step = reference.DECODER_STEPS[type(decoder.attending).__name__]
        first, context = step(decoder.attending, y, first, attend)
        s = first[0]
        for number, cell in enumerate(decoder.layers):
            of_cell, module = reference.step_of(cell)
            above[number] = of_cell(module, s, above[number])
            s = above[number][0]
        logits.append(decoder.output_projection.weight @ reference.deep_output(decoder.deep_output, s, y, context))
    return torch.stack(logits)


@pytest.mark.parametrize("variant", VARIANTS)
def test_decoder_equals_its_equations(data_bin, variant):
    of_one_source = "--chi-embed-dim" in VARIANTS[variant]
    sizes = [*TINY_RNN, *([] if of_one_source else ["--extra-sources", "previous", "--extra-encoder", "shared"])]
    _, task, model = toy.build(data_bin, *VARIANTS[variant], arch="document_rnn", tiny=sizes)
    stir(model).double()
    net_input = toy.batch_of(task)["net_input"]
    layout = net_input["layout"]
    with torch.no_grad():
        found = model.train()(**net_input)[0].split(layout.targets.lengths.tolist())
        sources = model.encoder.encode(net_input["src_tokens"], layout)
        seen_by = list(zip(*(rows_of(source, sources.layout) for source in sources.by_source)))
        for row, length in enumerate(layout.targets.lengths):
            expected = logits_of(model.decoder, net_input["prev_output_tokens"][row, :length], seen_by[row])
            torch.testing.assert_close(found[row], expected, atol=1e-9, rtol=1e-9)
