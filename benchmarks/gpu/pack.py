"""Stage ``pack``: wheels and text for a machine without network access, in one folder."""

import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.reporting import ROOT
from docnmt_fairseq import cli
from docnmt_fairseq.corpus.step_cache import Step, StepCache
from docnmt_fairseq.files import read_json

PYTHON = "3.12"  # version on the machine with the GPU
MAX_MB = 64
WHEELS = ("fairseq-fixed", "hydra-core", "omegaconf", "bitarray", "sacremoses")  # PyTorch and NumPy are installed there
SOURCES = ("antlr4-python3-runtime==4.9.3",)  # has no wheel
DICTIONARY = 2**26  # bytes of xz
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")


@STAGES.register("pack")
class Pack(Stage):
    """Wheels for another Python version, the recipe's text and its prepared output; needs a network but no GPU."""

    minutes = 60.0
    needs_gpu = False

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and functions."""
        yield "wheels", lambda: wheels(setting)
        if (raw := setting.raw) is not None:
            yield "prepared", lambda: prepared(setting.recipe, raw, setting.pack / "recipe")
            recipe, text = setting.pack / "recipe", setting.pack / "text"
            yield "text", lambda: without_training_text(setting.recipe, raw, recipe, text)
            yield "real-text", lambda: archived(text, setting.pack / "real-text.tar.xz")
        yield "all", lambda: whole(setting)


def pinned(name: str) -> str:
    """Returns a requirement with its version in requirements.lock, if it has one."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.split("==")[0] == name), name)


def commands(folder: Path) -> Iterator[list]:
    """Yields the commands of pip that write the wheels to a folder."""
    pip = [sys.executable, "-m", "pip"]
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    target = ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", *platforms]
    yield [*pip, "download", "-q", "--no-deps", *target, "-d", str(folder), *map(pinned, WHEELS)]
    yield [*pip, "wheel", "-q", "--no-deps", "-w", str(folder), *SOURCES]


def wheels(setting: Setting) -> Figures:
    """Downloads the wheels and returns their MB; a dry run writes the commands to files instead."""
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


def prepared(recipe: str, raw: Path, output: Path) -> Figures:
    """Prepares the data of a recipe and returns its MB."""
    code = cli.main(["recipe", recipe, "--raw", str(raw), "--stop-after", "prepare", "--output", str(output)])
    if code:
        raise RuntimeError(f"{raw}: preparation failed")
    return {"MB": size(output)}


def without_training_text(recipe: str, raw: Path, output: Path, copy: Path) -> Figures:
    """Copies raw text and prepared data with zeros in place of training text; returns the MB before compression.

    Training reads the data-bin only. A recipe compares the content of raw text with its records, so these are made
    again for the zeros.

    Args:
        recipe: name of the recipe.
        raw: folder with raw text.
        output: its prepared output.
        copy: new folder for ``raw`` and ``recipe``.
    """
    shutil.rmtree(copy, ignore_errors=True)
    for name, folder in {"raw": raw, "recipe": output}.items():
        shutil.copytree(folder, copy / name, copy_function=_copy_unless_training_text)
    run = StepCache.run

    def keep(steps: StepCache, name: str, inputs: Mapping, outputs: Sequence[Path], action: Callable) -> Step:
        values = (read_json(steps.stamp(name)) or {}).get("values")
        return run(steps, name, inputs, outputs, lambda: values)

    with patch.object(StepCache, "run", keep):
        prepared(recipe, copy / "raw", copy / "recipe")
    return {"MB": size(copy)}


def _copy_unless_training_text(source: str, target: str) -> None:
    path, status = Path(source), os.stat(source)
    if path.name.startswith("train.") and not path.parent.name.startswith("data-bin"):
        with open(target, "wb") as stream:
            stream.truncate(status.st_size)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        shutil.copy2(source, target)
        os.chmod(target, 0o644)


def archived(folder: Path, archive: Path) -> Figures:
    """Writes a folder to a compressed archive and returns its MB.

    Modification times keep their nanoseconds, by which a recipe recognises its finished steps.
    """
    partial = archive.with_suffix(".part")
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": DICTIONARY}]
    with lzma.open(partial, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as stream:
        for path in sorted(folder.rglob("*")):
            entry, changed = stream.gettarinfo(path, str(path.relative_to(folder))), path.stat().st_mtime_ns
            entry.pax_headers["mtime"] = f"{changed // 10**9}.{changed % 10**9:09d}"
            with open(path, "rb") if entry.isfile() else nullcontext() as content:
                stream.addfile(entry, content)
    partial.replace(archive)
    return {"MB": size(archive)}


def whole(setting: Setting) -> Figures:
    """Returns the MB of wheels, archives and the files of the project.

    Raises:
        RuntimeError: more than ``MAX_MB``.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    project = sum((ROOT / name).stat().st_size for name in listed.split("\0") if name and (ROOT / name).is_file()) / 1e6
    packed = sum(map(size, setting.pack.glob("*.tar.xz"))) + size(setting.pack / "wheels")
    found = {"packed MB": packed, "project MB": project}
    if sum(found.values()) > MAX_MB:
        raise RuntimeError(f"{found}: more than {MAX_MB} MB; pack without --raw")
    return found


def size(path: Path) -> float:
    """Returns the MB of a file or folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files) / 1e6
