"""Words of plain text: matching by simple rules, and alignment by eflomal (Östling and Tiedemann 2016).

eflomal is a separate program under the GPL, version 3. It is called, not imported.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, Iterable, List, Pattern, Sequence

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

Words = Sequence[str]  # of a sentence

ALIGNER = "eflomal-align"
WORD = re.compile(r"\w+")
# Repetitions are bounded, so that lines of thousands of signs are matched in linear time.
SENTENCE_START = re.compile(
    r"(?:^|[.!?:\"„»(–-])\s*$"
    r"|(?:^|[.!?:…])\W{0,9}$"  # any signs in between: a dash, a bullet, a closing quotation mark, …
    r"|(?<!\w)[“«‚‘'’‹\[]$"  # quotation marks that also close, before a space
    r"|(?:^|[.!?:…])\W{0,9}(?:[(\[][^()\[\]]{0,200}|\w{1,3})[)\]]\s*$"  # (Laughter), [2], a)
)
# Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
SPACED = rf"[^\W{UNSPACED}]"  # word characters of all other scripts


def words_of(text: str) -> List[str]:
    """Lowercased words of a text: runs of letters, digits and underscores."""
    return WORD.findall(text.lower())


def may_begin_sentence(line: str, start: int) -> bool:
    """Returns whether the word at this position may begin a sentence, so that its capital is not informative."""
    return SENTENCE_START.search(line[:start]) is not None


def whole_words(terms: Iterable[str]) -> Pattern[str]:
    """Pattern that finds casefolded terms as whole words in casefolded text, the longest one at each position.

    Word boundaries are not required next to characters of scripts without spaces.
    """
    longest_first = sorted(terms, key=len, reverse=True)
    return re.compile("|".join(map(_whole_word, longest_first)))


def _whole_word(term: str) -> str:
    first, last = (re.match(f"[{UNSPACED}]", end) for end in (term[0], term[-1]))
    return f"{'' if first else f'(?<!{SPACED})'}{re.escape(term)}{'' if last else f'(?!{SPACED})'}"


def aligner() -> str:
    """Path of eflomal's program.

    Raises:
        InputError: it is not installed.
    """
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which(ALIGNER, path=folders)
    if program is None:
        raise InputError(
            f"word alignment: the program {ALIGNER} is not installed; pip install eflomal (GPL-3, needs a C compiler)"
        )
    return program


def align(source: Sequence[Words], target: Sequence[Words]) -> List[Dict[int, int]]:
    """Target position by source position of each sentence pair, the intersection of both alignment directions.

    eflomal's random seed cannot be set, so links vary slightly between calls. Sentences of 1,024 words or more have no
    links.
    """
    with TemporaryDirectory() as folder:
        files = {flag: Path(folder, name) for flag, name in zip("stfr", ("source", "target", "forward", "reverse"))}
        for flag, side in (("s", source), ("t", target)):
            files[flag].write_text("".join(f"{' '.join(words)}\n" for words in side), encoding="utf-8")
        command = [aligner(), *(part for flag, file in files.items() for part in (f"-{flag}", str(file)))]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        links = [list(read_lines(files[flag])) if files[flag].exists() else [] for flag in "fr"]
    if any(len(lines) != len(source) for lines in links):  # its exit status does not tell
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{ALIGNER} did not align all sentences: {last[:200]}")
    return [_intersection(forward, reverse) for forward, reverse in zip(*links)]


def _intersection(forward: str, reverse: str) -> Dict[int, int]:
    both = sorted(set(forward.split()) & set(reverse.split()))  # each written source-target
    return {int(source): int(target) for source, target in (link.split("-") for link in both)}


def aligner_version() -> str:
    """Name and version of eflomal, for signatures."""
    try:
        return f"eflomal-{version('eflomal')}"
    except PackageNotFoundError:
        return "eflomal"
