"""The English-French discourse sets of Bawden et al. (NAACL 2018): ``anaphora.json`` and ``lexical-choice.json``."""

from pathlib import Path
from typing import Any, Iterator, List, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.fields import get, read_json, texts
from docnmt_fairseq.evaluation.contrast.items import Document, Item, check

SENTENCES = 2  # the previous and the current one


def read(path: Path) -> List[Item]:
    """Reads the items of either set, in the order of their numbers; the previous sentence is the context.

    Raises:
        InputError: a field is missing or wrong; names item and field.
    """
    blocks = read_json(path, dict)
    bad = next((name for name in blocks if not name.isdecimal()), None)
    if bad is not None:
        raise InputError(f"{path}: item '{bad}': items are numbered")
    items = []
    for name in sorted(blocks, key=int):
        block, where = blocks[name], f"{path}: item {name}"
        for part, source, pair, kind in _questions(block, where):
            right = "correct" if "correct" in pair else "semi-correct"
            true, false = (texts(pair, field, part, SENTENCES) for field in (right, "incorrect"))
            if true[0] != false[0]:
                raise InputError(f"{part}: fields '{right}' and 'incorrect' differ in the previous sentence")
            document = Document(where, tuple(source), tuple(true))
            items.append(check(Item(part, document, ({1: true[1]}, {1: false[1]}), 0, {"phenomenon": kind})))
    return items


def _questions(block: Any, where: str) -> Iterator[Tuple[str, List[str], Any, str]]:
    """Yields the name of every question of a block, its source, its two translations and its kind."""
    if isinstance(block, dict) and "examples" in block:
        kind = f"lexical choice, {block['type']}" if isinstance(block.get("type"), str) else "lexical choice"
        for number, example in enumerate(get(block, "examples", list, where)):
            part = f"{where}, example {number}"
            yield part, texts(example, "src", part, SENTENCES), get(example, "trg", dict, part), kind
        return
    source = texts(block, "src", where, SENTENCES)
    for number, pair in enumerate(get(block, "trg", list, where)):
        part = f"{where}, translation {number}"
        if not isinstance(pair, dict):
            raise InputError(f"{part}: expected {{correct, incorrect, type}}")
        right = "correct" if "correct" in pair else "semi-correct"
        kind = f", {pair['type']}" if isinstance(pair.get("type"), str) else ""
        yield part, source, pair, f"anaphora, {right}{kind}"
