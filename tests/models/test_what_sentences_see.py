"""Models with several sources: a sentence sees itself, its own context, lines and features, and nothing else at all."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.modules.context_selection import ContextSentences
from tests import toy
from tests.further import with_further
from tests.models.test_document_transformer import stir

SOURCES = "previous:1,next:2,random:1,text:mt,features:image"
SEED = 4  # of the random choice
RNN = {"arch": "document_rnn", "tiny": ["--encoder-embed-dim", "6", "--encoder-hidden-size", "4", "--dropout", "0"]}
MODELS = {
    "hierarchical": ["--attention-combination", "hierarchical", "--attention-sentinel"],
    "flat, shared": ["--attention-combination", "flat", "--further-encoder", "shared"],
    "serial, ca-att": ["--attention-combination", "serial", "--combination-attention", "ca-att"],
    "recurrent, flat": ["--attention-combination", "flat", "--attention-sentinel"],
    "recurrent, hierarchical, shared": ["--attention-combination", "hierarchical", "--further-encoder", "shared"],
}
VIEWS = {
    "documents": [],
    "pieces": ["--max-document-sentences", "2", "--context-overlap", "1", "--context-overlap-after", "1"],
    "no context": ["--context", "none"],
}


@pytest.fixture(scope="module")
def further_bin(data_bin, tmp_path_factory):
    return with_further(data_bin, tmp_path_factory.mktemp("further") / "bin")


def in_training(model, net_input):
    """Returns the logits of packed target words, sentence by sentence."""
    output, extra = model.train()(**net_input)
    return output.split(extra["targets"].lengths.tolist())


def in_a_search(model, net_input):
    """Returns the logits of all steps, sentence by sentence."""
    encoder_out = model.eval().encoder.forward_torchscript(net_input)
    output = model.decoder(net_input["prev_output_tokens"], encoder_out=encoder_out)[0]
    return [row[real] for row, real in zip(output, net_input["prev_output_tokens"].ne(1))]


def changed(tokens):
    """Returns other words, of the same number; ends of sentences stay."""
    return torch.where(tokens == 2, tokens, torch.where(tokens == 5, 6, 5))


def with_another_sentence(net_input, row):
    """Returns the batch with other words in one row of the layout, decoded or not."""
    layout, other = net_input["layout"], dict(net_input)
    decoded = np.arange(layout.words.rows) if layout.decoded is None else layout.decoded
    if row in decoded:
        (place,) = np.flatnonzero(decoded == row)
        other["src_tokens"] = net_input["src_tokens"].clone()
        length = layout.words.lengths[row]
        other["src_tokens"][place, :length] = changed(other["src_tokens"][place, :length])
        return other
    hidden = np.setdiff1d(np.arange(layout.words.rows), decoded)
    parts = list(layout.context_tokens.split(layout.words.lengths[hidden].tolist()))
    (place,) = np.flatnonzero(hidden == row)
    parts[place] = changed(parts[place])
    other["layout"] = layout.with_targets(layout.targets.lengths + 1).with_targets(layout.targets.lengths)  # a copy
    other["layout"].context_tokens = torch.cat(parts)
    return other


def seen_by(layout, specs):
    """Returns the rows that each decoded row sees."""
    decoded = range(layout.words.rows) if layout.decoded is None else layout.decoded
    rows = [{int(row)} for row in decoded]
    for spec in (spec for spec in specs if spec.of_document):
        contexts = ContextSentences.select(layout, spec.contexts, spec.kind, SEED)
        of_row = np.split(contexts.sentences, np.cumsum(contexts.counts)[:-1])
        for seen, row in zip(rows, decoded):
            seen |= set(of_row[row].tolist())
    return rows


def which_differ(before, after):
    return {number for number, (a, b) in enumerate(zip(before, after)) if not torch.equal(a, b)}


@pytest.mark.parametrize(
    ("view", "logits"), [("documents", in_a_search), ("pieces", in_training), ("no context", in_training)]
)
@pytest.mark.parametrize("name", MODELS)
def test_a_sentence_sees_its_context_and_not_a_bit_of_anything_else(further_bin, name, view, logits):
    kind = RNN if name.startswith("recurrent") else {}
    sources = ["--further-sources", SOURCES, "--seed", str(SEED)]
    _, task, model = toy.build(further_bin, *sources, *MODELS[name], *VIEWS[view], **kind)
    stir(model)
    net_input = toy.batch_of(task)["net_input"]
    layout = net_input["layout"]
    assert (layout.decoded is not None) == (view == "pieces")
    before, seen = logits(model, net_input), seen_by(layout, task.further_sources)
    assert any(len(rows) > 2 for rows in seen) == (view != "no context")
    for row in range(layout.words.rows):
        after = logits(model, with_another_sentence(net_input, row))
        assert which_differ(before, after) == {number for number, rows in enumerate(seen) if row in rows}, row
    for number, row in ((3, 0), (3, 6), (4, 1), (4, 5)):  # the text, the features
        source = net_input["further"][number]
        values = source.values.clone()
        of_row = values.split(source.lengths.tolist())[row]
        of_row.copy_(-of_row if values.dim() == 2 else changed(of_row))
        further = [*net_input["further"]]
        further[number] = LineSource(values, source.lengths)
        assert which_differ(before, logits(model, {**net_input, "further": further})) == {row}
