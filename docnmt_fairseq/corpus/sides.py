"""The sides of a corpus: source, target, and extra texts that are line-aligned with both.

An extra side is named by the suffix of its files, and by whose tokenizer, truecaser, subword model and dictionary it
gets: ``SUFFIX=like-source``, ``SUFFIX=like-target`` (they are learnt without it), or ``SUFFIX=own``; without any, the
source's.
"""

from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from docnmt_fairseq.corpus.readers import READERS
from docnmt_fairseq.errors import InputError

LIKE_SOURCE, LIKE_TARGET, OWN = "like-source", "like-target", "own"
MODELS = (LIKE_SOURCE, LIKE_TARGET, OWN)


class Side(NamedTuple):
    """One side: its name (the suffix of its files), its tokenizer, and the name of the side whose models it uses."""

    name: str
    tokenizer: str
    models_of: str


def sides_of(
    languages: Tuple[str, str], tokenizers: Tuple[str, str], own_tokenizer: str, extra: Sequence[str]
) -> List[Side]:
    """All sides, source and target first.

    Args:
        languages: of source and target.
        tokenizers: of source and target.
        own_tokenizer: of extra sides with models of their own.
        extra: the extra sides, as the option names them.
    """
    sides = [Side(language, tokenizer, language) for language, tokenizer in zip(languages, tokenizers)]
    for name, models in map(_parts, extra):
        own = Side(name, own_tokenizer, name)
        sides.append({LIKE_SOURCE: sides[0], LIKE_TARGET: sides[1]}.get(models, own)._replace(name=name))
    return sides


def _parts(option: str) -> Tuple[str, str]:
    name, _, models = option.partition("=")
    return name, models or LIKE_SOURCE


def extra_problems(extra: Sequence[str], languages: Tuple[str, str]) -> Iterator[str]:
    """Yields what is wrong with the option."""
    taken = [*languages]
    for name, models in map(_parts, extra):
        if not name or "/" in name:
            yield f"--extra {name}={models}: must be SUFFIX or SUFFIX={'|'.join(MODELS)}"
        if models not in MODELS:
            yield f"--extra {name}={models}: must be one of {', '.join(MODELS)}"
        if name in taken:
            yield f"--extra {name}: another side has that name"
        taken.append(name)


def split_arguments(name: str, arguments: Sequence[str], extra: Sequence[Side]) -> Tuple[Sequence[str], Sequence[Path]]:
    """What a corpus's format takes of its arguments, and the files of the extra sides.

    These are PREFIX.SUFFIX, or follow on the files of source and target.

    Args:
        name: of the format.
        arguments: of ``--train``, ``--valid`` or ``--test``.
        extra: sides.

    Raises:
        InputError: a format whose sides are not lines of files; a missing file.
    """
    if not extra:
        return arguments, ()
    line_aligned = [name for name in READERS.names() if READERS[name].line_aligned]
    if name not in line_aligned or len(arguments) not in (1, 2 + len(extra)):
        given = " ".join(arguments)
        raise InputError(
            f"--extra {extra[0].name}: needs format {' or '.join(line_aligned)}, and a PREFIX or one file a side, "
            f"not {name} {given}"
        )
    files = [Path(file) for file in arguments[2:]] or [Path(f"{arguments[0]}.{side.name}") for side in extra]
    for file in files:
        if not file.exists():
            raise InputError(f"{file}: no such file (--extra)")
    return arguments[:2], files
