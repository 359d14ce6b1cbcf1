"""The scores of a translated test set, as a recipe keeps and tabulates them."""

from pathlib import Path
from typing import Any, Dict

from docnmt_fairseq.evaluation.postprocess import Translation, read_text_as_translation
from docnmt_fairseq.evaluation.scores import corpus_scores, human_targeted_error_rate, tokenized_bleu

Scores = Dict[str, Any]  # of one model and seed: bleu_tokens, bleu, chrf, perhaps hter, sentences, signatures


def scores_of(found: Translation, post_editing: bool) -> Scores:
    """Returns the scores of a translation.

    Args:
        found: beside its reference.
        post_editing: the reference is a post-edit, so that there is HTER, too.
    """
    plain = corpus_scores(found.text, found.reference_text, "zh" if found.tokenizer == "jieba" else None)
    tokens = tokenized_bleu(found.tokens, found.reference_tokens)
    scores: Scores = {**plain.to_json(), "bleu_tokens": tokens.bleu, "bleu_tokens_signature": tokens.signature}
    if post_editing:
        edits = human_targeted_error_rate(found.tokens, found.reference_tokens)
        scores.update(hter=edits.hter, hter_signature=edits.signature)
    return scores


def scores_of_unchanged(data: Path, side: str) -> Scores:
    """Returns the scores of a machine translation that nobody edits.

    Args:
        data: what ``docnmt prepare`` wrote.
        side: that holds the translation.
    """
    return scores_of(read_text_as_translation(data, "test", side), post_editing=True)
