import shutil

import numpy as np
import pytest
import torch

from docnmt_fairseq.batch.layout import WithinSentences
from docnmt_fairseq.data.chunking import Hidden
from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.documents import DOCUMENTS, write_lines
from tests.support.preprocess import fairseq_preprocess

SOURCE_DROPOUT = "--source-context-dropout"


def dataset_of(data_bin, *extra, split="test"):
    _, task, _ = toy.build(data_bin, *extra)
    return toy.split_of(task, split)


def test_ids_are_line_numbers_and_rows_are_in_document_order(data_bin):
    dataset = dataset_of(data_bin)
    batch = dataset.collater([dataset[0], dataset[1], dataset[2]])
    assert batch["id"].tolist() == [0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13]
    layout = batch["net_input"]["layout"]
    assert layout.sentences.lengths.tolist() == [4, 1, 6]
    assert layout.unit_position.tolist() == [[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]]
    assert layout.sentence_position.tolist() == [0, 1, 2, 3, 0, 0, 1, 2, 3, 4, 5]
    sentences = [s for document in DOCUMENTS["test"] for paragraph in document for s in paragraph]
    assert layout.tokens.lengths.tolist() == [len(s.split()) + 1 for s in sentences]
    assert batch["nsentences"] == 11 and batch["ntokens"] == layout.tokens.total


def test_overlap_is_encoded_only(data_bin):
    options = ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"]
    dataset = dataset_of(data_bin, *options)
    items = [dataset[number] for number in range(len(dataset))]
    assert sorted(np.concatenate([item["ids"] for item in items])) == [0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13]
    middle = next(item for item in items if item["ids"].tolist() == [10, 11])
    assert middle["decoded"].tolist() == [False, True, True, False]
    assert middle["sentence_position"].tolist() == [1, 2, 3, 4]
    layout = dataset.collater([middle])["net_input"]["layout"]
    assert layout.decoded.tolist() == [1, 2] and len(layout.context_tokens) == 2 + 2


def test_chunks_do_not_depend_on_references(data_bin):
    _, task, _ = toy.build(data_bin, "--max-document-sentences", "3")
    task.load_dataset("test")
    dataset = task.dataset("test")
    dataset_alone = task.documents_in_memory([dataset.src[line] for line in range(len(dataset.src))])
    assert dataset.target_sizes is not None and dataset_alone.target_sizes is None
    assert dataset_alone.chunks.start.tolist() == dataset.chunks.start.tolist()


def drawn_of(dataset, epoch):
    """Returns what is hidden of every chunk in an epoch."""
    dataset.set_epoch(epoch)
    return [dataset[number]["hidden"] for number in range(len(dataset))]


@pytest.mark.parametrize(("option", "hidden"), [("--context-dropout", Hidden.ALL), (SOURCE_DROPOUT, Hidden.SOURCE)])
def test_context_dropout_differs_between_epochs(data_bin, option, hidden):
    dataset = dataset_of(data_bin, option, "0.5", split="train")
    first, second, again = (drawn_of(dataset, epoch) for epoch in (1, 2, 1))
    assert first == again != second
    assert set(first) == {hidden, Hidden.NOTHING}
    assert set(drawn_of(dataset_of(data_bin, option, "0.5", split="valid"), 1)) == {Hidden.NOTHING}


def test_too_long_sentences_are_refused_or_skipped(data_bin, caplog):
    _, task, _ = toy.build(data_bin)
    task.load_dataset("test")
    dataset = task.dataset("test")
    with pytest.raises(InputError, match=r"test: line 14 .*\(6, 6\)"):
        task.filter_indices_by_size(np.arange(3), dataset, (6, 6))
    kept = task.filter_indices_by_size(np.arange(3), dataset, (6, 6), ignore_invalid_inputs=True)
    assert kept.tolist() == [0, 1, 2] and "1 sentences longer" in caplog.text
    assert 13 not in dataset.collater([dataset[2]])["id"].tolist()


