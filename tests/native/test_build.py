"""How the library of compiled kernels is built: by which compiler, and what killed builds leave behind."""

import os
import time

import pytest

from docnmt_fairseq.native import build

NOTING = """#!/bin/sh
printf '%s\\n' "$@" > {noted}
for last; do :; done
echo library > "$last"
"""


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """What a compiler of its own is given; it is named by $CXX with two arguments."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    compiler = tmp_path / "noting-compiler"
    compiler.write_text(NOTING.format(noted=tmp_path / "noted"))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", "noting-compiler -w '-DNAME=two words'")
    return tmp_path / "noted"


def test_a_compiler_may_be_named_with_arguments(noted, tmp_path):
    build.build("baseline", tmp_path / "library.so")
    assert noted.read_text().splitlines()[:2] == ["-w", "-DNAME=two words"]
    assert (tmp_path / "library.so").read_text() == "library\n"


def test_a_quote_that_is_not_closed_is_told(monkeypatch):
    monkeypatch.setenv("CXX", "g++ '-w")
    with pytest.raises(build.BuildError, match=r"^CXX=g\+\+ '-w: No closing quotation; name a compiler"):
        build.compiler()


def test_what_killed_builds_left_goes_and_what_may_be_at_work_stays(noted, tmp_path):
    folder = tmp_path / "cache"
    for name in (".build-old", ".build-new", "other"):
        (folder / name).mkdir(parents=True)
        (folder / name / "library.so").touch()
    for name in (".build-old", "other"):
        os.utime(folder / name, (time.time() - 2 * build.STALE,) * 2)
    build.build("baseline", folder / "library.so")
    assert sorted(path.name for path in folder.iterdir()) == [".build-new", "library.so", "other"]
