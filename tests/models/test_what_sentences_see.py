"""A sentence in models with several sources sees itself, its own context, lines and features, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt_fairseq.batch.context_sentences import ContextSentences
from docnmt_fairseq.data.chunking import Hidden
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch
from tests.support import toy
from tests.support.decoding import stir
from tests.support.extra_sources import with_extra_sources

SOURCES = "previous:1,next:2,random:1,text:mt,features:image"
SEED = 4  # of the random choice
RNN = {"arch": "document_rnn", "tiny": ["--encoder-embed-dim", "6", "--encoder-hidden-size", "4", "--dropout", "0"]}
MODELS = {
    "hierarchical": ["--attention-combination", "hierarchical", "--attention-sentinel"],
    "flat, shared": ["--attention-combination", "flat", "--extra-encoder", "shared"],
    "serial, ca-att": ["--attention-combination", "serial", "--combination-attention", "ca-att"],
    "recurrent, flat": ["--attention-combination", "flat", "--attention-sentinel"],
    "recurrent, hierarchical, shared": ["--attention-combination", "hierarchical", "--extra-encoder", "shared"],
}
VIEWS = {
    "documents": [],
    "chunks": ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"],
    "no context": ["--context", "none"],
}


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


def in_training(model, net_input):
    """Returns the logits of packed target tokens, sentence by sentence."""
    output, extra = model.train()(**net_input)
    return output.split(extra["targets"].lengths.tolist())


def in_a_search(model, net_input):
    """Returns the logits of all steps, sentence by sentence."""
    encoder_out = model.eval().encoder.forward_torchscript(net_input)
    output = model.decoder(net_input["prev_output_tokens"], encoder_out=encoder_out)[0]
    return [row[real] for row, real in zip(output, net_input["prev_output_tokens"].ne(1))]


def changed(tokens):
    """Returns other tokens, of the same number; ends of sentences stay."""
    return torch.where(tokens == 2, tokens, torch.where(tokens == 5, 6, 5))


def with_another_sentence(net_input, row):
    """Returns the batch with other tokens in one row of the layout, decoded or not."""
    layout, other = net_input["layout"], dict(net_input)
    decoded = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
    if row in decoded:
        (place,) = np.flatnonzero(decoded == row)
        other["src_tokens"] = net_input["src_tokens"].clone()
        length = layout.tokens.lengths[row]
        other["src_tokens"][place, :length] = changed(other["src_tokens"][place, :length])
        return other
    hidden = np.setdiff1d(np.arange(layout.tokens.rows), decoded)
    parts = list(layout.context_tokens.split(layout.tokens.lengths[hidden].tolist()))
    (place,) = np.flatnonzero(hidden == row)
    parts[place] = changed(parts[place])
    other["layout"] = replace(layout, context_tokens=torch.cat(parts))
    return other


def seen_by(layout, specs):
    """Returns the rows that each decoded row sees."""
    decoded = range(layout.tokens.rows) if layout.decoded is None else layout.decoded
    rows = [{int(row)} for row in decoded]
    for spec in (spec for spec in specs if spec.of_document):
        contexts = layout.plan(ContextSentences(spec.contexts, spec.kind, SEED))
        of_row = np.split(contexts.sentences, np.cumsum(contexts.counts)[:-1])
        for seen, row in zip(rows, decoded):
            seen |= set(of_row[row].tolist())
    return rows


def which_differ(before, after):
    return {number for number, (a, b) in enumerate(zip(before, after)) if not torch.equal(a, b)}


@pytest.mark.parametrize(
    ("name", "view", "logits"),
    [
        ("hierarchical", "documents", in_a_search),
        ("hierarchical", "chunks", in_training),
        ("flat, shared", "chunks", in_a_search),
        ("serial, ca-att", "documents", in_training),
        ("recurrent, flat", "chunks", in_training),
        ("recurrent, flat", "no context", in_training),
        ("recurrent, hierarchical, shared", "documents", in_a_search),
    ],
)
def test_sentences_see_their_context_only(extra_bin, name, view, logits):
    kind = RNN if name.startswith("recurrent") else {}
    sources = ["--extra-sources", SOURCES, "--seed", str(SEED)]
    _, task, model = toy.build(extra_bin, *sources, *MODELS[name], *VIEWS[view], **kind)
    stir(model)
    net_input = toy.batch_of(task)["net_input"]
    layout = net_input["layout"]
    assert (layout.decoded is not None) == (view == "chunks")
    before, seen = logits(model, net_input), seen_by(layout, task.extra_sources)
    assert any(len(rows) > 2 for rows in seen) == (view != "no context")
    for row in range(layout.tokens.rows):
        after = logits(model, with_another_sentence(net_input, row))
        assert which_differ(before, after) == {number for number, rows in enumerate(seen) if row in rows}, row
    for number, row in ((3, 0), (3, 6), (4, 1), (4, 5)):  # the text, the features
        source = net_input["extra_sources"][number]
        values = source.values.clone()
        of_row = values.split(source.lengths.tolist())[row]
        of_row.copy_(-of_row if values.dim() == 2 else changed(of_row))
        extra = [*net_input["extra_sources"]]
        extra[number] = ExtraSourceBatch(values, source.lengths)
        assert which_differ(before, logits(model, {**net_input, "extra_sources": extra})) == {row}


# --- Hidden source context: sentences see previous targets, but no other source sentence ---

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
