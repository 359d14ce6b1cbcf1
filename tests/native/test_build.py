"""The compiler of the kernels."""

import os

import pytest

from docnmt_fairseq.native import build

NOTING = """#!/bin/sh
printf '%s\\n' "$@" > {noted}
for last; do :; done
echo library > "$last"
"""


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """File with the arguments of a fake compiler, which $CXX names with two arguments."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    compiler = tmp_path / "noting-compiler"
    compiler.write_text(NOTING.format(noted=tmp_path / "noted"))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", "noting-compiler -w '-DNAME=two words'")
    return tmp_path / "noted"


def test_cxx_may_have_arguments(noted, tmp_path):
    build.build("baseline", tmp_path / "library.so")
    assert noted.read_text().splitlines()[:2] == ["-w", "-DNAME=two words"]
    assert (tmp_path / "library.so").read_text() == "library\n"
