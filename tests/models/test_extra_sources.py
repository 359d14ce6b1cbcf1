"""Encoders of extra sources equal encoding each sentence by itself."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.batch.context_sentences import ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.extra_sources import with_extra_sources
from tests.support.sources import rows_of

SOURCES = "previous:2,next,random:2,text:mt,features:image"
ENCODERS = {
    "separate": [],
    "separate, pre-norm, shared embeddings": [
        "--encoder-normalize-before", "--share-extra-embeddings", "--extra-encoder-layers", "1",
        "--layernorm-embedding", "--word-positions", "learned",
    ],
    "shared": ["--extra-encoder", "shared", "--context-attention", "conditional", "--sentence-positions", "learned"],
    "shared, also embeddings": [
        "--extra-encoder", "shared", "--share-extra-embeddings", "--checkpoint-activations",
    ],
}  # fmt: skip
CUT = ["--max-document-sentences", "3", "--context-overlap", "1"]


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


def built(extra_bin, *options, sources=SOURCES):
    _, task, model = toy.build(extra_bin, "--extra-sources", sources, *options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return task, model.double()


def encoded(model, batch, layout=None):
    """Returns the sources of a batch, with their layout, and the states of the extra ones."""
    inputs = batch["net_input"]
    sources = model.encoder.encode(inputs["src_tokens"], layout or inputs["layout"], inputs["extra_sources"])
    return sources, sources.by_source[1:]


def read_alone(model, number, tokens):
    """Returns the states of one sentence from a reader that sees nothing else."""
    layout = DocumentLayout.of_single_sentences(np.array([len(tokens)]))
    return model.encoder.extra_sources.encoders[str(number)](tokens, layout, model.encoder)


@pytest.mark.parametrize(("encoder", "cut"), zip(ENCODERS, ([], CUT, CUT, [])), ids=ENCODERS)
def test_states_equal_those_of_single_sentences(extra_bin, encoder, cut):
    options = ENCODERS[encoder]
    task, model = built(extra_bin, *options, *cut)
    batch = toy.batch_of(task)
    layout = batch["net_input"]["layout"]
    found_in_batch, sources = encoded(model, batch)
    states, rows = found_in_batch.states, [rows_of(source, found_in_batch.layout) for source in sources]
    tokens = layout.pack_tokens(batch["net_input"]["src_tokens"]).split(layout.tokens.lengths.tolist())
    of_sentence = states.split(layout.tokens.lengths.tolist())
    decoded = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
    assert len(sources) == 5 and ("--max-document-sentences" in cut) == (layout.decoded is not None)
    for number, spec in enumerate(task.extra_sources[:3]):
        contexts = layout.plan(ContextSentences(spec.contexts, spec.kind, 1))
        of_row = np.split(contexts.sentences, np.cumsum(contexts.counts)[:-1])
        assert 0 < sum(len(of_row[row]) == 0 for row in decoded) < len(decoded)
        for row, found in zip(decoded, rows[number]):
            expected = [states[:0]]
            for sentence in of_row[row]:
                shared = "shared" in options
                expected.append(of_sentence[sentence] if shared else read_alone(model, number, tokens[sentence]))
            torch.testing.assert_close(found, torch.cat(expected))
    text, image = batch["net_input"]["extra_sources"][3:]
    for found, tokens in zip(rows[3], text.values.split(text.lengths.tolist())):
        torch.testing.assert_close(found, read_alone(model, 3, tokens))
    encoder = model.encoder.extra_sources.encoders["4"]
    for found, features in zip(rows[4], image.values.split(image.lengths.tolist())):
        torch.testing.assert_close(found, encoder.layer_norm(encoder.projection(features.double())))


def test_sentences_are_encoded_once(extra_bin):
    task, model = built(extra_bin, sources="previous:3,random:3")
    batch = toy.batch_of(task)
    layout = batch["net_input"]["layout"]
    for source in encoded(model, batch)[1]:
        assert len(source.states) <= layout.tokens.total < layout.plan(source.rows).lengths.sum()


@pytest.mark.parametrize("encoder", ["separate", "shared"])
def test_hidden_context(extra_bin, encoder):
    options = ENCODERS[encoder]
    task, model = built(extra_bin, *options)
    batch = toy.batch_of(task)
    of_shown, shown = encoded(model, batch)
    model.zero_grad()
    of_hidden, hidden = encoded(model, batch, batch["net_input"]["layout"].without_context())
    for before, after, spec in zip(shown, hidden, task.extra_sources):
        if spec.of_document:
            assert not of_hidden.layout.plan(after.rows).lengths.any()
            states, padding = after.padded(of_hidden.layout)
            assert padding.all() and states.shape == (11, 1, 8)
        else:
            assert [len(states) for states in rows_of(after, of_hidden.layout)] == [
                len(states) for states in rows_of(before, of_shown.layout)
            ]
            torch.testing.assert_close(after.states, before.states)
    # Processes of one training exchange gradients of all parameters, needed in their batches or not.
    sum(source.padded(of_hidden.layout)[0].sum() for source in hidden).backward()
    for name, parameter in model.encoder.extra_sources.named_parameters():
        assert parameter.grad is not None, name
        if name.startswith(("encoders.0", "encoders.1", "encoders.2")):
            assert not parameter.grad.any()


def test_batch_without_extra_data(extra_bin):
    batch = toy.batch_of(built(extra_bin)[0])
    _, model = built(extra_bin, sources="previous")
    assert len(encoded(model, {**batch, "net_input": {**batch["net_input"], "extra_sources": ()}})[1]) == 1


def test_shared_embeddings_need_the_same_dictionary(extra_bin, tmp_path):
    _, model = built(extra_bin, "--share-extra-embeddings")
    assert not [name for name, _ in model.encoder.extra_sources.named_parameters() if "embed_tokens" in name]
    other = with_extra_sources(extra_bin.parent / "bin", tmp_path / "bin")
    (other / "dict.mt.txt").write_text("<p> 1\na 1\n")
    with pytest.raises(InputError):
        built(other, "--share-extra-embeddings")
    _, model = built(other)
    assert model.encoder.extra_sources.encoders["3"].embed_tokens.num_embeddings == 4 + 2


def test_sentence_level_checkpoint(extra_bin):
    _, _, sentence = toy.build(extra_bin)
    _, model = built(extra_bin, "--share-extra-embeddings", "--sentence-positions", "learned")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {name: value.clone() for name, value in sentence.state_dict().items()}
    expected = dict(state)
    model.upgrade_state_dict(state)
    model.load_state_dict(state, strict=True)
    for name, value in model.encoder.state_dict(prefix="encoder.").items():
        if name in expected:
            torch.testing.assert_close(value, expected[name].double())
        else:
            assert name.startswith(("encoder.extra_sources.", "encoder.embed_positions.sentence."))
            torch.testing.assert_close(value, before[name])
