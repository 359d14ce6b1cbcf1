"""Ragged random documents, and the text of the toy data-bin."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from docnmt_fairseq.batch.layout import DocumentLayout


@st.composite
def layouts(draw, max_documents=3, max_sentences=5, max_words=6):
    """Batches of ragged documents."""
    documents = draw(st.lists(st.integers(1, max_sentences), min_size=1, max_size=max_documents))
    tokens = draw(st.lists(st.integers(1, max_words), min_size=sum(documents), max_size=sum(documents)))
    return make_layout(tokens, documents)


def make_layout(tokens, documents, **options):
    position = np.concatenate([np.arange(n) for n in documents])
    return DocumentLayout.of(np.array(tokens), np.array(documents), position, position // 2, **options)


def write_lines(path: Path, lines) -> Path:
    """Writes lines and returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_data_bin(folder: Path, splits, *options_) -> Path:
    """Writes a data-bin of documents with paragraphs by split; targets are reversed sources.

    Args:
        folder: folder of the text and of the data-bin, ``bin``.
        splits: documents by split.
        options_: options of fairseq-preprocess.
    """
    from tests.support.preprocess import fairseq_preprocess

    for split, documents in splits.items():
        source = []
        for document in documents:
            for number, paragraph in enumerate(document):
                source += (["<p>"] if number else []) + paragraph
            source.append("")
        write_lines(folder / f"{split}.src", source)
        write_lines(folder / f"{split}.tgt", [" ".join(reversed(line.split())) for line in source])
    prefixes = [f"--{split}pref={folder / split}" for split in splits]
    arguments = ["-s", "src", "-t", "tgt", *prefixes, "--destdir", str(folder / "bin"), "--joined-dictionary"]
    fairseq_preprocess([*arguments, *options_])
    return folder / "bin"


DOCUMENTS = {
    "train": [[["a b c", "b c"], ["c a", "a"]], [["d", "e a b d"]], [["b b", "e d a", "a b c d e"], ["c"]]] * 6,
    "valid": [[["a b", "c d e"]], [["e"]]],
    "test": [[["a b c", "d", "e e a"], ["b"]], [["c d"]], [["a", "b", "c", "d", "e", "a b c d e a b"]]],
}


IDS = [0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13]


def text_of(split):
    """Returns the tokens of every line of the toy corpus, source and target."""
    lines = []
    for document in DOCUMENTS[split]:
        for number, paragraph in enumerate(document):
            lines += ([["<p>"]] if number else []) + [sentence.split() for sentence in paragraph]
        lines.append([])
    return lines, [list(reversed(tokens)) for tokens in lines]
