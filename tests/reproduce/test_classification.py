"""Classifiers of published figures: data files, computation and training."""

import gzip

import numpy as np
import pytest
import torch
from PIL import Image

from docnmt_fairseq.recipes.recipe import Options
from docnmt_fairseq.reproduce.base import Cell
from docnmt_fairseq.reproduce.figures import images, sentiment
from docnmt_fairseq.reproduce.figures.classification import Budget, accuracy, train
from docnmt_fairseq.reproduce.figures.sentiment import Sentiment

CPU = torch.device("cpu")


@pytest.fixture
def reviews(tmp_path):
    for number, part in enumerate(("train", "test")):
        sentiment.write_synthetic_texts(tmp_path / part, 80, seed=number)
    train_set, test = (sentiment.read_labelled(tmp_path / part) for part in ("train", "test"))
    dictionary = sentiment.dictionary_of(train_set)
    return sentiment.Bags.of(train_set, dictionary), sentiment.Bags.of(test, dictionary), len(dictionary)


def test_labelled_texts_are_lowercased_and_tokenised(tmp_path):
    (tmp_path / "x").write_text("1\tGood, good !\n0\tno\n", encoding="utf-8")
    found = sentiment.read_labelled(tmp_path / "x")
    assert found == [(1, ["good", ",", "good", "!"]), (0, ["no"])]
    dictionary = sentiment.dictionary_of(found)
    bags = sentiment.Bags.of([(0, ["no", "never"])], dictionary)
    assert bags.bags[0].tolist() == [dictionary["no"], sentiment.UNSEEN]


def test_average_of_word_vectors_with_zero_for_unseen_words():
    module = sentiment.AverageOfWords(5, 3)
    bags = sentiment.Bags([np.array([1, 4, sentiment.UNSEEN]), np.array([2])], torch.tensor([0, 1]))
    (tokens, rows), labels = bags.batch(torch.tensor([0, 1]), CPU)
    table = module.words.weight
    expected = torch.stack([(table[1] + table[4]) / 3, table[2]])
    torch.testing.assert_close(module(tokens, rows), expected)
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize(("kind", "em_steps"), [("average", 0), ("ca-bsfe", 0), ("ca-bsfe", 5)])
def test_text_classifiers_learn(reviews, kind, em_steps):
    torch.manual_seed(0)
    model = sentiment.classifier(kind, reviews[2])
    found = train(model, *reviews[:2], Budget(200, 16, 0.3, 50, em_steps), seed=1, device=CPU)
    assert len(found) == 4 and found[-1] > 95
    assert accuracy(model, reviews[1], CPU, batch=7) == found[-1]


@pytest.mark.parametrize("kind", images.KINDS)
def test_image_classifiers_learn(kind, tmp_path):
    shape = (1, 8, 8)
    train_set, test = images.synthetic_images(80, shape, seed=0), images.synthetic_images(40, shape, seed=1)
    torch.manual_seed(0)
    model = images.ImageClassifier(kind, shape, layers=2, depth=4, kernel=4, hidden=16, classes=2)
    assert train(model, train_set, test, Budget(60, 20, 0.02, 60), 1, CPU)[-1] > 90


def test_picture_has_images_above_and_chi_below(tmp_path):
    model = images.ImageClassifier("ca-cnn", (3, 8, 6), depth=4, kernel=3, hidden=4)
    layer = model.convolutions[0]
    torch.nn.init.normal_(layer.score.weight)
    seen = torch.rand(2, 3, 8, 6)
    images.write_chi(model, seen, tmp_path / "chi.png")
    found = np.asarray(Image.open(tmp_path / "chi.png")) / 255
    assert found.shape == (16, 12)
    np.testing.assert_allclose(found[:8, 6:], seen[1].mean(0), atol=0.01)
    padded = torch.nn.functional.pad(seen, (1, 1, 1, 1))
    np.testing.assert_allclose(found[8:, :6], layer.score(padded)[0, 0].sigmoid().detach(), atol=0.01)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def test_mnist_files_may_be_gzipped(tmp_path):
    pixels, labels = np.arange(24).reshape(2, 4, 3), np.array([7, 1])
    (tmp_path / "images").write_bytes(idx(pixels))
    (tmp_path / "labels.gz").write_bytes(gzip.compress(idx(labels)))
    found = images.read_mnist(tmp_path / "images", tmp_path / "labels.gz")
    assert np.array_equal(found.images[:, 0], pixels) and found.labels.tolist() == [7, 1]
    (given,), of_batch = found.batch(torch.tensor([1]), CPU)
    torch.testing.assert_close(given[0, 0], torch.from_numpy(pixels[1] / 255).float())
    assert of_batch.tolist() == [1]


def test_cifar_files(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (3, 3073), dtype=np.uint8)
    rows[:, 0] = [3, 0, 9]
    (tmp_path / "one").write_bytes(rows[:2].tobytes())
    (tmp_path / "two").write_bytes(rows[2:].tobytes())
    found = images.read_cifar([tmp_path / "one", tmp_path / "two"])
    assert found.labels.tolist() == [3, 0, 9]
    assert np.array_equal(found.images[2, 1], rows[2, 1 + 1024 : 1 + 2048].reshape(32, 32))


def test_every_training_is_stored_at_once(tmp_path, monkeypatch):
    found = []

    def accuracies(self, cell, seed):
        found.append((cell.row, seed))
        if len(found) == 3:
            raise KeyboardInterrupt
        return [0.5, 0.5 + seed / 100]

    monkeypatch.setattr(Sentiment, "accuracies", accuracies)
    cells = [Cell(name, "imdb", None, {"set": "imdb", "bag": name}) for name in ("average", "ca-bsfe")]
    asked = Options(tmp_path / "out", seeds=(1, 2), smoke=True)
    with pytest.raises(KeyboardInterrupt):
        Sentiment(cells, asked).values()
    values = Sentiment(cells, asked).values()
    assert found == [("average", 1), ("average", 2), ("ca-bsfe", 1), ("ca-bsfe", 1), ("ca-bsfe", 2)]
    assert values == {cell: [0.51, 0.52] for cell in cells}
