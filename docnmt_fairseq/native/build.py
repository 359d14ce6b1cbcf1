"""Builds the package's C++ sources into one library an instruction set. Used by ``setup.py`` and at run time.

A plain C interface: neither PyTorch nor Python is needed to build, and any version of either can load the result.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List

HERE = Path(__file__).resolve().parent
FOLDERS = [HERE, HERE.parent / "context" / "conditional" / "kernels" / "cpu", HERE.parent / "layers" / "cpu"]
# No -ffast-math: infinities and NaN keep their meaning.
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-fPIC", "-shared"]
AVX2 = ["-mavx2", "-mfma"]
X86_VARIANTS = {  # best first
    "avx512": [*AVX2, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"],
    "avx2": AVX2,
    "baseline": [],
}
UNFINISHED = ".build-"  # begins the names of folders that libraries are made in
STALE = 3600.0  # seconds after which nobody is at work in such a folder: a library takes less than a minute


class BuildError(RuntimeError):
    """No library could be built; the text says why in one line."""


def variants() -> Dict[str, List[str]]:
    """The compiler flags of the libraries that this kind of processor may use, best first."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return X86_VARIANTS if x86 else {"baseline": []}


def library_name(variant: str) -> str:
    """The file name of a variant."""
    return f"kernels_{variant}.so"


def source_files() -> List[Path]:
    """The C++ files that a library is made of."""
    return [path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.suffix in (".h", ".cpp")]


def source_hash() -> str:
    """A digest that changes when a source or a flag does."""
    digest = hashlib.sha256(repr((FLAGS, X86_VARIANTS)).encode())
    for path in source_files():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def compiler() -> List[str]:
    """The C++ compiler and its arguments: $CXX in a shell's words, else the first of c++, g++, clang++ that is there.

    Raises:
        BuildError: there is none, or $CXX has a quote that is not closed.
    """
    given = os.environ.get("CXX", "")
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise BuildError(f"CXX={given}: {error}; name a compiler, perhaps with arguments") from error
    for name, *arguments in filter(None, (words, ["c++"], ["g++"], ["clang++"])):
        if found := shutil.which(name):
            return [found, *arguments]
    raise BuildError("no C++ compiler found (c++, g++, clang++ or $CXX)")


def _clear_stale(folder: Path) -> None:
    """Removes what killed builds left in a folder; what is younger may be of one that is at work."""
    for left in folder.glob(f"{UNFINISHED}*"):
        try:
            stale = time.time() - left.stat().st_mtime > STALE
        except OSError:  # another build has just removed it
            continue
        if stale:
            shutil.rmtree(left, ignore_errors=True)


def build(variant: str, target: Path) -> None:
    """Writes the library of one variant. The file appears whole or not at all, also when several processes build it.

    Without OpenMP (e.g. Apple's clang) the library uses a single thread.

    Raises:
        BuildError: there is no compiler, or it fails.
    """
    command = [*compiler(), *FLAGS, *variants()[variant], f"-I{HERE}", f'-DSOURCE_HASH="{source_hash()}"']
    command += [str(path) for path in source_files() if path.suffix == ".cpp"]
    target.parent.mkdir(parents=True, exist_ok=True)
    _clear_stale(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=UNFINISHED) as folder:
        made = Path(folder) / target.name
        for openmp in (["-fopenmp"], []):
            result = subprocess.run([*command, *openmp, "-o", str(made)], capture_output=True, text=True, check=False)
            if result.returncode == 0:
                os.replace(made, target)
                return
    lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
    raise BuildError(f"{command[0]} fails: {lines[0] if lines else f'exit status {result.returncode}'}")
