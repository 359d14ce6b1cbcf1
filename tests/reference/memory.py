"""Loop references of mechanisms with selected context sentences; slow and obvious."""

from typing import List, Optional, Sequence

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.ca_layers.convolution import ContextAwareConvolution
from tests.reference import context_aware_layers, recurrent
from tests.reference.attention import attention, sentences_of, words_of


def document_of(layout: DocumentLayout, row: int) -> List[int]:
    (sentences,) = [s for d in range(layout.sentences.rows) if row in (s := sentences_of(layout, d))]
    return sentences


def previous(layout: DocumentLayout, row: int, contexts: int) -> List[int]:
    return [s for s in document_of(layout, row) if row - contexts <= s < row]


def following(layout: DocumentLayout, row: int, contexts: int) -> List[int]:
    return [s for s in document_of(layout, row) if row < s <= row + contexts]


def multi_head(module, x: Sequence[Tensor], memory: Sequence[Tensor]) -> List[Tensor]:
    """MultiHead(Q, K, V), V = K, head by head and query by query."""
    d_k = module.q_proj.out_features // module.heads
    outputs = []
    for query in x:
        heads = []
        for h in range(module.heads):
            cut = slice(h * d_k, (h + 1) * d_k)
            keys = [module.k_proj(m)[cut] for m in memory]
            values = [module.v_proj(m)[cut] for m in memory]
            heads.append(attention(module.q_proj(query)[cut], keys, values))
        outputs.append(module.out_proj(torch.cat(heads)))
    return outputs


def feed_forward(module, x: Tensor) -> Tensor:
    """LayerNorm(x + W_2 max(0, W_1 x + b_1) + b_2)."""
    return layer_norm(module.layer_norm, x + module.fc2(torch.clamp(module.fc1(x), min=0)))


def layer_norm(module, x: Tensor) -> Tensor:
    centred = x - x.mean()
    return centred / torch.sqrt((centred**2).mean() + 1e-5) * module.weight + module.bias


def gru(rnn, sequence: Sequence[Tensor]) -> List[Tensor]:
    """h_k = GRU(c_k, h_{k−1}) from zeros, [M] eq. 7."""
    h = (torch.zeros_like(sequence[0]),)
    return [h[0] for h in recurrent.states(recurrent.gru, rnn, sequence, h)]


def lstm(rnn, sequence: Sequence[Tensor]) -> List[Tensor]:
    """The same with an LSTM."""
    zeros = torch.zeros_like(sequence[0])
    return [h for h, _ in recurrent.states(recurrent.lstm, rnn, sequence, (zeros, zeros))]


def convolved(convolution, sequence: Sequence[Tensor]) -> List[Tensor]:
    """CA-CNN over the sequence, [Z] eq. 38-40."""
    return list(context_aware_layers.convolution(torch.stack(list(sequence), 1), convolution).unbind(1))


def associate(x: Sequence[Tensor], memories: Sequence[Sequence[Tensor]]) -> List[Tensor]:
    """a_i of one source sentence x' and its memories c'_j, entry by entry ([M] eq. 10-15)."""
    m = [[[token @ c for c in memory] for token in x] for memory in memories]  # M_j(i, k)
    means = [torch.stack([entry for row in m_j for entry in row]).mean() for m_j in m]
    beta = torch.softmax(torch.stack(means), 0)
    outputs = []
    for i in range(len(x)):
        total = torch.zeros_like(x[0])
        for j, memory in enumerate(memories):
            alpha = torch.softmax(torch.stack(m[j][i]), 0)
            total = total + beta[j] * sum(a * c for a, c in zip(alpha, memory))
        outputs.append(total)
    return outputs


def sequences_of(
    layout: DocumentLayout, tokens: Tensor, sentences: Sequence[int], break_symbol: Optional[Tensor]
) -> List[List[Tensor]]:
    """The context sequences of one row: its sentences, or with a break symbol all in one ([M] eq. 18)."""
    rows = [[tokens[w] for w in words_of(layout, sentence)] for sentence in sentences]
    if break_symbol is None or not rows:
        return rows
    joined = rows[0]
    for row in rows[1:]:
        joined = [*joined, break_symbol, *row]
    return [joined]


