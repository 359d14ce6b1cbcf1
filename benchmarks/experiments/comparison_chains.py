"""How far a window over earlier translations reaches: what they hold may itself come from further back."""

from pathlib import Path
from typing import Dict, List, Sequence

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth.table import Case, read_cases
from docnmt_fairseq.evaluation.generate_log import sentence_ids


def in_reach(cases: Sequence[Case], sentences: Sequence[int], back: int) -> List[bool]:
    """Returns for each case whether the target sentences in sight tell how it is decided.

    They do if the deciding sentence is among them, or a word of the same kind that it decides and that was itself in
    reach: a translation carries the decision on.

    Args:
        cases: in the order of the text.
        sentences: line numbers of the sentences, ascending.
        back: sentences in sight before each.
    """
    number = {line: n for n, line in enumerate(sentences)}
    reached: Dict[tuple, bool] = {}  # by kind, deciding sentence and own sentence
    found = []
    for case in cases:
        own = number[case.id]
        decider = own - case.distance
        by_way = any(reached.get((case.kind, decider, other), False) for other in range(own - back, own))
        found.append(case.distance <= back or by_way)
        reached[case.kind, decider, own] = found[-1]
    return found


def chained(corpus: Path, back: int) -> Dict[str, Dict[str, List[int]]]:
    """Returns {kind: {distance: [in reach, cases]}} of an artificial corpus's test documents."""
    cases = sorted(read_cases(corpus / "test.phenomena.tsv"), key=lambda case: case.id)
    counts: Dict[str, Dict[str, List[int]]] = {}
    sentences = sentence_ids(list(read_lines(corpus / "test.src")))
    for case, reached in zip(cases, in_reach(cases, sentences, back)):
        figure = counts.setdefault(case.kind, {}).setdefault(str(case.distance), [0, 0])
        figure[0] += reached
        figure[1] += 1
    return counts
