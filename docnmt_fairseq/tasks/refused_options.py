"""What the tasks refuse of fairseq's options of a search, before anything is read, trained or translated."""

import json
from dataclasses import fields
from typing import Any, Iterator, Sequence

from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel, FairseqLanguageModel

from docnmt_fairseq.generating import problems_of_post_processing
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.trained_dictionaries import digest_of

SEARCH = frozenset(known.name for known in fields(GenerationConfig))
NUMBERS = ("lenpen", "unkpen", "temperature", "min_len")  # that mean the same to fairseq's search as to ours


def problems_of_search(models: Sequence[BaseFairseqModel], args: Any) -> Iterator[str]:
    """Why models cannot be searched so, if they cannot, by the options' flags."""
    if getattr(args, "constraints", None):
        yield "--constraints needs sentences without documents: use fairseq's own translation task"
    if getattr(args, "diverse_beam_groups", 0) > 0:
        yield (
            "--diverse-beam-groups: fairseq takes ids of sentences for places in the batch there, and fails; use "
            "--diversity-rate or --sampling"
        )
    beam, best = getattr(args, "beam", 1), getattr(args, "nbest", 1)
    if best > beam and not getattr(args, "score_reference", False):
        yield f"--nbest {best}: at most {beam}, which is --beam"
    if getattr(args, "eos_token", None):
        yield f"--eos-token {args.eos_token}: not read by these tasks; what ends sentences is the dictionary's own"
    if getattr(args, "print_alignment", None) and not all(getattr(model, "gives_alignment", True) for model in models):
        yield "--print-alignment: document_rnn, or --attention-combination, gives no alignments"
    named = (*NUMBERS, "max_len_a", "max_len_b") if not getattr(args, "max_len_a", 0) else (*NUMBERS, "max_len_a")
    yield from SearchOptions(**{name: getattr(args, name) for name in named if hasattr(args, name)}).problems()


def problems_of_language_model(model: Any, target: Dictionary) -> Iterator[str]:
    """Why ``--lm-path`` cannot have its say in a search: it gives no probabilities of the target's tokens.

    Args:
        model: that was loaded; None: no such option.
        target: dictionary of the target.
    """
    if model is None:
        return
    if not isinstance(model, FairseqLanguageModel):
        yield f"--lm-path: is no language model, but a {type(model).__name__}; give one of fairseq's language_modeling"
    elif digest_of(model.decoder.dictionary) != digest_of(target):
        yield (
            "--lm-path: the language model has other symbols than the target, or in another order; train it with the "
            "target's dictionary (fairseq-preprocess --only-source --srcdict)"
        )


def problems_of_bleu(cfg: Any) -> Iterator[str]:
    """What is wrong with the options of ``--eval-bleu``, if they are read: JSON that is none, unknown subwords."""
    if cfg.eval_bleu:
        yield from problems_of_post_processing("--eval-bleu-remove-bpe", cfg.eval_bleu_remove_bpe)
    for name in ("eval_bleu_args", "eval_bleu_detok_args") if cfg.eval_bleu else ():
        text = getattr(cfg, name)
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            yield f"{flag_of(name)} {text}: not JSON of options by name; give e.g. '{{\"beam\": 4}}'"
        elif name == "eval_bleu_args" and not SEARCH.issuperset(found):
            unknown = sorted(set(found) - SEARCH)[0]
            yield f"{flag_of(name)}: no option {unknown!r} of a search; give those of fairseq-generate, e.g. max_len_a"
