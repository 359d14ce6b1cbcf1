"""Compilation of the package's C++ sources, one library per instruction set; used by ``setup.py`` and at run time.

The libraries have a plain C interface, so that they do not depend on the versions of PyTorch and Python.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
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


class BuildError(RuntimeError):
    """A library cannot be built; the message has one line."""


def variants() -> Dict[str, List[str]]:
    """Compiler flags by variant for the current processor architecture, best first."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return X86_VARIANTS if x86 else {"baseline": []}


def library_name(variant: str) -> str:
    """File name of a variant."""
    return f"kernels_{variant}.so"


def source_files() -> List[Path]:
    """C++ files of the library."""
    return [path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.suffix in (".h", ".cpp")]


def source_hash() -> str:
    """Digest of sources and flags."""
    digest = hashlib.sha256(repr((FLAGS, X86_VARIANTS)).encode())
    for path in source_files():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def compiler() -> List[str]:
    """C++ compiler with arguments: $CXX, else the first of c++, g++ and clang++.

    Raises:
        BuildError: there is none.
    """
    for name, *arguments in filter(None, (shlex.split(os.environ.get("CXX", "")), ["c++"], ["g++"], ["clang++"])):
        if found := shutil.which(name):
            return [found, *arguments]
    raise BuildError("no C++ compiler found (c++, g++, clang++ or $CXX)")


def build(variant: str, target: Path) -> None:
    """Compiles the library of one variant; the file appears atomically, also if several processes build it.

    Without OpenMP (e.g. Apple's clang) the library uses a single thread.

    Raises:
        BuildError: there is no compiler, or it fails.
    """
    command = [*compiler(), *FLAGS, *variants()[variant], f"-I{HERE}", f'-DSOURCE_HASH="{source_hash()}"']
    command += [str(path) for path in source_files() if path.suffix == ".cpp"]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        made = Path(folder) / target.name
        for openmp in (["-fopenmp"], []):
            result = subprocess.run([*command, *openmp, "-o", str(made)], capture_output=True, text=True, check=False)
            if result.returncode == 0:
                os.replace(made, target)
                return
    lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
    raise BuildError(f"{command[0]} fails: {lines[0] if lines else f'exit status {result.returncode}'}")
