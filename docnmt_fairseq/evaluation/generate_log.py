"""What ``fairseq-generate`` prints, laid back into the documents it came from."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Collection, Dict, Iterable, List, Optional, Sequence, Set

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.joining import WORD_BEGINS
from docnmt_fairseq.corpus.transform import transform_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark

_LINE = re.compile(r"([STHDP])-(\d+)(?:\t(.*))?")
_JOINED_BPE = re.compile(r"\S@@(?: |$)")  # a subword of subword-nmt that is joined to the next
_SHOWN = 5


@dataclass
class _Log:
    """The lines of a log by letter; ``sources`` and ``hypotheses`` count how often an id came.

    ``again`` are the ids whose hypotheses do not stand together, as those of one ``--nbest`` do.
    """

    sources: Counter[int] = field(default_factory=Counter)
    hypotheses: Counter[int] = field(default_factory=Counter)
    again: Set[int] = field(default_factory=set)
    raw: Dict[int, str] = field(default_factory=dict)
    detokenised: Dict[int, str] = field(default_factory=dict)


def parse_generate_log(path: Path) -> Dict[int, str]:
    """Reads the best hypothesis of every sample id, in the order of the log.

    The best one is the first: fairseq prints the ``--nbest`` of a sentence best first. Its detokenised form (line
    ``D``) is taken where the log has it, else its plain form (line ``H``). Other lines are passed over.

    Raises:
        InputError: no such file, no hypotheses in it, a malformed line, or ids that come twice; names the first few.
    """
    log = _read(path)
    repeated = {i for i, count in log.sources.items() if count > 1} | log.again
    if not log.sources and log.hypotheses:  # a log reduced to hypotheses: with --nbest all ids come equally often
        fewest = min(log.hypotheses.values())
        repeated |= {i for i, count in log.hypotheses.items() if count > fewest}
    if repeated:
        raise InputError(f"{path}: ids that come more than once: {_first(repeated)}; give the log of one run")
    silent = set(log.sources) - set(log.hypotheses)
    if silent:
        raise InputError(f"{path}: ids without a hypothesis: {_first(silent)}; the log is cut short, generate again")
    if not log.raw:
        raise InputError(f"{path}: holds no line H-<id>; give the output of fairseq-generate, without --quiet")
    return {**log.raw, **log.detokenised}


def restore_document_order(log: Path, delimited: Path) -> List[str]:
    """Puts one line for each line of ``delimited``: its hypothesis, or its own mark (empty line or ``<p>``).

    Args:
        log: the output of ``fairseq-generate``; sample ids are line numbers of ``delimited``, from 0.
        delimited: the delimited source text that was translated.

    Raises:
        InputError: as for ``parse_generate_log``; or a sentence without a hypothesis, or an id beyond the text.
    """
    hypotheses = parse_generate_log(log)
    lines = list(read_lines(delimited))
    beyond = [i for i in hypotheses if i >= len(lines)]
    if beyond:
        raise InputError(
            f"{log}: ids beyond the {len(lines)} lines of {delimited}: {_first(beyond)}; give its own text"
        )
    missing = [i for i in sentence_ids(lines) if i not in hypotheses]
    if missing:
        # fairseq's own tasks lose the last sentences when their number is no multiple of this option.
        remedy = "generate the whole split, with --required-batch-size-multiple 1"
        raise InputError(f"{log}: ids of {delimited} without a hypothesis: {_first(missing)}; {remedy}")
    # Marks may have been "translated" too, by a task that does not know them.
    return transform_lines(lines, lambda _: [hypotheses[i] for i in sentence_ids(lines)])


def sentence_ids(lines: Sequence[str]) -> List[int]:
    """The places of the lines that are sentences, not marks."""
    return [i for i, line in enumerate(lines) if not is_mark(line)]


def subword_mark(lines: Iterable[str]) -> Optional[str]:
    """The mark of subwords that were left in these lines, None if there is none."""
    for line in lines:
        if WORD_BEGINS in line:
            return WORD_BEGINS
        if _JOINED_BPE.search(line):
            return "@@"
    return None


def _read(path: Path) -> _Log:
    log, last = _Log(), None
    for number, line in enumerate(read_lines(path), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        letter, identity, rest = match[1], int(match[2]), match[3] or ""
        if letter == "S":
            log.sources[identity] += 1
        elif letter in "HD":
            score, _, text = rest.partition("\t")
            if not _is_number(score):
                raise InputError.at(
                    path, number, f"expected {letter}-{identity}<tab>score<tab>text; the log is damaged"
                )
            if letter == "H":
                if identity in log.hypotheses and identity != last:
                    log.again.add(identity)
                log.hypotheses[identity] += 1
                last = identity
            (log.raw if letter == "H" else log.detokenised).setdefault(identity, text.strip())
    return log


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first(ids: Collection[int]) -> str:
    ordered = sorted(ids)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(map(str, ordered[:_SHOWN])) + more
