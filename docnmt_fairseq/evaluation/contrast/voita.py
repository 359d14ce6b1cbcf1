"""The consistency sets of Voita, Sennrich and Titov (ACL 2019), and ``SPLIT.contrastive.json`` of ``docnmt synth``."""

from pathlib import Path
from typing import Dict, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.fields import get, read_json, texts
from docnmt_fairseq.evaluation.contrast.items import Document, Fact, Item, check

JOINT = "_eos"  # stands between sentences


def read(path: Path) -> List[Item]:
    """Reads the items of a JSON list of ``{src, dst, true_ind, ctx_dist}``.

    Candidates are judged on the sentences from the first in which they differ, with all sentences before as context:
    to a model that sees its translations, a sentence that all have alike is likelier after one than after another.

    Raises:
        InputError: a field is missing or wrong, or candidates of other numbers of sentences; names item and field.
    """
    items = []
    for number, entry in enumerate(read_json(path, list)):
        where = f"{path}: item {number}"
        source = _sentences(get(entry, "src", str, where))
        candidates = [_sentences(candidate) for candidate in texts(entry, "dst", where)]
        for place, candidate in enumerate(candidates):
            if len(candidate) != len(source):
                raise InputError(
                    f"{where}: element {place} of 'dst' has {len(candidate)} sentences, 'src' has {len(source)}"
                )
        right = get(entry, "true_ind", int, where)
        if not 0 <= right < len(candidates):
            raise InputError(f"{where}: field 'true_ind' is {right}, but there are {len(candidates)} candidates")
        differing = [line for line, of_line in enumerate(zip(*candidates)) if len(set(of_line)) > 1]
        last = len(source) - 1
        judged = range(min(differing, default=last), last + 1)  # where all are alike: refused below, by name
        document = Document(where, tuple(source), tuple(candidates[right]))
        variants = tuple({line: candidate[line] for line in judged} for candidate in candidates)
        facts: Dict[str, Fact] = {}
        if "kind" in entry:
            facts["phenomenon"] = get(entry, "kind", str, where)
        if "ctx_dist" in entry:
            facts["distance"] = get(entry, "ctx_dist", int, where)
        items.append(check(Item(where, document, variants, right, facts)))
    return items


def _sentences(text: str) -> List[str]:
    return [sentence.strip() for sentence in f" {text} ".split(f" {JOINT} ")]
