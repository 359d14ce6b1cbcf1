"""Extra sources in data-bins and batches."""

import pickle
import shutil

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from docnmt_fairseq.data.features import FeatureFile, FeatureLines
from docnmt_fairseq.data.index import Marks
from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.documents import DOCUMENTS
from tests.support.extra_sources import is_sentence, source_lines, with_extra_sources, write_text

ALL = "previous:2,text:mt,features:image"


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


@pytest.fixture
def own_bin(extra_bin, tmp_path):
    """Returns a copy that a test may spoil."""
    shutil.copytree(extra_bin, tmp_path / "bin")
    return tmp_path / "bin"


def load(data_bin, *extra, split="test", combine=False):
    _, task, _ = toy.build(data_bin, "--extra-sources", ALL, *extra)
    task.load_dataset(split, combine=combine)
    return task, task.dataset(split)


def of_rows(source):
    return torch.as_tensor(source.values).split(source.lengths.tolist())


def test_decoded_sentences_have_their_extra_sources(extra_bin):
    options = ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"]
    task, dataset = load(extra_bin, *options)
    (batch,) = [dataset.collater([dataset[number] for number in range(len(dataset))])]
    previous, text, image = batch["net_input"]["extra_sources"]
    lines = source_lines("test")
    assert previous is None and len(text.lengths) == len(image.lengths) == len(batch["id"])
    values = np.load(extra_bin / "test.image.npz")
    sentences = [number for number, line in enumerate(lines) if is_sentence(line)]
    for line, tokens, features in zip(batch["id"].tolist(), of_rows(text), of_rows(image)):
        assert task.src_dict.string(tokens) == f"{lines[line]} {lines[line]}"
        start, end = values["offsets"][sentences.index(line) :][:2]
        np.testing.assert_array_equal(features.numpy(), values["values"][start:end])
        assert len(features) == len(lines[line].split())


def test_extra_sources_count_in_batch_sizes(extra_bin):
    _, dataset = load(extra_bin)
    sentences = [line.split() for line in source_lines("test")[:5] if is_sentence(line)]
    source, target, text, image = dataset._costs()[0]
    assert source == target == sum(len(words) + 1 for words in sentences)
    assert text == sum(2 * len(words) + 1 for words in sentences) == dataset.num_tokens(0)
    assert image == sum(map(len, sentences))


def test_combined_and_upsampled_splits(own_bin):
    for path in list(own_bin.glob("valid.*")):
        shutil.copy(path, path.with_name(path.name.replace("valid.", "test1.")))
    task, dataset = load(own_bin, "--upsample-primary", "2", combine=True)
    batch = dataset.collater([dataset[number] for number in range(len(dataset))])
    lines = [line for split in ("test", "test", "valid") for line in source_lines(split) if is_sentence(line)]
    _, text, image = batch["net_input"]["extra_sources"]
    assert [task.src_dict.string(tokens) for tokens in of_rows(text)] == [f"{line} {line}" for line in lines]
    assert image.lengths.tolist() == [len(line.split()) for line in lines]


def test_one_data_bin_per_epoch(extra_bin, own_bin):
    image = np.load(own_bin / "train.image.npz")
    np.savez(own_bin / "train.image.npz", values=image["values"] + 100, offsets=image["offsets"])
    _, task, _ = toy.build(f"{extra_bin}:{own_bin}", "--extra-sources", ALL)
    means = []
    for epoch in (1, 2):
        task.load_dataset("train", epoch=epoch)
        dataset = task.dataset("train")
        means.append(float(dataset.collater([dataset[0]])["net_input"]["extra_sources"][2].values.mean()))
    assert means[1] == pytest.approx(means[0] + 100, abs=1e-3)


def test_a_text_with_other_boundaries_is_refused(own_bin):
    lines = source_lines("test")
    dictionary = Dictionary.load(str(own_bin / "dict.mt.txt"))
    write_text(own_bin / "test.src-tgt.mt", [*lines[:3], "a", *lines[4:]], dictionary)
    with pytest.raises(InputError, match=r"test\.src-tgt\.mt: line 4: <p> on the source side only"):
        load(own_bin)


MARKS = Marks(np.array([False, False, False, True]), np.array([False, True, False, False]))  # two sentences, 0 and 2


@pytest.mark.parametrize(("shape", "dtype"), [((4, 3), "float16"), ((2, 3), "float64"), ((2, 5, 3), "int32")])
def test_features_of_lines_or_sentences(tmp_path, shape, dtype):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    np.save(tmp_path / "train.f.npy", values)
    lines = FeatureLines(FeatureFile(tmp_path / "train.f.npy"), MARKS)
    rows = 5 if len(shape) == 3 else 1
    assert lines.sizes.tolist() == [rows, 0, rows, 0] and len(lines) == 4
    second = pickle.loads(pickle.dumps(lines))[2]
    assert second.dtype == torch.float32
    np.testing.assert_array_equal(second, values[2 if shape[0] == 4 else 1].reshape(rows, 3).astype("float32"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_variable_numbers_of_rows(tmp_path, save, order):
    values = np.asarray(np.random.default_rng(1).normal(size=(5, 3)), order=order)
    save(tmp_path / "train.f.npz", values=values, offsets=np.array([0, 5, 5]))
    file = FeatureFile(tmp_path / "train.f.npz")
    lines = FeatureLines(file, MARKS)
    assert lines.sizes.tolist() == [5, 0, 0, 0]
    np.testing.assert_allclose(lines[0], values, rtol=1e-6)
    assert lines[2].shape == (0, 3)
    assert isinstance(file.values, np.memmap) == (save is np.savez)


@pytest.mark.parametrize(
    "arrays",
    [
        {"values": np.zeros((5, 3)), "offsets": np.array([0, 4])},
        {"values": np.zeros((5, 3)), "offsets": np.array([0, 3, 2, 5])},
        {"values": np.zeros((5, 3)), "offsets": np.array([0, 1, 2, 5])},
        np.zeros((3, 3)),
    ],
)
def test_other_arrays_are_refused(tmp_path, arrays):
    path = tmp_path / ("train.f.npz" if isinstance(arrays, dict) else "train.f.npy")
    np.savez(path, **arrays) if isinstance(arrays, dict) else np.save(path, arrays)
    with pytest.raises(InputError, match=r"train\.f\.np"):
        FeatureLines(FeatureFile(path), MARKS)


@pytest.mark.parametrize("wrong", [np.nan, 1e300])
def test_features_must_be_finite(tmp_path, wrong):
    values = np.ones((4, 3))
    values[2, 1] = wrong
    np.save(tmp_path / "train.f.npy", values)
    np.savez(tmp_path / "train.f.npz", values=values, offsets=np.arange(5))
    for ending in ("npy", "npz"):
        lines = FeatureLines(FeatureFile(tmp_path / f"train.f.{ending}"), MARKS)
        assert lines[0].isfinite().all()
        with pytest.raises(InputError, match=rf"train\.f\.{ending}: line 3: "):
            lines[2]


def test_stock_models_do_not_see_extra_sources(extra_bin, tmp_path):
    options = ["--extra-sources", ALL, "--max-update", "1"]
    stock = toy.train(extra_bin, tmp_path, *options, arch="transformer_iwslt_de_en")
    ids = [number for number, line in enumerate(source_lines("test")) if is_sentence(line)]
    assert sorted(toy.generate(extra_bin, stock, "--max-len-b", "5").hypotheses) == ids
    assert len(ids) == sum(len(paragraph) for document in DOCUMENTS["test"] for paragraph in document)
