import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.data.concatenation import context_counts, keep_sentence
from tests.reference.concatenation import windows
from tests.support import toy
from tests.support.documents import text_of

TASK = {"task": "concatenated_translation", "arch": "transformer"}


def dataset_of(data_bin, *extra, split="test"):
    _, task, _ = toy.build(data_bin, *extra, **TASK)
    return task, toy.split_of(task, split)


def words_of(dictionary, tokens):
    assert int(tokens[-1]) == dictionary.eos()
    return [dictionary[int(token)] for token in tokens[:-1]]


@pytest.mark.parametrize(
    ("source", "target", "symbol", "split"), [(2, 1, "<brk>", "test"), (3, 2, "<p>", "test"), (9, 9, "<brk>", "train")]
)
def test_samples_equal_the_reference(data_bin, source, target, symbol, split):
    options = ["--concatenate-source", str(source), "--concatenate-target", str(target), "--break-symbol", symbol]
    task, dataset = dataset_of(data_bin, *options, split=split)
    lines = text_of(split)
    expected = [windows(lines[0], source, symbol), windows(lines[1], target, symbol)]
    found = [dataset[number] for number in range(len(dataset))]
    assert [sample["id"] for sample in found] == list(expected[0])
    for sample in found:
        assert words_of(task.src_dict, sample["source"]) == expected[0][sample["id"]]
        assert words_of(task.tgt_dict, sample["target"]) == expected[1][sample["id"]]
    assert dataset.src_sizes.tolist() == [len(sample["source"]) for sample in found]
    assert dataset.tgt_sizes.tolist() == [len(sample["target"]) for sample in found]


@pytest.mark.parametrize("longest", [3, 7, 12])
def test_long_windows_lose_their_first_sentences(data_bin, longest):
    task, dataset = dataset_of(data_bin, "--concatenate-source", "4", "--max-source-positions", str(longest))
    expected = windows(text_of("test")[0], 4, "<brk>", longest)
    for number in range(len(dataset)):
        sample = dataset[number]
        assert words_of(task.src_dict, sample["source"]) == expected[sample["id"]]
    whole_task, whole = dataset_of(data_bin, "--concatenate-source", "4")
    whole_task.filter_indices_by_size(np.arange(len(whole)), whole, (longest, 99), ignore_invalid_inputs=True)
    for number in range(len(dataset)):
        assert torch.equal(whole[number]["source"], dataset[number]["source"])
    assert whole.sizes.tolist() == dataset.sizes.tolist()


def test_source_windows_do_not_depend_on_targets(data_bin):
    options = ["--concatenate-source", "3", "--concatenate-target", "3"]
    _, short = dataset_of(data_bin, *options, "--max-target-positions", "5")
    _, free = dataset_of(data_bin, *options)
    assert short.src_sizes.tolist() == free.src_sizes.tolist()
    assert short.tgt_sizes.tolist() != free.tgt_sizes.tolist()
    task, fitted = dataset_of(data_bin, *options)
    task.filter_indices_by_size(np.arange(len(fitted)), fitted, (1024, 5), ignore_invalid_inputs=True)
    assert fitted.sizes.tolist() == short.sizes.tolist()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 7), st.integers(1, 40), st.data())
def test_windows_stay_in_their_document(documents, most, longest, data):
    tokens = np.array(data.draw(st.lists(st.integers(1, 9), min_size=sum(documents), max_size=sum(documents))))
    starts = np.concatenate([[0], np.cumsum(documents)])
    counts = context_counts(starts, tokens, most, longest)
    for sentence, count in enumerate(counts):
        first = max(start for start in starts if start <= sentence)
        assert 0 <= count <= most and sentence - count >= first
        fits = [
            n for n in range(min(most, sentence - first) + 1) if tokens[sentence - n : sentence + 1].sum() <= longest
        ]
        assert count == max(fits, default=0)


def test_windows_of_one_sentence_equal_fairseq(data_bin):
    _, dataset = dataset_of(data_bin, "--concatenate-source", "1")
    _, stock, _ = toy.build(data_bin, task="translation", arch="transformer")
    stock.load_dataset("test")
    stock = stock.dataset("test")
    assert len(stock) > len(dataset)  # marks, which it takes for sentences
    samples = [dataset[number] for number in range(len(dataset))]
    same = [stock[sample["id"]] for sample in samples]
    for one, other in zip(samples, same):
        assert one["id"] == other["id"] and torch.equal(one["source"], other["source"])
        assert torch.equal(one["target"], other["target"])
    ours, theirs = dataset.collater(samples), stock.collater(same)
    assert torch.equal(ours["target"], theirs["target"]) and torch.equal(ours["id"], theirs["id"])
    for name in ("src_tokens", "src_lengths", "prev_output_tokens"):
        assert torch.equal(ours["net_input"][name], theirs["net_input"][name])


def test_batches_contain_every_sentence_once(data_bin):
    _, dataset = dataset_of(data_bin, split="train")
    batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=50, required_batch_size_multiple=8)
    assert sorted(np.concatenate(batches)) == list(range(len(dataset)))


@pytest.mark.parametrize("penalty", [1.0, 0.6, None])
def test_scores_of_a_sentence(penalty):
    scores = torch.tensor([-0.5, -1.0, -0.25, -2.0, -0.125])
    attention = torch.arange(10.0).view(2, 5)
    hypothesis = {"tokens": torch.tensor([5, 9, 6, 9, 2]), "positional_scores": scores, "score": scores.sum()}
    of_window = {**hypothesis, "attention": attention, "alignment": None}
    for number in (2, 3):  # the last one, also if the window should have more
        kept = keep_sentence(of_window, number, 9, 2, penalty)
        assert kept["tokens"].tolist() == [2] and kept["positional_scores"].tolist() == [-0.125]
        assert float(kept["score"]) == -0.125 and kept["attention"].tolist() == [[4.0], [9.0]]
    for number, expected in ((0, -1.5), (1, -2.25)):  # with the score of the break, as the end of the sentence
        kept = keep_sentence(of_window, number, 9, 2, penalty)
        assert kept["tokens"].tolist() == [5 + number, 2]
        assert float(kept["score"]) == pytest.approx(expected / (1 if penalty is None else 2**penalty))
        assert torch.equal(kept["attention"], attention[:, 2 * number : 2 * number + 2])
    whole = {**hypothesis, "tokens": torch.tensor([5, 4, 6, 7, 2]), "attention": None}
    assert keep_sentence(whole, 1, 9, 2, penalty) is whole
