"""Words that only the context or an extra source determines are learned by models that see it, and by no other."""

import shutil

import numpy as np
import pytest
from fairseq.data import Dictionary

from tests.support import toy
from tests.support.extra_sources import write_text

pytestmark = pytest.mark.slow
WORDS = "abcd"
TINY = ["--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "32", "--encoder-attention-heads", "2"]
TINY += ["--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "32", "--decoder-attention-heads", "2"]
TINY += ["--encoder-layers", "1", "--decoder-layers", "1", "--dropout", "0"]


def source_determines(random):
    """Returns a document in which each sentence translates the previous one, the first one itself."""
    words = random.integers(len(WORDS), size=4)
    return [WORDS[word] for word in words], [words[0], *words[:-1]]


def target_determines(random):
    """Returns a document whose source has the first word only; the target continues in alphabetical order."""
    first = random.integers(len(WORDS))
    return [WORDS[first], "e", "e", "e"], [(first + place) % len(WORDS) for place in range(4)]


def make_data_bin(data_bin, folder, make):
    """Returns a data-bin with the targets also as a text and as features, and the targets of the test set."""
    for side in ("src", "tgt", "mt"):
        shutil.copy(data_bin / "dict.src.txt", folder / f"dict.{side}.txt")
    dictionary, random = Dictionary.load(str(folder / "dict.src.txt")), np.random.default_rng(1)
    for split, count in (("train", 100), ("test", 12)):
        documents = [make(random) for _ in range(count)]
        targets = [[WORDS[word] for word in words] for _, words in documents]
        sides = {"src": [source for source, _ in documents], "tgt": targets, "mt": targets}
        for side, texts in sides.items():
            lines = [line for text in texts for line in [*text, ""]]
            write_text(folder / f"{split}.src-tgt.{side}", lines, dictionary)
        np.save(folder / f"{split}.image.npy", np.eye(len(WORDS))[np.ravel([words for _, words in documents])])
    return folder, list(np.ravel(targets))


@pytest.fixture(scope="module")
def of_source(data_bin, tmp_path_factory):
    return make_data_bin(data_bin, tmp_path_factory.mktemp("source"), source_determines)


@pytest.fixture(scope="module")
def of_target(data_bin, tmp_path_factory):
    return make_data_bin(data_bin, tmp_path_factory.mktemp("target"), target_determines)


def accuracy(data_bin, expected, folder, options):
    """Returns the share of correct words after a document's first."""
    schedule = ["--max-update", "120", "--max-tokens", "400"]
    trained = toy.train(data_bin, folder, *options.split(), *schedule, tiny=TINY)
    found = toy.generate(data_bin, trained, "--beam", "1", "--max-len-b", "4").hypotheses
    right = [tokens == word for (_, (tokens, _)), word in zip(sorted(found.items()), expected)]
    assert len(right) == len(expected) == 48
    return np.mean([one for number, one in enumerate(right) if number % 4])


SEEING = ["--context-attention memory", "--context-attention han", "--context-attention context-aware"]
SEEING = [f"{options} --context-sentences 1" for options in SEEING]
SEEING += [f"--attention-combination hierarchical --extra-sources {name}" for name in ("previous", "features:image")]


@pytest.mark.parametrize("options", SEEING)
def test_models_with_the_context_learn(of_source, tmp_path, options):
    assert accuracy(*of_source, tmp_path, options) > 0.9


def test_previous_translations_are_learned(of_target, tmp_path):
    assert accuracy(*of_target, tmp_path, "--target-context-attention han --context-sentences 1") > 0.9


def test_models_without_the_context_do_not(of_source, of_target, tmp_path):
    next_sentence = "--attention-combination hierarchical --extra-sources next"
    assert accuracy(*of_source, tmp_path / "next", next_sentence) < 0.6
    assert accuracy(*of_target, tmp_path / "target", "") < 0.6
