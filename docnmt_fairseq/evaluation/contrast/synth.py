"""Contrastive set of an artificial corpus: every context-dependent word in its document, with its incorrect forms."""

from pathlib import Path
from typing import Dict, List

from docnmt_fairseq.boundaries import levels_ended
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth import read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import Attribute, ContrastItem, ItemDocument, checked, read_json

SUFFIX = ".phenomena.tsv"


def read(table: Path) -> List[ContrastItem]:
    """Reads the items of a split, each with its whole document.

    Args:
        table: ``SPLIT.phenomena.tsv`` of ``docnmt synth``, next to the texts and ``lexicon.json``.

    Raises:
        InputError: missing files, or files of different corpora.
    """
    options = read_json(table.parent / "lexicon.json", dict)["options"]
    split = table.name.removesuffix(SUFFIX)
    files = [table.parent / f"{split}.{options[f'{side}_lang']}" for side in ("source", "target")]
    source, target = (list(read_lines(file)) for file in files)
    starts = _document_starts(source)
    documents: Dict[int, ItemDocument] = {}
    items = []
    for number, case in enumerate(read_cases(table), start=2):
        where = f"{table}:{number}"
        words = target[case.id].split() if case.id in starts else []
        if case.position >= len(words) or words[case.position] != case.right:
            raise InputError(f"{where}: line {case.id + 1} of {files[1]} does not have '{case.right}' there")
        start = starts[case.id]
        end = next((line for line in range(case.id, len(source)) if not source[line]), len(source))
        whole = ItemDocument(f"document from line {start + 1}", tuple(source[start:end]), tuple(target[start:end]))
        document = documents.setdefault(start, whole)
        variants = (
            " ".join([*words[: case.position], form, *words[case.position + 1 :]]) for form in (case.right, *case.wrong)
        )
        candidates = tuple({case.id - start: variant} for variant in variants)
        attributes: Dict[str, Attribute] = {"phenomenon": case.kind, "distance": case.distance}
        items.append(checked(ContrastItem(where, document, candidates, 0, attributes)))
    return items


def _document_starts(lines: List[str]) -> Dict[int, int]:
    """First line of the document of each sentence."""
    starts, start = {}, 0
    for number, line in enumerate(lines):
        if not line:
            start = number + 1
        elif not levels_ended(line):
            starts[number] = start
    return starts
