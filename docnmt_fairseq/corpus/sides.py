"""The sides of a corpus: source, target, and further text that is line-aligned with both.

A further side is named by the suffix of its files, and by whose tokenizer, truecaser, subword model and dictionary it
gets: ``SUFFIX=like-source``, ``SUFFIX=like-target`` (they are learnt without it), or ``SUFFIX=own``; without any, the
source's.
"""

from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from docnmt_fairseq.errors import InputError

LIKE_SOURCE, LIKE_TARGET, OWN = "like-source", "like-target", "own"
MODELS = (LIKE_SOURCE, LIKE_TARGET, OWN)


class Side(NamedTuple):
    """One side: its name (the suffix of its files), its tokenizer, and the name of the side whose models it uses."""

    name: str
    tokenizer: str
    models_of: str


def sides_of(
    languages: Tuple[str, str], tokenizers: Tuple[str, str], own_tokenizer: str, further: Sequence[str]
) -> List[Side]:
    """Returns all sides, source and target first.

    Args:
        languages: of source and target.
        tokenizers: of source and target.
        own_tokenizer: of further sides with models of their own.
        further: the further sides, as the option names them.
    """
    sides = [Side(language, tokenizer, language) for language, tokenizer in zip(languages, tokenizers)]
    for name, models in map(_parts, further):
        own = Side(name, own_tokenizer, name)
        sides.append({LIKE_SOURCE: sides[0], LIKE_TARGET: sides[1]}.get(models, own)._replace(name=name))
    return sides


def _parts(option: str) -> Tuple[str, str]:
    name, _, models = option.partition("=")
    return name, models or LIKE_SOURCE


def further_problems(further: Sequence[str], languages: Tuple[str, str]) -> Iterator[str]:
    """Yields what is wrong with the option."""
    taken = [*languages]
    for name, models in map(_parts, further):
        if not name or "/" in name:
            yield f"--further {name}={models}: must be SUFFIX or SUFFIX={'|'.join(MODELS)}"
        if models not in MODELS:
            yield f"--further {name}={models}: must be one of {', '.join(MODELS)}"
        if name in taken:
            yield f"--further {name}: another side has that name"
        taken.append(name)


def further_files(name: str, arguments: Sequence[str], further: Sequence[Side]) -> List[Path]:
    """Returns the files of the further sides of a corpus, PREFIX.SUFFIX.

    Args:
        name: of the corpus's format.
        arguments: of ``--train``, ``--valid`` or ``--test``.
        further: sides.

    Raises:
        InputError: a corpus that is no delimited text named by a prefix; a missing file.
    """
    if further and (name != "delimited" or len(arguments) != 1):
        given = " ".join(arguments)
        raise InputError(f"--further {further[0].name}: needs delimited text named by a PREFIX, not {name} {given}")
    files = [Path(f"{arguments[0]}.{side.name}") for side in further]
    for file in files:
        if not file.exists():
            raise InputError(f"{file}: no such file (--further)")
    return files
