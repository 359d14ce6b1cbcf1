"""Words that only a extra source tells are learnt from it, and from nothing else."""

import shutil

import numpy as np
import pytest
from fairseq.data import Dictionary

from tests.support import toy
from tests.support.extra_sources import write_text

pytestmark = pytest.mark.slow
WORDS = "abcde"
TRAINING = ["--lr", "0.01", "--max-update", "120", "--max-tokens", "200", "--attention-combination", "hierarchical"]
TINY = ["--encoder-embed-dim", "16", "--encoder-ffn-embed-dim", "16", "--encoder-attention-heads", "2"]
TINY += ["--encoder-layers", "1", "--decoder-layers", "1", "--dropout", "0"]


@pytest.fixture(scope="module")
def told_elsewhere(data_bin, tmp_path_factory):
    """Returns a data-bin whose targets are said by a text, by features and by the sentence before, and the targets.

    A sentence says the target of the next one; the first sentence of a document is `a` in the target.
    """
    folder = tmp_path_factory.mktemp("told") / "bin"
    folder.mkdir()
    for side in ("src", "tgt", "mt"):
        shutil.copy(data_bin / "dict.src.txt", folder / f"dict.{side}.txt")
    dictionary = Dictionary.load(str(folder / "dict.src.txt"))
    generator = np.random.default_rng(1)
    for split, documents in (("train", 24), ("test", 6)):
        drawn = [generator.integers(len(WORDS), size=4) for _ in range(documents)]
        targets = np.array([[0, *words[:-1]] for words in drawn])  # [documents, 4]
        for name, words in (("src-tgt.src", drawn), ("src-tgt.tgt", targets), ("src-tgt.mt", targets)):
            lines = [line for document in words for line in [*(WORDS[word] for word in document), ""]]
            write_text(folder / f"{split}.{name}", lines, dictionary)
        np.save(folder / f"{split}.image.npy", np.eye(len(WORDS))[targets.ravel()])
    return folder, [WORDS[word] for word in targets.ravel()]


@pytest.mark.parametrize("source", ["previous", "text:mt", "features:image", "next"])
def test_extra_sources_are_learned(told_elsewhere, tmp_path, source):
    folder, expected = told_elsewhere
    trained = toy.train(folder, tmp_path, *TRAINING, "--extra-sources", source, tiny=TINY)
    found = toy.generate(folder, trained, "--beam", "1", "--max-len-b", "3").hypotheses
    right = np.mean([found[line][0] == word for line, word in zip(sorted(found), expected)])
    assert len(found) == len(expected) == 24
    assert right < 0.6 if source == "next" else right > 0.9
