"""Loop-style references, written from the equations; slow and obvious."""

import math
from typing import List, Sequence

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout


def attention(q: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], bias: Sequence[Tensor] = ()) -> Tensor:
    """softmax(q·k/√d_k + bias) · v for one query ([T] eq. 1)."""
    scores = [q @ k / math.sqrt(len(q)) for k in keys]
    scores = [s + b for s, b in zip(scores, bias)] if bias else scores
    weights = torch.softmax(torch.stack(scores), 0)
    return sum(w * v for w, v in zip(weights, values))


def words_of(layout: DocumentLayout, sentence: int) -> List[int]:
    start = int(layout.tokens.lengths[:sentence].sum())
    return list(range(start, start + int(layout.tokens.lengths[sentence])))


def sentences_of(layout: DocumentLayout, document: int) -> List[int]:
    start = int(layout.sentences.lengths[:document].sum())
    return list(range(start, start + int(layout.sentences.lengths[document])))


def source2token(x: Tensor, layout: DocumentLayout, query: Tensor, w_k, w_v, w_o) -> Tensor:
    """s_j = Attention(q, S_j W^K, S_j W^V) W^O, head by head ([T] eq. 2)."""
    heads, d_k = query.shape
    encodings = []
    for sentence in range(layout.tokens.rows):
        tokens = words_of(layout, sentence)
        per_head = []
        for h in range(heads):
            cut = slice(h * d_k, (h + 1) * d_k)
            per_head.append(attention(query[h], [w_k(x[w])[cut] for w in tokens], [w_v(x[w])[cut] for w in tokens]))
        encodings.append(w_o(torch.cat(per_head)))
    return torch.stack(encodings)


def multi_dim_source2token(x: Tensor, layout: DocumentLayout, hidden, score) -> Tensor:
    """s_jf = Σ_i a_if x_if, a_f = softmax over the tokens of (W_2 elu(W_1 x + b_1) + b_2)_f ([T] sec. 3.3.1)."""
    encodings = []
    for sentence in range(layout.tokens.rows):
        tokens = words_of(layout, sentence)
        scores = [score(torch.nn.functional.elu(hidden(x[w]))) for w in tokens]
        features = []
        for f in range(x.size(1)):
            weights = torch.softmax(torch.stack([s[f] for s in scores]), 0)
            features.append(sum(a * x[w, f] for a, w in zip(weights, tokens)))
        encodings.append(torch.stack(features))
    return torch.stack(encodings)


def mean_of_words(x: Tensor, layout: DocumentLayout) -> Tensor:
    """s_j = (1/m_j) Σ_i x_i."""
    rows = [words_of(layout, sentence) for sentence in range(layout.tokens.rows)]
    return torch.stack([sum(x[w] for w in tokens) / len(tokens) for tokens in rows])


def sentence_attention(mechanism, queries: Sequence[Tensor], encodings: Sequence[Tensor]) -> List[Tensor]:
    """Multi-head attention of each query to the sentence encodings of its document ([T] sec. 2)."""
    outputs, d_k = [], mechanism.q_proj.out_features // mechanism.heads
    for x in queries:
        heads = []
        for h in range(mechanism.heads):
            cut = slice(h * d_k, (h + 1) * d_k)
            keys = [mechanism.k_proj(s)[cut] for s in encodings]
            values = [mechanism.v_proj(s)[cut] for s in encodings]
            heads.append(attention(mechanism.q_proj(x)[cut], keys, values))
        outputs.append(mechanism.out_proj(torch.cat(heads)))
    return outputs


def keep_top_t(relevance: Sequence[Tensor], t: int) -> List[int]:
    """The t largest, the lowest index first among equals ([T] eq. 4)."""
    return sorted(range(len(relevance)), key=lambda i: (-float(relevance[i].detach()), i))[:t]


def conditional_attention(q, k, v, q_s, k_s, layout: DocumentLayout, kept, always_keep_own=False) -> Tensor:
    """out_i = softmax_w(q_i·k_w/√d_k + KeepTopT(q_s,i·k_s/√d_k)) v_w, head by head, token by token ([T] eq. 3-7)."""
    heads, d_k = q.shape[1:]
    out = []
    for document in range(layout.sentences.rows):
        sentences = sentences_of(layout, document)
        for own in sentences:
            for token in words_of(layout, own):
                per_head = []
                for h in range(heads):
                    relevance = [q_s[token, h] @ k_s[s, h] / math.sqrt(d_k) for s in sentences]
                    chosen = keep_top_t(relevance, int(kept[document]))
                    if always_keep_own and own - sentences[0] not in chosen:
                        chosen.append(own - sentences[0])
                    pairs = [(w, relevance[c]) for c in chosen for w in words_of(layout, sentences[c])]
                    keys, values = [k[w, h] for w, _ in pairs], [v[w, h] for w, _ in pairs]
                    per_head.append(attention(q[token, h], keys, values, [r for _, r in pairs]))
                out.append(torch.stack(per_head))
    return torch.stack(out)
