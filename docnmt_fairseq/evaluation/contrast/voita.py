"""Consistency sets of Voita, Sennrich and Titov (ACL 2019), and ``SPLIT.contrastive.json`` of ``docnmt synth``."""

from pathlib import Path
from typing import Dict, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import (
    Attribute,
    ContrastItem,
    ItemDocument,
    checked,
    item_errors,
    read_json,
)

SEPARATOR = "_eos"  # between sentences


def read(path: Path) -> List[ContrastItem]:
    """Reads a JSON list of ``{src, dst, true_ind, ctx_dist}``.

    Candidates are scored from the first sentence in which they differ, with all previous sentences as context. Later
    sentences count even if all candidates share them: a model that sees its translations scores them differently.

    Raises:
        InputError: invalid fields, or candidates with a different number of sentences.
    """
    items = []
    for number, entry in enumerate(read_json(path, list)):
        where = f"{path}: item {number}"
        with item_errors(where):
            source, candidates, right = _sentences(entry["src"]), list(map(_sentences, entry["dst"])), entry["true_ind"]
            for place, candidate in enumerate(candidates):
                if len(candidate) != len(source):
                    raise InputError(f"{where}: dst[{place}] has {len(candidate)} sentences, but src has {len(source)}")
            differing = [line for line, of_line in enumerate(zip(*candidates)) if len(set(of_line)) > 1]
            last = len(source) - 1
            judged = range(min(differing, default=last), last + 1)
            document = ItemDocument(where, tuple(source), tuple(candidates[right]))
            variants = tuple({line: candidate[line] for line in judged} for candidate in candidates)
            attributes: Dict[str, Attribute] = {"phenomenon": entry["kind"]} if "kind" in entry else {}
            if "ctx_dist" in entry:
                attributes["distance"] = entry["ctx_dist"]
            items.append(checked(ContrastItem(where, document, variants, right, attributes)))
    return items


def _sentences(text: str) -> List[str]:
    return [sentence.strip() for sentence in f" {text} ".split(f" {SEPARATOR} ")]
