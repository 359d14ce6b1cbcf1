"""The artificial corpus' own set: every word that only context decides, in its document, beside its false forms."""

from pathlib import Path
from typing import Dict, List

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth.table import read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.fields import get, read_json
from docnmt_fairseq.evaluation.contrast.items import Document, Fact, Item, check
from docnmt_fairseq.marks import levels_ended

TABLE = ".phenomena.tsv"


def read(table: Path) -> List[Item]:
    """Reads the items of a split that ``docnmt synth`` wrote, all of a document with the whole of it.

    Args:
        table: ``SPLIT.phenomena.tsv``; the texts and ``lexicon.json`` stand beside it.

    Raises:
        InputError: a file is missing, or they do not fit together; names the line.
    """
    if not table.name.endswith(TABLE):
        raise InputError(f"--items {table}: expected SPLIT{TABLE} of docnmt synth")
    cases = read_cases(table)
    options = get(read_json(table.parent / "lexicon.json", dict), "options", dict, "lexicon.json")
    split = table.name[: -len(TABLE)]
    files = [
        table.parent / f"{split}.{get(options, f'{side}_lang', str, 'lexicon.json')}" for side in ("source", "target")
    ]
    source, target = (list(read_lines(file)) for file in files)
    if len(source) != len(target):
        raise InputError(f"{files[0]} has {len(source)} lines, {files[1]} {len(target)}: write the corpus again")
    starts = _starts(source)
    documents: Dict[int, Document] = {}
    items = []
    for number, case in enumerate(cases, start=2):
        where = f"{table}:{number}"
        if case.id not in starts:
            raise InputError(f"{where}: line {case.id + 1} of {files[0]} is no sentence")
        start = starts[case.id]
        end = next((line for line in range(case.id, len(source)) if not source[line]), len(source))
        whole = Document(f"document from line {start + 1}", tuple(source[start:end]), tuple(target[start:end]))
        document = documents.setdefault(start, whole)
        words = target[case.id].split()
        if case.position >= len(words) or words[case.position] != case.right:
            raise InputError(f"{where}: word {case.position} of line {case.id + 1} of {files[1]} is not '{case.right}'")
        variants = (
            " ".join([*words[: case.position], form, *words[case.position + 1 :]]) for form in (case.right, *case.wrong)
        )
        candidates = tuple({case.id - start: variant} for variant in variants)
        facts: Dict[str, Fact] = {"phenomenon": case.kind, "distance": case.distance}
        items.append(check(Item(where, document, candidates, 0, facts)))
    return items


def _starts(lines: List[str]) -> Dict[int, int]:
    """For each sentence of delimited text, the line where its document begins."""
    starts, start = {}, 0
    for number, line in enumerate(lines):
        if not line:
            start = number + 1
        elif not levels_ended(line):
            starts[number] = start
    return starts
