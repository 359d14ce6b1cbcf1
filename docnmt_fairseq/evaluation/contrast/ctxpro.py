"""CTXPRO (Wicks and Post, WMT 2023): does the translation hold the form that context asks for?"""

import re
import string
from pathlib import Path
from typing import Dict, List, Optional

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.fields import get, read_json
from docnmt_fairseq.evaluation.contrast.items import Document, Fact, GenerationItem, distance_group

JOINT = "<eos>"  # stands between the sentences of an input, the current one last
_JOINTS = re.compile("<eos>|<brk>")  # in translations, also the break of concatenated sentences
_END = re.compile(r"(\S{0,12})[.!?…][\"'’”“»)\]]*\s+")
_SHORT = re.compile(r"\W*(?:[^\W\d]|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Hr|Fr|Sr|Sra|Mme|Mlle)")  # no sentence ends there
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def read(path: Path, inputs: Optional[Path] = None) -> List[GenerationItem]:
    """Reads the items of a JSON list with ``src segment``, ``expected`` and ``rule``.

    Args:
        path: the JSON.
        inputs: a line an item, its context and itself; None: every sentence stands alone.

    Raises:
        InputError: a field is missing or wrong, or other inputs than items; names item and field.
    """
    entries = read_json(path, list)
    lines = None if inputs is None else list(read_lines(inputs))
    if lines is not None and len(lines) != len(entries):
        raise InputError(f"{inputs}: {len(lines)} lines, but {path} has {len(entries)} items")
    items = []
    for number, entry in enumerate(entries):
        where = f"{path}: item {number}"
        current = get(entry, "src segment", str, where)
        sentences = [current]
        if lines is not None:
            sentences = [sentence.strip() for sentence in lines[number].split(JOINT) if sentence.strip()]
            if not sentences or "".join(sentences[-1].split()) != "".join(current.split()):
                raise InputError(f"{where}: field 'src segment' does not end line {number + 1} of {inputs}")
        facts: Dict[str, Fact] = {"rule": get(entry, "rule", str, where)}
        if entry.get("ante distance") is not None:
            facts["distance"] = distance_group(get(entry, "ante distance", int, where))
        if entry.get("src pronoun") is not None:
            facts["source pronoun"] = get(entry, "src pronoun", str, where).lower()
        document = Document(str(entry.get("document id", where)), tuple(sentences))
        items.append(GenerationItem(where, document, len(sentences) - 1, get(entry, "expected", str, where), facts))
    return items


def own_part(translation: str, item: GenerationItem) -> str:
    """What translates the item's sentence in a line that may translate its context, too.

    The part behind the last ``<eos>`` (or ``<brk>``); without them, where the item has context, the last sentence, as
    the set's own scorer takes it. A sentence ends at . ! ? or …, unless a small letter follows, or the point is that of
    an abbreviation.
    """
    parts = [part.strip() for part in _JOINTS.split(translation) if part.strip()]
    own = parts[-1] if parts else ""
    if len(parts) > 1 or not item.line:
        return own
    starts = [end.end() for end in _END.finditer(own) if not _goes_on(own, end)]
    return own[max(starts, default=0) :]


def _goes_on(text: str, end: "re.Match[str]") -> bool:
    following = text[end.end() : end.end() + 1]
    return not following or following.islower() or (text[end.end(1)] == "." and _SHORT.fullmatch(end[1]) is not None)


def holds(translation: str, expected: str) -> bool:
    """Whether a translation has the expected form among its words, case and ASCII punctuation aside."""
    words = " ".join(translation.lower().translate(_NO_PUNCTUATION).split())
    return f" {' '.join(expected.lower().split())} " in f" {words} "
