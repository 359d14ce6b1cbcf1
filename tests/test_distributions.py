"""Contents of the wheel and the source archive, and their installation, also without a compiler."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from docnmt_fairseq.native.build import compiler, library_name, variants

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
NOT_SOURCES = (
    ".git",
    ".venv",
    "work",
    "demo",
    "build",
    "dist",
    "site",
    "*.egg-info",
    "*.so",
    "__pycache__",
    ".*_cache",
)
NATIVE = "docnmt_fairseq/native/"


def run(command, **environment):
    """Runs a command outside the repository, in the given environment; returns its output."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    result = subprocess.run(
        [str(part) for part in command], env={**kept, **environment}, cwd="/", capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Wheel, built from the source archive, and source archive."""
    folder = tmp_path_factory.mktemp("distributions")
    shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*NOT_SOURCES))
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "source"]
    run(build, PATH=os.environ["PATH"])
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


class Environment:
    """New virtual environment with the libraries of the current one, without a compiler and without cached kernels."""

    def __init__(self, folder: Path):
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
        self.packages = Path(paths["purelib"])
        (self.packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, distribution: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--no-deps", "--no-index"]
        run([*pip, "--no-build-isolation", "--ignore-installed", distribution], PATH=str(self.folder / "bin"))

    def docnmt(self, *arguments: str) -> str:
        cache = str(self.folder / "cache")
        return run([self.folder / "bin" / "docnmt", *arguments], PATH=str(self.folder / "bin"), XDG_CACHE_HOME=cache)

    def findings(self):
        return {finding["name"]: finding for finding in json.loads(self.docnmt("doctor", "--json"))}


def test_both_contain_every_file_of_the_package(distributions):
    wheel, archive = distributions
    package = ROOT / "docnmt_fairseq"
    skipped = (".pyc", ".so")
    files = {
        str(path.relative_to(ROOT)) for path in package.rglob("*") if path.is_file() and path.suffix not in skipped
    }
    assert {Path(file).suffix for file in files} >= {".py", ".cpp", ".h", ".css", ".js", ".yaml"}
    with zipfile.ZipFile(wheel) as opened:
        in_wheel = set(opened.namelist())
    assert not files - in_wheel
    with tarfile.open(archive) as opened:
        in_archive = {name.partition("/")[2] for name in opened.getnames()}
    assert not files - in_archive
    assert {"pyproject.toml", "setup.py", "requirements.lock", "tests/conftest.py", "scripts/test.sh"} <= in_archive
    assert not [file for file in in_archive if file.endswith(".so")]
    assert not [file for file in in_wheel if not file.startswith(("docnmt_fairseq/", "docnmt_fairseq-"))]
    kernels = {NATIVE + library_name(variant) for variant in variants()}
    assert {file for file in in_wheel if file.endswith(".so")} == kernels, f"compiled by {compiler()}"
    assert not wheel.stem.endswith("-any"), "it holds code of one platform"


def test_the_wheel_contains_the_kernels(distributions, tmp_path):
    environment = Environment(tmp_path / "environment")
    environment.install(distributions[0])
    import docnmt_fairseq

    assert environment.docnmt("--version") == f"docnmt_fairseq {docnmt_fairseq.__version__}\n"
    findings = environment.findings()
    assert findings["docnmt_fairseq"]["detail"].endswith(str(environment.packages / "docnmt_fairseq"))
    assert findings["compiled on cpu"]["state"] == "ok"
    assert findings["auto on cpu"]["detail"].startswith("uses compiled")


def test_the_source_archive_installs_without_a_compiler(distributions, tmp_path):
    environment = Environment(tmp_path / "environment")
    environment.install(distributions[1])
    assert not list(environment.packages.rglob("*.so"))
    findings = environment.findings()
    assert findings["docnmt_fairseq"]["detail"].endswith(str(environment.packages / "docnmt_fairseq"))
    assert findings["compiled on cpu"]["state"] == "off"
    assert "no C++ compiler" in findings["compiled on cpu"]["detail"]
    assert findings["auto on cpu"]["detail"].startswith("uses torch")
