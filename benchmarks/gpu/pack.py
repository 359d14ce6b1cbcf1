"""Stage ``pack``: what a machine without a network needs beside the project, in one folder, and its size."""

import lzma
import subprocess
import sys
import tarfile
from contextlib import nullcontext
from pathlib import Path
from typing import Iterator, Mapping

from benchmarks.gpu.real_text import RECIPE
from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT
from docnmt_fairseq import cli

PYTHON = "3.12"  # of the machine
MOST_MB = 64
WHEELS = ("fairseq-fixed", "hydra-core", "omegaconf", "bitarray", "sacremoses")  # beside PyTorch, Triton, NumPy, …
SOURCES = ("antlr4-python3-runtime==4.9.3",)  # of which there is no wheel
REACH = 2**28  # bytes back in which xz finds what it has seen: a recipe holds its text three times
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")


@STAGES.register("pack")
class Pack(Stage):
    """Wheels for another Python, the recipe's text as it is and prepared; runs where there is a network, and no GPU."""

    minutes = 60.0  # nobody waits for it with a machine that is lent
    needs_gpu = False

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        yield "wheels", lambda: wheels(setting)
        if (raw := setting.raw) is not None:
            yield "prepared", lambda: prepared(raw, setting.pack / "recipe")
            folders = {"raw": raw, "recipe": setting.pack / "recipe"}
            yield "real-text", lambda: archived(folders, setting.pack / "real-text.tar.xz")
        yield "all", lambda: whole(setting)


def pinned(name: str) -> str:
    """A requirement with the version of requirements.lock, by itself where that has none."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.split("==")[0] == name), name)


def commands(folder: Path) -> Iterator[list]:
    """Yields pip's command lines that bring the wheels into a folder."""
    pip = [sys.executable, "-m", "pip"]
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    target = ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", *platforms]
    yield [*pip, "download", "-q", "--no-deps", *target, "-d", str(folder), *map(pinned, WHEELS)]
    yield [*pip, "wheel", "-q", "--no-deps", "-w", str(folder), *SOURCES]


def wheels(setting: Setting) -> Figures:
    """MB of the wheels; a dry run, which has no network, writes down the commands."""
    folder = setting.pack / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    for number, call in enumerate(commands(folder)):
        if setting.dry:
            (folder / f"command-{number}.txt").write_text(" ".join(call) + "\n", encoding="utf-8")
        else:
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
    return {"MB": size(folder), "files": len(list(folder.iterdir()))}


def prepared(raw: Path, output: Path) -> Figures:
    """Prepares the recipe's data, which takes minutes that need no GPU."""
    code = cli.main(["recipe", RECIPE, "--raw", str(raw), "--until", "prepare", "--output", str(output)])
    if code:
        raise RuntimeError(f"{raw}: could not be prepared")
    return {"MB": size(output)}


def archived(folders: Mapping[str, Path], archive: Path) -> Figures:
    """MB of folders as one compressed archive.

    Times are kept to the nanosecond: by them a recipe knows that what it prepared has not changed.

    Args:
        folders: by their names in the archive.
        archive: what is written.
    """
    partial = archive.with_suffix(".part")
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": REACH}]
    with lzma.open(partial, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as stream:
        for name, folder in folders.items():
            for path in sorted(folder.rglob("*")):
                entry, changed = stream.gettarinfo(path, f"{name}/{path.relative_to(folder)}"), path.stat().st_mtime_ns
                entry.pax_headers["mtime"] = f"{changed // 10**9}.{changed % 10**9:09d}"
                with open(path, "rb") if entry.isfile() else nullcontext() as content:
                    stream.addfile(entry, content)
    partial.replace(archive)
    return {"MB": size(archive)}


def whole(setting: Setting) -> Figures:
    """MB of all that travels: wheels and archives of the folder, and the project's files.

    Raises:
        RuntimeError: it is more than may be carried.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    project = sum((ROOT / name).stat().st_size for name in listed.split("\0") if name and (ROOT / name).is_file()) / 1e6
    packed = sum(map(size, setting.pack.glob("*.tar.xz"))) + size(setting.pack / "wheels")
    found = {"packed MB": packed, "project MB": project}
    if sum(found.values()) > MOST_MB:
        raise RuntimeError(f"{found}: more than {MOST_MB} MB; leave out --raw")
    return found


def size(path: Path) -> float:
    """MB of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files) / 1e6