def memory_network(mechanism, x: Tensor, embeddings: Tensor, layout: DocumentLayout, addressed) -> Tensor:
    """H^context of [M] eq. 16; ``addressed[row]`` lists the groups of context sentences that the row sees.

    A group is read as one sequence if the mechanism joins, else each of its sentences is a sequence.
    """
    read = {torch.nn.GRU: gru, torch.nn.LSTM: lstm, ContextAwareConvolution: convolved}
    outputs = []
    for row in range(layout.tokens.rows):
        own = [x[w] for w in words_of(layout, row)]
        without_both = mechanism.rnn is None and mechanism.context_attention is None
        tokens = x if without_both else embeddings
        symbol = mechanism.break_symbol[0] if mechanism.key.joined else None
        sequences = [s for group in addressed[row] for s in sequences_of(layout, tokens, group, symbol)]
        if not sequences:
            outputs += [torch.zeros_like(token) for token in own]
            continue
        if mechanism.rnn is not None:
            sequences = [read[type(mechanism.rnn)](mechanism.rnn, sequence) for sequence in sequences]
        if mechanism.context_attention is None:
            means = [torch.stack(sequence).mean(0) for sequence in sequences]
            a = [torch.stack(means).mean(0)] * len(own)
        else:
            a = associate(own, [multi_head(mechanism.context_attention, s, s) for s in sequences])
        outputs += [feed_forward(mechanism.feed_forward, token) for token in a]
    return torch.stack(outputs)


def context_aware(mechanism, x: Tensor, layout: DocumentLayout, contexts: Sequence[Sequence[int]]) -> Tensor:
    """Attention to the last layer of the context encoder (Voita et al. 2018, sec. 3)."""
    layer, outputs = mechanism.context_layer, []
    for row in range(layout.tokens.rows):
        own, keys = [x[w] for w in words_of(layout, row)], []
        for sentence in contexts[row]:
            tokens = [x[w] for w in words_of(layout, sentence)]
            attended = multi_head(layer, tokens, tokens)
            keys += [
                feed_forward(layer.feed_forward, layer_norm(layer.layer_norm, w + a)) for w, a in zip(tokens, attended)
            ]
        outputs += multi_head(mechanism.attention, own, keys) if keys else [torch.zeros_like(token) for token in own]
    return torch.stack(outputs)


def hierarchical_attention(mechanism, x: Tensor, layout: DocumentLayout, contexts: Sequence[Sequence[int]]) -> Tensor:
    """s^j = MultiHead(h_t, h^j), d_t = FFN(MultiHead(h_t, s)) (Miculicich et al. 2018, sec. 2)."""
    outputs = []
    for row in range(layout.tokens.rows):
        for token in words_of(layout, row):
            s = []
            for sentence in contexts[row]:
                s += multi_head(mechanism.word_attention, [x[token]], [x[w] for w in words_of(layout, sentence)])
            if s:
                (attended,) = multi_head(mechanism.sentence_attention, [x[token]], s)
                outputs.append(feed_forward(mechanism.feed_forward, attended))
            else:
                outputs.append(torch.zeros_like(x[token]))
    return torch.stack(outputs)


def gate(module, source: Sequence[Tensor], context: Sequence[Tensor]) -> List[Tensor]:
    """H_i = g ⊙ H_i^source + (1 − g) ⊙ H_i^context, feature by feature ([M] eq. 16-17)."""
    outputs = []
    for s, c in zip(source, context):
        sums = module.gate.weight @ torch.cat([s, c]) + module.gate.bias
        g = [1 / (1 + torch.exp(-v)) for v in sums]
        outputs.append(torch.stack([g_f * s_f + (1 - g_f) * c_f for g_f, s_f, c_f in zip(g, s, c)]))
    return outputs
