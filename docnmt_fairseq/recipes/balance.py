"""A training set in which no register is the likelier one: documents of the rarer register come several times."""

import logging
import random
from collections import Counter
from typing import Counter as CounterOf
from typing import Iterator, List, Optional

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.recipes.select import Documents

logger = logging.getLogger(__name__)


def marked_lines(document: Document, rule: RegisterRule) -> CounterOf[str]:
    """How many of a document's target sentences surely show each register."""
    shown = (rule.register_of(target, unambiguous_only=True) for _, target, *_ in document.sentences())
    return Counter(register for register in shown if register is not None)


def repetitions(marked: List[CounterOf[str]], seed: int = 1) -> List[int]:
    """How often each document comes, so that every register marks about as many lines as the commonest.

    A document counts for the register of most of its marked lines; one that shows none, or two equally, comes once.

    Args:
        marked: lines of every register, by document.
        seed: of the choice of those documents that come once more than others of their register.

    Raises:
        InputError: fewer than two registers are shown at all.
    """
    registers = [_most(counts) for counts in marked]
    lines: CounterOf[str] = Counter()
    for register, counts in zip(registers, marked):
        if register is not None:
            lines[register] += counts[register]
    if len(lines) < 2:
        raise InputError(f"balance_register: the training set shows no two registers: {dict(lines)}")
    times = [1] * len(marked)
    commonest = max(lines.values())
    for register, count in sorted(lines.items()):
        whole, more = divmod(commonest, count)
        of_register = [document for document, one in enumerate(registers) if one == register]
        random.Random(seed).shuffle(of_register)
        for document in of_register:
            times[document] = whole + (more > 0)
            more -= marked[document][register]
    return times


def _most(counts: CounterOf[str]) -> Optional[str]:
    """The register of most lines, None where there is none or a tie."""
    first = counts.most_common(2)
    return first[0][0] if first and (len(first) == 1 or first[0][1] > first[1][1]) else None


def balanced(documents: Documents, language: str) -> Documents:
    """The function that reads a training set anew with its repetitions, all copies after the originals.

    Args:
        documents: reads it.
        language: of the target side, a code of :data:`~docnmt_fairseq.evaluation.register.RULES`.
    """
    rule = RULES[language]()

    def read() -> Iterator[Document]:
        marked = [marked_lines(document, rule) for document in documents()]
        times = repetitions(marked)
        lines: CounterOf[str] = Counter()
        for counts, copies in zip(marked, times):
            lines.update({register: count * copies for register, count in counts.items()})
        more = sum(times) - len(times)
        logger.info(f"train: {more:,} copies of documents of the rarer register; marked lines now: {dict(lines)}")
        for again in range(max(times)):
            for copies, document in zip(times, documents()):
                if copies > again:
                    yield document

    return read
