"""Ragged random documents, and a toy data-bin made once."""

import logging
import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from docnmt_fairseq.batch import grouping
from tests.support.documents import DOCUMENTS, write_lines

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("repeatable")
PRODUCTION_PRICE = grouping.LEAST_PRICE
grouping.LEAST_PRICE = 4.0  # the tests' small batches fall into several groups, too, as real ones do
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


@pytest.fixture
def production_price(monkeypatch):
    """Lets batches fall into groups as they do outside the tests."""
    monkeypatch.setattr(grouping, "LEAST_PRICE", PRODUCTION_PRICE)
    return PRODUCTION_PRICE


@pytest.fixture(scope="session")
def data_bin(tmp_path_factory) -> Path:
    """Returns a data-bin src-tgt of three small splits with documents and paragraphs; targets are reversed sources."""
    from fairseq import options
    from fairseq_cli import preprocess

    logging.disable(logging.INFO)
    folder = tmp_path_factory.mktemp("toy")
    for split, documents in DOCUMENTS.items():
        source = []
        for document in documents:
            for number, paragraph in enumerate(document):
                source += (["<p>"] if number else []) + paragraph
            source.append("")
        write_lines(folder / f"{split}.src", source)
        write_lines(folder / f"{split}.tgt", [" ".join(reversed(line.split())) for line in source])
    prefixes = [f"--{split}pref={folder / split}" for split in DOCUMENTS]
    arguments = ["-s", "src", "-t", "tgt", *prefixes, "--destdir", str(folder / "bin"), "--joined-dictionary"]
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    return folder / "bin"
