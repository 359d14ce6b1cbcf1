"""The selection's loss, token by token and sentence by sentence, as its equation reads."""

import math


def selection_divergence(q, k, q_s, k_s, layout, tokens, top_t, temperature, kept=None):
    """The sums over ``tokens`` of KL, of the mass on the t most relevant sentences, and of the t largest masses.

    Args:
        q, k, q_s, k_s: [N, H, d], [N, H, d], [N, H, d], [R, H, d].
        layout: the batch.
        tokens: whose loss it is.
        top_t, temperature: t and τ.
        kept: for every token and head the rows kept, a list of lists of sets; None: all of the document.
    """
    heads, d = q.shape[1:]
    offsets = layout.sentences.offsets
    loss, found, largest = 0.0, 0.0, 0.0
    for i in tokens:
        document = int(layout.token_document[i])
        for head in range(heads):
            rows = list(range(offsets[document], offsets[document + 1]))
            if kept is not None:
                rows = [row for row in rows if row in kept[i][head]]
            relevance = {row: q_s[i, head] @ k_s[row, head] / math.sqrt(d) for row in rows}
            mass = dict.fromkeys(rows, 0.0)
            for w in range(len(q)):
                row = int(layout.token_sentence[w])
                if row in mass:
                    score = float(q[i, head] @ k[w, head]) / math.sqrt(d) + float(relevance[row])
                    mass[row] += math.exp(score)
            total = sum(mass.values())
            normaliser = sum((relevance[row] / temperature).exp() for row in rows)
            for row in rows:
                p = mass[row] / total
                predicted = relevance[row] / temperature - normaliser.log()
                loss = loss + p * (math.log(p) - predicted) / heads
            best = sorted(rows, key=lambda row: float(relevance[row]), reverse=True)[:top_t]
            found += sum(mass[row] for row in best) / total / heads
            largest += sum(sorted(mass.values(), reverse=True)[:top_t]) / total / heads
    return loss, found, largest