@pytest.mark.parametrize(
    ("longest", "max_tokens", "remedy"),
    [
        ((3, 3), 3, "--max-tokens"),
        ((2, 3), 3, "--max-tokens and --max-source-positions and --max-target-positions"),
        ((3, 3), 4, "--max-source-positions and --max-target-positions"),
        ((3, 3), None, "--max-source-positions and --max-target-positions"),
    ],
)
def test_errors_name_the_option_that_limits_sentences(data_bin, caplog, longest, max_tokens, remedy):
    _, task, _ = toy.build(data_bin)
    task.cfg.max_tokens = max_tokens
    task.load_dataset("test")
    dataset = task.dataset("test")
    task.filter_indices_by_size(np.arange(3), dataset, longest, ignore_invalid_inputs=True)
    assert caplog.messages[-1].endswith(f"to keep them, raise {remedy}")
    with pytest.raises(InputError, match=f"; raise {remedy}, or give"):
        task.filter_indices_by_size(np.arange(3), dataset, longest)
    with pytest.raises(InputError, match=f"every sentence is too long; raise {remedy}$"):
        task.check_some_left(np.arange(0), dataset, longest)


def test_combined_splits_do_not_share_documents(data_bin, tmp_path):
    for path in data_bin.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
        if path.name.startswith("valid."):  # the last document of valid ends with its file
            (tmp_path / path.name.replace("valid.", "test1.")).write_bytes(path.read_bytes())
    _, task, _ = toy.build(tmp_path, "--upsample-primary=-1")
    task.load_dataset("test", combine=True)
    dataset = task.dataset("test")
    assert len(dataset) == 3 + 2 and len(dataset.index.items) == 11 + 3
    _, task, _ = toy.build(tmp_path, "--upsample-primary", "3")
    task.load_dataset("test", combine=True)
    assert len(task.dataset("test")) == 3 * 3 + 2


def test_a_corpus_without_boundaries_is_one_document_or_one_per_line(data_bin, tmp_path):
    for side in ("src", "tgt"):
        write_lines(tmp_path / f"test.{side}", ["a b", "c", "d e"])
    text = ["-s", "src", "-t", "tgt", "--testpref", str(tmp_path / "test"), "--destdir", str(tmp_path / "bin")]
    known = ["--srcdict", str(data_bin / "dict.src.txt"), "--joined-dictionary"]
    fairseq_preprocess([*text, *known, "--dataset-impl", "lazy"])
    lengths = [
        dataset_of(tmp_path / "bin", "--dataset-impl", "lazy", *option).chunks.end.tolist()
        for option in ([], ["--unmarked-corpus", "line"])
    ]
    assert lengths == [[3], [1, 2, 3]]


def order_of(dataset, epoch):
    dataset.set_epoch(epoch)
    return dataset.ordered_indices().tolist()


def test_an_epoch_contains_every_document_once(data_bin):
    dataset = dataset_of(data_bin, split="train")
    batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=40, required_batch_size_multiple=8)
    assert sorted(np.concatenate(batches)) == list(range(len(dataset)))


def test_the_order_depends_on_epoch_and_seed(data_bin):
    dataset, other = (dataset_of(data_bin, "--seed", seed, split="train") for seed in ("1", "2"))
    first, second, again = (order_of(dataset, epoch) for epoch in (1, 2, 1))
    assert first == again != second and order_of(other, 1) != first
    assert sorted(first) == sorted(second) == list(range(len(dataset))) != first
    test = dataset_of(data_bin)
    assert order_of(test, 1) == order_of(test, 2) == list(range(len(test)))
    # else fairseq would keep the batches of the first epoch
    assert not dataset.can_reuse_epoch_itr_across_epochs and test.can_reuse_epoch_itr_across_epochs


@pytest.mark.parametrize("lacking", [("src", "tgt"), ("tgt",)], ids=str)
def test_both_dictionaries_contain_the_paragraph_symbol_or_none(data_bin, tmp_path, lacking):
    folder = shutil.copytree(data_bin, tmp_path / "bin")
    for language in lacking:
        path = folder / f"dict.{language}.txt"
        path.write_text(path.read_text().replace("<p> ", "§ "))
    _, task, _ = toy.build(folder)
    if len(lacking) == 1:
        with pytest.raises(InputError):
            task.load_dataset("test")
        return
    assert task.paragraph_symbols() == (None, None)
    task.load_dataset("test")
    assert task.dataset("test").index.items.tolist() == [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13]


def test_rows_are_padded_in_fewer_groups_for_a_gpu(data_bin):
    """A batch is made on the CPU, for where the model is; the task tells the dataset."""
    _, task, model = toy.build(data_bin)
    dataset, groups = toy.split_of(task, "test"), []
    for device in ("cpu", "meta"):
        model.to(device)
        task.request_plans()
        assert dataset.device == torch.device(device)
        layout = dataset.collater([dataset[0], dataset[1], dataset[2]])["net_input"]["layout"]
        groups.append(len(layout.plan(WithinSentences()).groups))
    assert groups[1] == 1 < groups[0]
