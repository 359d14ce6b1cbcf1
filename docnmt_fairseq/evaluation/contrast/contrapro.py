"""ContraPro (Müller et al., WMT 2018), English pronouns in German, and sets of the same format."""

import logging
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast.items import (
    Attribute,
    ContrastItem,
    ItemDocument,
    checked,
    distance_group,
    item_errors,
    read_json,
)

logger = logging.getLogger(__name__)

Context = Tuple[List[str], List[str]]  # previous source and target sentences


def read(
    path: Path,
    languages: Tuple[str, str],
    documents: Optional[Path] = None,
    context: Optional[str] = None,
    sentences: int = 10,
) -> List[ContrastItem]:
    """Reads ``contrapro.json``, each item with its previous sentences.

    Args:
        path: JSON file.
        languages: suffixes of source and target files.
        documents: folder with the OpenSubtitles documents of ContraPro's setup script, at any depth.
        context: PREFIX of the ``PREFIX.LANGUAGE`` files of ContraPro's conversion script, as an alternative: the same
            number of lines for every candidate, or for every item; empty lines stand for missing context.
        sentences: maximum number of previous sentences from ``documents``; 0: all.

    Raises:
        InputError: invalid fields, or missing or different documents.
    """
    entries: List[Any] = read_json(path, list)
    if documents is not None:
        contexts = _contexts_from_documents(documents, languages, sentences, entries)
    elif context is not None:
        with item_errors(str(path)):
            contexts = _contexts_from_files(context, languages, [1 + len(entry["errors"]) for entry in entries])
    else:
        logger.warning(f"{path}: no --documents or --context-files; sentences are scored without context")
        contexts = iter([([], [])] * len(entries))
    items = []
    for number, entry in enumerate(entries):
        where = f"{path}: item {number}"
        with item_errors(where):
            source, target = next(contexts)
            texts = [entry["ref segment"], *(error["contrastive"] for error in entry["errors"])]
            document = ItemDocument(
                str(entry.get("document id", where)), (*source, entry["src segment"]), (*target, texts[0])
            )
            candidates = tuple({len(source): text} for text in texts)
            pronoun, translated = (entry[f"{side} pronoun"].lower() for side in ("src", "ref"))
            attributes: Dict[str, Attribute] = {
                "distance": distance_group(entry["ante distance"]),
                "pronoun": translated,
                "source pronoun and pronoun": f"{pronoun} - {translated}",
            }
            items.append(checked(ContrastItem(where, document, candidates, 0, attributes)))
    return items


def _contexts_from_documents(
    folder: Path, languages: Tuple[str, str], limit: int, entries: List[Any]
) -> Iterator[Context]:
    paths = {path.name: path for path in sorted(folder.rglob(f"*.{languages[1]}"))}
    for item, entry in enumerate(entries):
        name, number, segment = (entry[field] for field in ("document id", "segment id", "src segment"))
        source, target = _read_parallel(str(paths[name]).removesuffix(languages[1]), languages)
        if "".join(source[number - 1].split()) != "".join(segment.split()):
            raise InputError(f"item {item}: line {number} of document {name} is not '{segment}'; another release?")
        start = max(0, number - 1 - limit) if limit else 0
        yield _without_empty(source[start : number - 1], target[start : number - 1])


def _contexts_from_files(prefix: str, languages: Tuple[str, str], candidates: List[int]) -> Iterator[Context]:
    source, target = _read_parallel(f"{prefix}.", languages)
    lines = list(zip(source, target))
    for counts in (candidates, [1] * len(candidates)):
        each = len(lines) // sum(counts)
        starts = [each * number for number in accumulate(counts, initial=0)]
        # The candidates of an item have the same context, which distinguishes the two layouts.
        repeated = all(
            lines[start : start + each] * count == lines[start:end]
            for count, start, end in zip(counts, starts, starts[1:])
        )
        if each and repeated and starts[-1] == len(lines):
            break
    else:
        raise InputError(
            f"--context-files {prefix}: {len(source)} lines; expected the same number for each of {sum(candidates)} "
            f"candidates or {len(candidates)} items"
        )
    for start in starts[:-1]:
        yield _without_empty(source[start : start + each], target[start : start + each])


@lru_cache(maxsize=1)  # items of a document are adjacent
def _read_parallel(prefix: str, languages: Tuple[str, str]) -> Context:
    """Lines of both languages of ``{prefix}{language}``."""
    source, target = (list(read_lines(f"{prefix}{language}")) for language in languages)
    if len(source) != len(target):
        raise InputError(f"{prefix}{languages[0]}: {len(source)} lines, but {len(target)} in {languages[1]}")
    return source, target


def _without_empty(source: List[str], target: List[str]) -> Context:
    kept = [pair for pair in zip(source, target) if all(side.strip() for side in pair)]
    return [one for one, _ in kept], [other for _, other in kept]
