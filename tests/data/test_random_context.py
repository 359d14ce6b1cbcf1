"""Context that is drawn from the training set ([M] sec. 6.2)."""

import pytest
import torch

from docnmt_fairseq.data.index import LinesInMemory
from docnmt_fairseq.data.selected_context import TrainingSentences
from tests.support import toy

MODEL = ["--context-attention", "memory", "--context-selection", "training-set", "--context-sentences", "2"]
EOS, P = 2, 9


def sentences_of(lines, contexts=2, seed=1):
    return TrainingSentences(LinesInMemory([torch.tensor([*line, EOS]) for line in lines]), P, contexts, seed)


def drawn(sentences, line, epoch=0):
    return [tokens.tolist() for tokens in sentences.drawn(torch.tensor([*line, EOS]), epoch)]


def test_only_sentences_are_drawn():
    lines = [[4, 5], [P], [6], [], [7, 8, 4], []]
    seen = {tuple(tokens) for word in range(60) for tokens in drawn(sentences_of(lines), [word])}
    assert seen == {(4, 5, EOS), (6, EOS), (7, 8, 4, EOS)}


def test_too_long_sentences_are_not_drawn():
    lines = LinesInMemory([torch.tensor([*line, EOS]) for line in ([4, 5], [6, 7, 8, 9], [10])])
    seen = {tuple(tokens) for word in range(40) for tokens in drawn(TrainingSentences(lines, P, 2, 1, 3), [word])}
    assert seen == {(4, 5, EOS), (10, EOS)}


def test_draws_depend_on_sentence_seed_and_epoch():
    lines = [[word] for word in range(10, 60)]
    one = drawn(sentences_of(lines), [4, 5])
    assert one == drawn(sentences_of(lines), [4, 5]) and len(one) == 2
    assert one[:1] == drawn(sentences_of(lines, contexts=1), [4, 5])
    others = [drawn(sentences_of(lines), [5, 4]), drawn(sentences_of(lines, seed=2), [4, 5])]
    others.append(drawn(sentences_of(lines), [4, 5], epoch=1))
    assert all(other != one for other in others)


def dataset_of(data_bin, split, *options):
    _, task, _ = toy.build(data_bin, *MODEL, *options)
    return task, toy.split_of(task, split)


def contexts(dataset, numbers):
    """Returns the tokens of each sentence of a batch with those of its context, by id."""
    batch = dataset.collater([dataset[number] for number in numbers])
    layout = batch["net_input"]["layout"]
    tokens = layout.pack_tokens(batch["net_input"]["src_tokens"]).split(layout.tokens.lengths.tolist())
    found = {}
    for number, row in zip(batch["id"].tolist(), layout.decoded.tolist()):
        found[number] = [tokens[other].tolist() for other in layout.drawn[row].tolist() if other >= 0]
        assert tokens[row].tolist() == dataset.src[number].tolist()
    return layout, found


def test_batches_contain_drawn_sentences(data_bin):
    task, dataset = dataset_of(data_bin, "test")
    layout, found = contexts(dataset, [0, 1, 2])
    task.load_dataset("train")
    train = task.dataset("train").src
    known = {tuple(train[line].tolist()) for line in range(len(train))}
    assert list(found) == [0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13]
    assert all(len(several) == 2 and {*map(tuple, several)} <= known for several in found.values())
    assert layout.sentences.lengths.tolist() == [4, 1, 6] + [1] * 22  # documents of their own
    assert layout.decoded.tolist() == list(range(11)) and not layout.sentence_position[11:].any()
    alone = {number: several for piece in (2, 0, 1) for number, several in contexts(dataset, [piece])[1].items()}
    assert alone == found  # whatever the batch


def test_training_draws_differ_between_epochs(data_bin):
    _, dataset = dataset_of(data_bin, "train")
    _, other = dataset_of(data_bin, "test")
    found, unchanged = [], []
    for epoch in (1, 2, 1):
        dataset.set_epoch(epoch)
        other.set_epoch(epoch)
        found.append(contexts(dataset, [0, 1, 2])[1])
        unchanged.append(contexts(other, [0])[1])
    assert found[0] == found[2] != found[1]
    assert unchanged[0] == unchanged[1]


@pytest.mark.parametrize("options", [["--context", "none"], ["--context-dropout", "1"]], ids=" ".join)
def test_hidden_context_has_no_drawn_sentences(data_bin, options):
    _, dataset = dataset_of(data_bin, "train", *options)
    layout = dataset.collater([dataset[0], dataset[1]])["net_input"]["layout"]
    assert layout.decoded is None and (layout.drawn < 0).all() and {*layout.sentences.lengths.tolist()} == {1}


def test_translations_do_not_depend_on_position_limits(data_bin, tmp_path):
    short = ["--max-source-positions", "4", "--max-target-positions", "4"]
    options = [*MODEL, "--context-init", "xavier", *short, "--max-update", "20"]
    trained = toy.train(data_bin, tmp_path, *options)
    skip = "--skip-invalid-size-inputs-valid-test"
    scores = [toy.generate(data_bin, trained, skip, *limits).hypotheses for limits in ([], short)]
    assert scores[0] == scores[1] and len(scores[0]) == 10
