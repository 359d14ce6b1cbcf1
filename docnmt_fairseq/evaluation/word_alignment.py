"""Word alignments by eflomal (Östling and Tiedemann 2016), an optional package; its interface is used here alone."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Sequence

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

Words = Sequence[str]  # of a sentence


def load_aligner() -> Any:
    """eflomal's aligner.

    Raises:
        InputError: eflomal is not installed.
    """
    try:
        from eflomal import Aligner
    except ImportError as error:
        raise InputError(
            f"word alignments need the package eflomal ({error}); pip install 'docnmt_fairseq[alignment]', which "
            "compiles it: a C compiler must be there"
        ) from error
    return Aligner()


def align(source: Sequence[Words], target: Sequence[Words]) -> List[Dict[int, int]]:
    """The target position of each source position that is linked in both directions, for each pair of sentences.

    The intersection of both directions is at most one to one. eflomal learns from these pairs alone, and samples from
    a seed that nobody can set, so links differ a little from call to call; sentences of 1,024 words and more it
    leaves without any.

    Args:
        source: the words of each sentence, which hold no white space.
        target: as many sentences.

    Raises:
        InputError: eflomal is not installed, or failed.
    """
    made = load_aligner()
    with TemporaryDirectory() as folder:
        files = [Path(folder, direction) for direction in ("forward", "reverse")]
        sides = [[" ".join(words) for words in side] for side in (source, target)]
        made.align(*sides, links_filename_fwd=str(files[0]), links_filename_rev=str(files[1]))
        links = [list(read_lines(file)) if file.exists() else [] for file in files]
    if any(len(lines) != len(source) for lines in links):  # its program's exit status is not told
        raise InputError("eflomal did not align all sentences; does its program run here? Try eflomal-align")
    return [_in_both(forward, reverse) for forward, reverse in zip(*links)]


def aligner() -> str:
    """Name and version of what draws the links, for signatures."""
    try:
        return f"eflomal-{version('eflomal')}"
    except PackageNotFoundError:
        return "eflomal"


def _in_both(forward: str, reverse: str) -> Dict[int, int]:
    """The links of one sentence, written ``source-target``, that both lines have."""
    both = sorted(set(forward.split()) & set(reverse.split()))
    return {int(source): int(target) for source, target in (link.split("-") for link in both)}
