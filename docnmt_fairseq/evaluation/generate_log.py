"""Parser for the output of ``fairseq-generate``, and its translations in document order."""

import re
from pathlib import Path
from typing import Collection, Dict, Iterable, List, Optional, Set

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import WORD_BEGINS
from docnmt_fairseq.errors import InputError

_LINE = re.compile(r"([HD])-(\d+)\t(?:-?inf|nan|-?[\d.]+(?:e[-+]\d+)?)(?:\t(.*))?")  # id, score, text
_BPE = re.compile(r"\S@@(?: |$)")  # continued subword of subword-nmt
_MAX_IDS = 5  # shown in errors


def parse_generate_log(path: Path) -> Dict[int, str]:
    """Returns the best hypothesis of every sample id, in the order of the log.

    The first hypothesis of an id is the best one, since fairseq sorts ``--nbest``. Its detokenised form (line ``D``) is
    preferred to line ``H``.

    Raises:
        InputError: no hypotheses, or repeated ids.
    """
    repeated: Set[int] = set()
    raw: Dict[int, str] = {}
    detokenised: Dict[int, str] = {}
    last = None
    for match in filter(None, map(_LINE.fullmatch, read_lines(path))):
        sample, text = int(match[2]), (match[3] or "").strip()
        if match[1] == "D":
            detokenised.setdefault(sample, text)
            continue
        if sample in raw and sample != last:  # the hypotheses of one --nbest are adjacent
            repeated.add(sample)
        last = sample
        raw.setdefault(sample, text)
    if not raw:
        raise InputError(f"{path}: no line H-<id>; expected the output of fairseq-generate, without --quiet")
    if repeated:
        raise InputError(f"{path}: repeated ids {_first(repeated)}; expected the log of one run")
    return {**raw, **detokenised}


def restore_document_order(log: Path, delimited: Path) -> List[str]:
    """Returns one line per line of ``delimited``: the hypothesis of a sentence, or the boundary itself.

    Args:
        log: output of ``fairseq-generate``; sample ids are line numbers of ``delimited``, from 0.
        delimited: translated source text.

    Raises:
        InputError: see :func:`parse_generate_log`; sentences without a hypothesis, or ids beyond the text.
    """
    hypotheses = parse_generate_log(log)
    lines = list(read_lines(delimited))
    beyond = [i for i in hypotheses if i >= len(lines)]
    if beyond:
        raise InputError(f"{log}: ids beyond the {len(lines)} lines of {delimited}: {_first(beyond)}")
    missing = [i for i, line in enumerate(lines) if not is_boundary(line) and i not in hypotheses]
    if missing:
        # fairseq's own tasks drop the last sentences if their number is not a multiple of this option.
        remedy = "generate the whole split, with --required-batch-size-multiple 1"
        raise InputError(f"{log}: ids of {delimited} without a hypothesis: {_first(missing)}; {remedy}")
    # Tasks that do not know boundaries have translated them; those hypotheses are ignored.
    return [line if is_boundary(line) else hypotheses[i] for i, line in enumerate(lines)]


def subword_mark(lines: Iterable[str]) -> Optional[str]:
    """Subword marker found in the lines, or None for text of whole words."""
    for line in lines:
        if WORD_BEGINS in line:
            return WORD_BEGINS
        if _BPE.search(line):
            return "@@"
    return None


def _first(ids: Collection[int]) -> str:
    ordered = sorted(ids)
    more = f" and {len(ordered) - _MAX_IDS} more" if len(ordered) > _MAX_IDS else ""
    return ", ".join(map(str, ordered[:_MAX_IDS])) + more
