"""Quality of next-token predictions given the reference prefix: top-k accuracy and BLEU ([Z] sec. 4.3-4.4)."""

from typing import Any, Dict, List, Sequence

import numpy as np
from fairseq.data import Dictionary
from fairseq.logging import metrics
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

HITS, TOKENS, BLEU_SUMS = "_hits", "_topk_tokens", "_forced_"
ORDERS = 4  # n-gram orders of BLEU


def top_k_sums(logits: Tensor, target: Tensor, ranks: Sequence[int]) -> Dict[str, Tensor]:
    """Numbers of targets [tokens] among the k highest logits [tokens, V], and of all targets."""
    of_target = logits.gather(1, target[:, None])
    better = (logits > of_target).sum(1)
    sums = {f"top{k}{HITS}": (better < k).sum() for k in ranks}
    return {**sums, TOKENS: better.new_tensor(len(target))}


def forced_bleu_sums(best: Tensor, target: Tensor, real: Tensor, dictionary: Dictionary) -> Dict[str, int]:
    """Sums for the corpus BLEU of the most probable next tokens; ends of sentences are not words.

    Args:
        best, target: predicted and reference tokens [S, m_t].
        real: mask of the tokens to compare [S, m_t].
        dictionary: target dictionary.
    """

    def words(tokens: Tensor) -> List[str]:
        rows = [row[there].tolist() for row, there in zip(tokens, real)]
        return [" ".join(str(number) for number in row if number != dictionary.eos()) for row in rows]

    scored = BLEU(tokenize="none", force=True).corpus_score(words(best), [words(target)])
    sums = {f"{BLEU_SUMS}counts{n}": int(scored.counts[n]) for n in range(ORDERS)}
    sums.update({f"{BLEU_SUMS}totals{n}": int(scored.totals[n]) for n in range(ORDERS)})
    return {**sums, f"{BLEU_SUMS}sys_len": int(scored.sys_len), f"{BLEU_SUMS}ref_len": int(scored.ref_len)}


def log_sums(logging_outputs: Sequence[Dict[str, Any]]) -> None:
    """Logs ``topK_accuracy`` in per cent, and ``forced_bleu``."""
    names = {name for log in logging_outputs for name in log}

    def total(name: str) -> float:
        return float(sum(log.get(name, 0) for log in logging_outputs))

    tokens = total(TOKENS)
    for name in sorted(name for name in names if name.endswith(HITS) and tokens):
        metrics.log_scalar(f"{name[: -len(HITS)]}_accuracy", 100 * total(name) / tokens, tokens, round=2)
    if f"{BLEU_SUMS}sys_len" in names:
        for kind in ("counts", "totals"):
            metrics.log_scalar(f"{BLEU_SUMS}{kind}", np.array([total(f"{BLEU_SUMS}{kind}{n}") for n in range(ORDERS)]))
        for name in (f"{BLEU_SUMS}sys_len", f"{BLEU_SUMS}ref_len"):
            metrics.log_scalar(name, total(name))
        metrics.log_derived("forced_bleu", _bleu)


def _bleu(meters: Dict[str, Any]) -> float:
    """BLEU of the sums over all batches."""
    counts, totals = (meters[f"{BLEU_SUMS}{kind}"].sum.astype(int).tolist() for kind in ("counts", "totals"))
    sys_len, ref_len = (int(meters[f"{BLEU_SUMS}{side}"].sum) for side in ("sys_len", "ref_len"))
    return round(float(BLEU.compute_bleu(counts, totals, sys_len, ref_len, smooth_method="exp").score), 2)
