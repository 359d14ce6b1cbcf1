"""Consistency sets of Voita, Sennrich and Titov (ACL 2019), and ``SPLIT.contrastive.json`` of ``docnmt synth``."""

from pathlib import Path
from typing import Dict, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import (
    Attribute,
    ContrastItem,
    ItemDocument,
    checked,
    get,
    get_texts,
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
        source = _sentences(get(entry, "src", str, where))
        candidates = [_sentences(candidate) for candidate in get_texts(entry, "dst", where)]
        for place, candidate in enumerate(candidates):
            if len(candidate) != len(source):
                raise InputError(f"{where}: dst[{place}] has {len(candidate)} sentences, but src has {len(source)}")
        right = get(entry, "true_ind", int, where)
        if not 0 <= right < len(candidates):
            raise InputError(f"{where}: field 'true_ind' is {right}, but there are {len(candidates)} candidates")
        differing = [line for line, of_line in enumerate(zip(*candidates)) if len(set(of_line)) > 1]
        last = len(source) - 1
        judged = range(min(differing, default=last), last + 1)
        document = ItemDocument(where, tuple(source), tuple(candidates[right]))
        variants = tuple({line: candidate[line] for line in judged} for candidate in candidates)
        attributes: Dict[str, Attribute] = {}
        if "kind" in entry:
            attributes["phenomenon"] = get(entry, "kind", str, where)
        if "ctx_dist" in entry:
            attributes["distance"] = get(entry, "ctx_dist", int, where)
        items.append(checked(ContrastItem(where, document, variants, right, attributes)))
    return items


def _sentences(text: str) -> List[str]:
    return [sentence.strip() for sentence in f" {text} ".split(f" {SEPARATOR} ")]
