"""Words that only the previous sentence decides are learnt by what sees it, and by nothing else."""

import numpy as np
import pytest

from tests.support import toy
from tests.support.documents import write_lines
from tests.support.preprocess import fairseq_preprocess

pytestmark = pytest.mark.slow
WORDS = "abcd"
SIZES = ["--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "32", "--encoder-attention-heads", "2"]
SIZES += ["--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "32", "--decoder-attention-heads", "2"]
SIZES += ["--encoder-layers", "1", "--decoder-layers", "1", "--dropout", "0"]


def source_decides(random):
    """Returns a document in which each sentence translates the one before it, the first one itself."""
    words = random.choice(list(WORDS), 4)
    return words, [words[0], *words[:-1]]


def target_decides(random):
    """Returns a document that begins with some word and goes on in alphabetical order; its source has the first."""
    first = random.integers(len(WORDS))
    return [WORDS[first], "e", "e", "e"], [WORDS[(first + place) % len(WORDS)] for place in range(4)]


def make_data_bin(folder, make):
    random = np.random.default_rng(1)
    for split, count in (("train", 100), ("test", 12)):
        documents = [make(random) for _ in range(count)]
        for side, name in enumerate(("src", "tgt")):
            write_lines(folder / f"{split}.{name}", [line for document in documents for line in [*document[side], ""]])
    arguments = ["-s", "src", "-t", "tgt", "--destdir", str(folder / "bin"), "--joined-dictionary"]
    arguments += [f"--{split}pref={folder / split}" for split in ("train", "test")]
    fairseq_preprocess(arguments)
    return folder / "bin", [word for document in documents for word in document[1]]


def accuracy(data_bin, expected, folder, *arguments):
    """Returns the share of words behind a document's first that a model gets right."""
    schedule = ["--max-update", "150", "--max-tokens", "400"]
    trained = toy.train(data_bin, folder, *arguments, *schedule, tiny=SIZES)
    found = toy.generate(data_bin, trained, "--beam", "1", "--max-len-b", "4").hypotheses
    right = [tokens == word for (_, (tokens, _)), word in zip(sorted(found.items()), expected)]
    assert len(right) == len(expected) == 48
    return np.mean([one for number, one in enumerate(right) if number % 4])


@pytest.fixture(scope="module")
def of_source(tmp_path_factory):
    return make_data_bin(tmp_path_factory.mktemp("source"), source_decides)


@pytest.fixture(scope="module")
def of_target(tmp_path_factory):
    return make_data_bin(tmp_path_factory.mktemp("target"), target_decides)


@pytest.mark.parametrize("name", ["memory", "context-aware", "han"])
def test_previous_source_sentences_are_learned(of_source, tmp_path, name):
    assert accuracy(*of_source, tmp_path, "--context-attention", name, "--context-sentences", "1") > 0.9


def test_previous_translations_are_learned(of_target, tmp_path):
    assert accuracy(*of_target, tmp_path, "--target-context-attention", "han", "--context-sentences", "1") > 0.9


def test_sentence_level_models_cannot_learn_it(of_source, of_target, tmp_path):
    assert accuracy(*of_source, tmp_path / "source") < 0.6
    assert accuracy(*of_target, tmp_path / "target") < 0.6
