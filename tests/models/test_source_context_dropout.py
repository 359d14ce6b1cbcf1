"""Documents with hidden source context in training: sentences see previous targets, but no other source sentence."""

import pytest

from docnmt_fairseq.data.chunking import Hidden
from tests.models.test_what_sentences_see import changed, in_training, which_differ, with_another_sentence
from tests.support import toy
from tests.support.decoding import stir

BACK = 2
LOOKING_BACK = ["--target-context-attention", "han", "--context-sentences", str(BACK)]
LENGTHS = (4, 1, 6)  # of the documents
HIDDEN = (Hidden.ALL, Hidden.NOTHING, Hidden.SOURCE)


class Drawn:
    """Hides a given part of every document."""

    def __init__(self, hidden):
        self.hidden = hidden

    def draw(self, epoch, number):
        return self.hidden[number]


def documents_of(rows):
    return [number for number, length in enumerate(LENGTHS) for _ in range(length)][rows]


@pytest.fixture(scope="module")
def looking_back(data_bin):
    """Returns a task, and a model with context from source sentences and previous targets."""
    attention = ["--context-attention", "conditional", "--context-top-t", "0"]
    _, task, model = toy.build(data_bin, *attention, *LOOKING_BACK)
    stir(model)
    task.load_dataset("test")
    return task, model


def batch_of(task, hidden):
    dataset = task.dataset("test")
    dataset.context_dropout = Drawn(hidden)
    return dataset.collater([dataset[number] for number in range(len(LENGTHS))])["net_input"]


def seen_targets(hidden, row):
    """Returns the rows that see a target sentence."""
    document = documents_of(row)
    after = range(row + 1, min(row + 1 + BACK, sum(LENGTHS)))
    back = [] if hidden[document] is Hidden.ALL else [other for other in after if documents_of(other) == document]
    return {row, *back}


def seen_sources(hidden, row):
    """Returns the rows that see a source sentence, or targets whose states saw it."""
    document = documents_of(row)
    if hidden[document] is Hidden.NOTHING:
        return {other for other in range(sum(LENGTHS)) if documents_of(other) == document}
    return seen_targets(hidden, row)


@pytest.mark.parametrize("hidden", [HIDDEN, (Hidden.SOURCE,) * 3])
def test_sentences_see_previous_targets_and_no_other_source(looking_back, hidden):
    task, model = looking_back
    net_input = batch_of(task, hidden)
    before = in_training(model, net_input)
    for row in range(sum(LENGTHS)):
        after = in_training(model, with_another_sentence(net_input, row))
        assert which_differ(before, after) == seen_sources(hidden, row), row
        previous = net_input["prev_output_tokens"].clone()
        length = net_input["layout"].targets.lengths[row]
        previous[row, 1:length] = changed(previous[row, 1:length])
        after = in_training(model, {**net_input, "prev_output_tokens": previous})
        assert which_differ(before, after) == seen_targets(hidden, row), row


def test_first_sentences_have_no_context(looking_back):
    task, model = looking_back
    source, everything = (in_training(model, batch_of(task, (one,) * 3)) for one in (Hidden.SOURCE, Hidden.ALL))
    firsts = {row for row in range(sum(LENGTHS)) if row == 0 or documents_of(row) != documents_of(row - 1)}
    assert which_differ(source, everything) == set(range(sum(LENGTHS))) - firsts
