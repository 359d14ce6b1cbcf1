"""English-French discourse sets of Bawden et al. (NAACL 2018): ``anaphora.json`` and ``lexical-choice.json``."""

from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from docnmt_fairseq.evaluation.contrast.items import ContrastItem, ItemDocument, checked, item_errors, read_json


def read(path: Path) -> List[ContrastItem]:
    """Reads the items of either set, in the order of their numbers; the previous sentence is the context.

    Raises:
        InputError: invalid fields; names item and field.
    """
    blocks: Dict[str, Any] = read_json(path, dict)
    items = []
    for name in sorted(blocks, key=lambda name: int(name) if name.isdecimal() else -1):
        where = f"{path}: item {name}"
        with item_errors(where):
            for part, (previous, current), pair, phenomenon in _pairs(blocks[name], where):
                (before, true), (_, false) = pair[_correct_field(pair)], pair["incorrect"]
                document = ItemDocument(where, (previous, current), (before, true))
                attributes = {"phenomenon": phenomenon}
                items.append(checked(ContrastItem(part, document, ({1: true}, {1: false}), 0, attributes)))
    return items


def _correct_field(pair: Dict[str, Any]) -> str:
    return "correct" if "correct" in pair else "semi-correct"


def _pairs(block: Dict[str, Any], where: str) -> Iterator[Tuple[str, List[str], Dict[str, Any], str]]:
    """Yields name, source, pair of translations and phenomenon of every item of a block."""
    if "examples" in block:
        kind = f"lexical choice, {block['type']}" if "type" in block else "lexical choice"
        for number, example in enumerate(block["examples"]):
            yield f"{where}, example {number}", example["src"], example["trg"], kind
        return
    for number, pair in enumerate(block["trg"]):
        kind = f"anaphora, {_correct_field(pair)}" + (f", {pair['type']}" if "type" in pair else "")
        yield f"{where}, translation {number}", block["src"], pair, kind
