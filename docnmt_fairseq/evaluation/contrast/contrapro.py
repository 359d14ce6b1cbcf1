"""ContraPro (Müller et al., WMT 2018): English pronouns in German; also sets for other languages of the same format."""

import logging
from itertools import accumulate
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.fields import get, read_json
from docnmt_fairseq.evaluation.contrast.items import Document, Fact, Item, check, distance_group

logger = logging.getLogger(__name__)

Context = Tuple[List[str], List[str]]  # source and target sentences before an item's


def read(
    path: Path,
    languages: Sequence[str],
    documents: Optional[Path] = None,
    context: Optional[str] = None,
    sentences: int = 10,
) -> List[Item]:
    """Reads the items of ``contrapro.json``, each with the sentences before it.

    Args:
        path: the JSON.
        languages: suffixes of source and target files.
        documents: folder with the documents that ContraPro's set-up makes of OpenSubtitles, at any depth.
        context: instead of these PREFIX of the ``PREFIX.LANGUAGE`` files that its conversion script writes: for every
            candidate (or for every item) equally many lines, empty ones where there is no context.
        sentences: of context at most, taken from the documents; 0: all.

    Raises:
        InputError: a field or a document is missing, or not what it should be; names item and field.
    """
    entries = read_json(path, list)
    wheres = [f"{path}: item {number}" for number in range(len(entries))]
    errors = [get(entry, "errors", list, where) for entry, where in zip(entries, wheres)]
    if documents is not None:
        contexts = _Documents(documents, languages, sentences).contexts(entries, wheres)
    elif context is not None:
        contexts = _plain_contexts(context, languages, [1 + len(of_item) for of_item in errors])
    else:
        logger.warning(f"{path}: neither --documents nor --context-files: every sentence stands alone")
        contexts = iter([([], [])] * len(entries))
    items = []
    for entry, where, of_item, (source, target) in zip(entries, wheres, errors, contexts):
        false = [get(error, "contrastive", str, f"{where}, error {place}") for place, error in enumerate(of_item)]
        texts = [get(entry, "ref segment", str, where), *false]
        document = Document(
            str(entry.get("document id", where)),
            (*source, get(entry, "src segment", str, where)),
            (*target, texts[0]),
        )
        candidates = tuple({len(source): text} for text in texts)
        items.append(check(Item(where, document, candidates, 0, _facts(entry, where))))
    return items


def _facts(entry: Any, where: str) -> Dict[str, Fact]:
    distance = distance_group(get(entry, "ante distance", int, where))
    pronouns = {name: get(entry, f"{name} pronoun", str, where).lower() for name in ("src", "ref")}
    return {
        "distance": distance,
        "pronoun": pronouns["ref"],
        "source pronoun and pronoun": f"{pronouns['src']} - {pronouns['ref']}",
    }


class _Documents:
    """The documents of OpenSubtitles, a file a side; ``document id`` is the name of the target's."""

    def __init__(self, folder: Path, languages: Sequence[str], sentences: int):
        if not folder.is_dir():
            raise InputError(f"--documents {folder}: no such folder")
        if sentences < 0:
            raise InputError(f"--context-sentences {sentences}: at least 0")
        self.languages, self.sentences = languages, sentences
        self.paths = {path.name: path for path in sorted(folder.rglob(f"*.{languages[1]}"))}
        self.folder = folder

    def contexts(self, entries: List[Any], wheres: List[str]) -> Iterator[Context]:
        """Yields what stands before each item, having read each document once and kept one."""
        last: Tuple[str, List[List[str]]] = ("", [])
        for entry, where in zip(entries, wheres):
            name, number = get(entry, "document id", str, where), get(entry, "segment id", int, where)
            if name != last[0]:
                last = (name, self._read(name, where))
            source, target = last[1]
            if not 1 <= number <= len(source):
                raise InputError(f"{where}: field 'segment id' is {number}, document {name} has {len(source)} lines")
            if _letters(source[number - 1]) != _letters(get(entry, "src segment", str, where)):
                raise InputError(
                    f"{where}: field 'src segment' is not line {number} of document {name}: '{source[number - 1]}'; "
                    "documents of another release?"
                )
            start = max(0, number - 1 - self.sentences) if self.sentences else 0
            yield _without_empty(source[start : number - 1], target[start : number - 1])

    def _read(self, name: str, where: str) -> List[List[str]]:
        path = self.paths.get(name)
        if path is None:
            raise InputError(f"{where}: field 'document id': no {name} in {self.folder}")
        other = path.with_name(path.name[: -len(self.languages[1])] + self.languages[0])
        sides = [list(read_lines(file)) for file in (other, path)]
        if len(sides[0]) != len(sides[1]):
            raise InputError(f"{path}: {len(sides[1])} lines, {other} has {len(sides[0])}")
        return sides


def _plain_contexts(prefix: str, languages: Sequence[str], candidates: List[int]) -> Iterator[Context]:
    """Yields the contexts of the items from files with as many lines for each candidate, or for each item."""
    files = [Path(f"{prefix}.{language}") for language in languages]
    source, target = (list(read_lines(file)) for file in files)
    if len(source) != len(target):
        raise InputError(f"{files[0]} has {len(source)} lines, {files[1]} {len(target)}")
    lines = list(zip(source, target))
    for counts in (candidates, [1] * len(candidates)):
        each = len(lines) // sum(counts)
        starts = [each * number for number in accumulate(counts, initial=0)]
        # The candidates of an item have the same context: so one layout is told from the other.
        repeated = all(
            lines[start : start + each] * count == lines[start:end]
            for count, start, end in zip(counts, starts, starts[1:])
        )
        if each and repeated and starts[-1] == len(lines):
            break
    else:
        raise InputError(
            f"{files[0]}: {len(source)} lines, not as many for each of the {sum(candidates)} candidates (equal ones "
            f"for those of an item), nor for each of the {len(candidates)} items"
        )
    for start in starts[:-1]:
        yield _without_empty(source[start : start + each], target[start : start + each])


def _without_empty(source: List[str], target: List[str]) -> Context:
    """The pairs that have both sides."""
    kept = [pair for pair in zip(source, target) if all(side.strip() for side in pair)]
    return [one for one, _ in kept], [other for _, other in kept]


def _letters(text: str) -> str:
    """A sentence without its white space."""
    return "".join(text.split())
