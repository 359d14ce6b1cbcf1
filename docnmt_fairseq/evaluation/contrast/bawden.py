"""English-French discourse sets of Bawden et al. (NAACL 2018): ``anaphora.json`` and ``lexical-choice.json``."""

from pathlib import Path
from typing import Any, Iterator, List, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import ContrastItem, ItemDocument, checked, get, get_texts, read_json

SENTENCES = 2  # previous and current


def read(path: Path) -> List[ContrastItem]:
    """Reads the items of either set, in the order of their numbers; the previous sentence is the context.

    Raises:
        InputError: invalid fields; names item and field.
    """
    blocks = read_json(path, dict)
    items = []
    for name in sorted(blocks, key=lambda name: int(name) if name.isdecimal() else -1):
        block, where = blocks[name], f"{path}: item {name}"
        for part, source, pair, kind in _pairs(block, where):
            right = _correct_field(pair)
            true, false = (get_texts(pair, field, part, SENTENCES) for field in (right, "incorrect"))
            if true[0] != false[0]:
                raise InputError(f"{part}: fields '{right}' and 'incorrect' differ in the previous sentence")
            document = ItemDocument(where, tuple(source), tuple(true))
            candidates = ({1: true[1]}, {1: false[1]})
            items.append(checked(ContrastItem(part, document, candidates, 0, {"phenomenon": kind})))
    return items


def _correct_field(pair: Any) -> str:
    return "correct" if "correct" in pair else "semi-correct"


def _pairs(block: Any, where: str) -> Iterator[Tuple[str, List[str], Any, str]]:
    """Yields name, source, pair of translations and phenomenon of every item of a block."""
    if isinstance(block, dict) and "examples" in block:
        kind = f"lexical choice, {block['type']}" if isinstance(block.get("type"), str) else "lexical choice"
        for number, example in enumerate(get(block, "examples", list, where)):
            part = f"{where}, example {number}"
            yield part, get_texts(example, "src", part, SENTENCES), get(example, "trg", dict, part), kind
        return
    source = get_texts(block, "src", where, SENTENCES)
    for number, pair in enumerate(get(block, "trg", list, where)):
        kind = f", {pair['type']}" if isinstance(pair, dict) and isinstance(pair.get("type"), str) else ""
        yield f"{where}, translation {number}", source, pair, f"anaphora, {_correct_field(pair)}{kind}"
