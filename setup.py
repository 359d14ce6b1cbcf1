"""Builds the compiled kernels into the package; everything else about it is in ``pyproject.toml``."""

import runpy
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Tuple

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

NATIVE = "docnmt_fairseq/native"


class BuildWithKernels(build_py):
    """Also compiles the kernels where a C++ compiler is; without it the package computes in PyTorch."""

    def run(self) -> None:
        """Builds the package; kernels that cannot be built are one line, no failure."""
        super().run()
        if getattr(self, "editable_mode", False):
            return  # built at first use, and again when a source changes
        module = runpy.run_path(str(Path(__file__).parent / NATIVE / "build.py"))
        folder = Path(self.build_lib).resolve() / NATIVE
        try:
            with ThreadPoolExecutor() as pool:  # a compiler is one thread for half a minute
                libraries = [
                    pool.submit(module["build"], variant, folder / module["library_name"](variant))
                    for variant in module["variants"]()
                ]
                for library in libraries:
                    library.result()
        except (module["BuildError"], OSError) as error:
            print(f"docnmt_fairseq: no compiled kernels: {error}")


class WheelOfItsPlatform(bdist_wheel):
    """A wheel with compiled kernels in it says for which platform; of Python it needs no particular version."""

    def get_tag(self) -> Tuple[str, str, str]:
        """The tags of Python, its binary interface, and the platform."""
        python, interface, platform = super().get_tag()
        if any(Path(self.get_finalized_command("build_py").build_lib, NATIVE).glob("*.so")):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        return python, interface, platform


setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelOfItsPlatform})
