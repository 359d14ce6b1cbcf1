"""Ragged random documents, and a toy data-bin made once."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from docnmt_fairseq import buckets
from docnmt_fairseq.layout import DocumentLayout

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("repeatable")
buckets.LEAST_PRICE = 4.0  # the tests' small batches fall into several groups, too, as real ones do
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


@st.composite
def layouts(draw, max_documents=3, max_sentences=5, max_words=6):
    """Batches of ragged documents, those of one sentence and sentences of one word included."""
    documents = draw(st.lists(st.integers(1, max_sentences), min_size=1, max_size=max_documents))
    words = draw(st.lists(st.integers(1, max_words), min_size=sum(documents), max_size=sum(documents)))
    return make_layout(words, documents)


def make_layout(words, documents, **options):
    position = np.concatenate([np.arange(n) for n in documents])
    return DocumentLayout(np.array(words), np.array(documents), position, position // 2, **options)


def write_lines(path: Path, lines) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


DOCUMENTS = {
    "train": [[["a b c", "b c"], ["c a", "a"]], [["d", "e a b d"]], [["b b", "e d a", "a b c d e"], ["c"]]] * 6,
    "valid": [[["a b", "c d e"]], [["e"]]],
    "test": [[["a b c", "d", "e e a"], ["b"]], [["c d"]], [["a", "b", "c", "d", "e", "a b c d e a b"]]],
}


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
