"""Encoders of further sources, against reading each sentence by itself."""

import numpy as np
import pytest
import torch
from fairseq.nan_detector import NanDetector

from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.context_selection import ContextSentences
from tests import toy
from tests.further import with_further

SOURCES = "previous:2,next,random:2,text:mt,features:image"
ENCODERS = {
    "separate": [],
    "separate, pre-norm, shared embeddings": [
        "--encoder-normalize-before", "--share-further-embeddings", "--further-encoder-layers", "1",
        "--layernorm-embedding", "--word-positions", "learned",
    ],
    "shared": ["--further-encoder", "shared", "--context-attention", "conditional", "--sentence-positions", "learned"],
    "shared, also embeddings": [
        "--further-encoder", "shared", "--share-further-embeddings", "--checkpoint-activations",
    ],
}  # fmt: skip
CUT = ["--max-document-sentences", "3", "--context-overlap", "1"]


@pytest.fixture(scope="module")
def further_bin(data_bin, tmp_path_factory):
    return with_further(data_bin, tmp_path_factory.mktemp("further") / "bin")


def built(further_bin, *options, sources=SOURCES):
    _, task, model = toy.build(further_bin, "--further-sources", sources, *options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return task, model.double()


def encoded(model, batch, layout=None):
    inputs = batch["net_input"]
    tokens, layout = inputs["src_tokens"], layout or inputs["layout"]
    states = model.encoder.encode(tokens, layout)
    return states, model.encoder.encode_further(tokens, layout, states, inputs["further"])


def rows_of(source):
    """Returns the states that each sentence sees, looked up one by one."""
    items = np.arange(len(source.states)) if source.items is None else source.items
    return [source.states[torch.as_tensor(part)] for part in np.split(items, np.cumsum(source.lengths)[:-1])]


def read_alone(model, number, tokens):
    """Returns the states of one sentence from a reader that sees nothing else."""
    layout = DocumentLayout.of_single_sentences(np.array([len(tokens)]))
    return model.encoder.further.readers[str(number)](tokens, layout, model.encoder)


@pytest.mark.parametrize("options", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("cut", [[], CUT], ids=["whole", "pieces"])
def test_states_are_those_of_each_sentence_by_itself(further_bin, options, cut):
    task, model = built(further_bin, *options, *cut)
    batch = toy.batch_of(task)
    layout = batch["net_input"]["layout"]
    states, sources = encoded(model, batch)
    words = layout.pack_tokens(batch["net_input"]["src_tokens"]).split(layout.words.lengths.tolist())
    of_sentence = states.split(layout.words.lengths.tolist())
    decoded = np.arange(layout.words.rows) if layout.decoded is None else layout.decoded
    assert len(sources) == 5 and ("--max-document-sentences" in cut) == (layout.decoded is not None)
    for number, spec in enumerate(task.further_sources[:3]):
        contexts = ContextSentences.select(layout, spec.contexts, spec.kind, 1)
        of_row = np.split(contexts.sentences, np.cumsum(contexts.counts)[:-1])
        assert 0 < sum(len(of_row[row]) == 0 for row in decoded) < len(decoded)
        for row, found in zip(decoded, rows_of(sources[number])):
            expected = [states[:0]]
            for sentence in of_row[row]:
                shared = "shared" in options
                expected.append(of_sentence[sentence] if shared else read_alone(model, number, words[sentence]))
            torch.testing.assert_close(found, torch.cat(expected))
    text, image = batch["net_input"]["further"][3:]
    for found, tokens in zip(rows_of(sources[3]), text.values.split(text.lengths.tolist())):
        torch.testing.assert_close(found, read_alone(model, 3, tokens))
    reader = model.encoder.further.readers["4"]
    for found, features in zip(rows_of(sources[4]), image.values.split(image.lengths.tolist())):
        torch.testing.assert_close(found, reader.layer_norm(reader.projection(features.double())))


@pytest.mark.parametrize("options", ENCODERS.values(), ids=ENCODERS)
def test_sources_do_not_depend_on_the_batch(further_bin, options):
    task, model = built(further_bin, *options)
    together = toy.batch_of(task)
    dataset = task.dataset("test")
    documents = [encoded(model, dataset.collater([dataset[number]]))[1] for number in range(len(dataset))]
    for number, source in enumerate(encoded(model, together)[1]):
        alone = [states for of_document in documents for states in rows_of(of_document[number])]
        for found, expected in zip(rows_of(source), alone):
            torch.testing.assert_close(found, expected)
        assert len(rows_of(source)) == len(alone) == len(together["id"])


def test_a_sentence_is_read_once_however_many_sentences_need_it(further_bin):
    task, model = built(further_bin, sources="previous:3,random:3")
    batch = toy.batch_of(task)
    layout = batch["net_input"]["layout"]
    for source in encoded(model, batch)[1]:
        assert len(source.states) <= layout.words.total < source.lengths.sum()


@pytest.mark.parametrize("options", ENCODERS.values(), ids=ENCODERS)
def test_hidden_context_leaves_the_sentences_own_sources(further_bin, options):
    task, model = built(further_bin, *options)
    batch = toy.batch_of(task)
    shown = encoded(model, batch)[1]
    model.zero_grad()
    hidden = encoded(model, batch, batch["net_input"]["layout"].without_context())[1]
    for before, after, spec in zip(shown, hidden, task.further_sources):
        if spec.of_document:
            assert not after.lengths.any()
            states, padding = after.padded()
            assert padding.all() and states.shape == (11, 1, 8)
        else:
            assert [len(states) for states in rows_of(after)] == [len(states) for states in rows_of(before)]
            torch.testing.assert_close(after.states, before.states)
    # Processes of one training exchange gradients of all parameters, needed in their batches or not.
    sum(source.padded()[0].sum() for source in hidden).backward()
    for name, parameter in model.encoder.further.named_parameters():
        assert parameter.grad is not None, name
        if name.startswith(("readers.0", "readers.1", "readers.2")):
            assert not parameter.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_parameters_too_large_to_be_summed_do_no_harm(further_bin, dtype):
    """In half precision the sum of a table of embeddings may be infinite."""
    _, model = built(further_bin, "--share-further-embeddings", sources="previous,features:image")
    model.to(dtype)
    for parameter in model.encoder.further.parameters():
        parameter.data.fill_(torch.finfo(dtype).max)
    tokens, layout = torch.tensor([[4, 2], [5, 2]]), DocumentLayout.of_single_sentences(np.array([2, 2]))
    empty = LineSource(torch.zeros(0, 3), np.zeros(2, dtype=np.int64))
    states = model.encoder.encode(tokens, layout)
    for source in model.encoder.encode_further(tokens, layout, states, [None, empty]):
        assert torch.equal(source.states, torch.zeros(1, 8, dtype=dtype))
        source.states.sum().backward()
    assert not any(parameter.grad.any() for parameter in model.encoder.further.parameters())


def test_features_of_no_sentence(further_bin):
    task, model = built(further_bin, sources="features:image")
    batch = toy.batch_of(task)
    empty = LineSource(torch.zeros(0, 3), np.zeros(11, dtype=np.int64))
    (source,) = encoded(model, {**batch, "net_input": {**batch["net_input"], "further": [empty]}})[1]
    assert source.padded()[1].all() and source.padded()[0].requires_grad


def test_a_batch_without_its_data_is_refused(further_bin):
    task, model = built(further_bin)
    batch = toy.batch_of(task)
    for further in (None, [None] * 5):
        with pytest.raises(InputError, match="needs text:mt for every sentence"):
            encoded(model, {**batch, "net_input": {**batch["net_input"], "further": further}})
    _, model = built(further_bin, sources="previous")
    assert len(encoded(model, {**batch, "net_input": {**batch["net_input"], "further": None}})[1]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--further-encoder-layers", "-1"], "--further-encoder-layers -1"),
        (["--further-encoder", "shared", "--further-encoder-layers", "2"], "a shared encoder has its own number"),
        (["--further-feature-dims", "3,3"], r"--further-feature-dims \[3, 3\]: must be 1"),
    ],
)
def test_options_that_contradict_each_other_are_named(further_bin, options, message):
    with pytest.raises(InputError, match=message):
        built(further_bin, *options)


def test_embeddings_are_shared_with_the_same_dictionary_only(further_bin, tmp_path):
    _, model = built(further_bin, "--share-further-embeddings")
    assert not [name for name, _ in model.encoder.further.named_parameters() if "embed_tokens" in name]
    other = with_further(further_bin.parent / "bin", tmp_path / "bin")
    (other / "dict.mt.txt").write_text("<p> 1\na 1\n")
    with pytest.raises(InputError, match="--share-further-embeddings: text:mt has another dictionary"):
        built(other, "--share-further-embeddings")
    _, model = built(other)
    assert model.encoder.further.readers["3"].embed_tokens.num_embeddings == 4 + 2


def test_a_sentence_level_model_is_the_first_stage(further_bin):
    _, _, sentence = toy.build(further_bin)
    _, model = built(further_bin, "--share-further-embeddings", "--sentence-positions", "learned")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {name: value.clone() for name, value in sentence.state_dict().items()}
    expected = dict(state)
    model.upgrade_state_dict(state)
    model.load_state_dict(state, strict=True)
    for name, value in model.encoder.state_dict(prefix="encoder.").items():
        if name in expected:
            torch.testing.assert_close(value, expected[name].double())
        else:
            assert name.startswith(("encoder.further.", "encoder.embed_positions.sentence."))
            torch.testing.assert_close(value, before[name])


@pytest.mark.parametrize("options", [[], ["--further-encoder", "shared"], ["--share-further-embeddings"]])
@pytest.mark.parametrize("cut", [[], CUT], ids=["whole", "pieces"])
def test_recurrent_encoders_read_further_sources_too(further_bin, options, cut):
    sizes = ["--encoder-embed-dim", "6", "--encoder-hidden-size", "4"]
    arguments = ["--further-sources", SOURCES, *options, *cut]
    _, task, model = toy.build(further_bin, *arguments, arch="document_rnn", tiny=sizes)
    model.double()
    inputs = toy.batch_of(task)["net_input"]
    layout = inputs["layout"]
    main, *sources = model.encoder.encode(inputs["src_tokens"], layout, inputs["further"])
    words = layout.pack_tokens(inputs["src_tokens"]).split(layout.words.lengths.tolist())
    decoded = np.arange(layout.words.rows) if layout.decoded is None else layout.decoded

    def read(number, tokens):
        if str(number) in model.encoder.further.readers:
            return read_alone(model, number, tokens)
        return model.encoder.read(tokens, DocumentLayout.of_single_sentences(np.array([len(tokens)])))

    for row, found in zip(decoded, rows_of(main)):
        torch.testing.assert_close(found, read(None, words[row]))
    for number, spec in enumerate(task.further_sources[:3]):
        contexts = ContextSentences.select(layout, spec.contexts, spec.kind, 1)
        of_row = np.split(contexts.sentences, np.cumsum(contexts.counts)[:-1])
        for row, found in zip(decoded, rows_of(sources[number])):
            assert len(found) == sum(len(words[sentence]) for sentence in of_row[row])
            for part, sentence in zip(found.split([len(words[s]) for s in of_row[row]]), of_row[row]):
                torch.testing.assert_close(part, read(number, words[sentence]))
    text = inputs["further"][3]
    for found, tokens in zip(rows_of(sources[3]), text.values.split(text.lengths.tolist())):
        torch.testing.assert_close(found, read(3, tokens))
    assert sources[4].states.size(1) == main.states.size(1) == 8


@pytest.mark.parametrize("kind", ["document_transformer", "document_rnn"])
def test_fairseq_finds_nan_in_them(further_bin, caplog, kind):
    """It puts hooks on every module, which expect tensors, and computes the batch once more."""
    options = ["--further-sources", "previous,text:mt,features:image"]
    _, task, model = toy.build(further_bin, *options, arch=f"{kind}_tiny", tiny=[])
    batch = toy.batch_of(task)
    torch.nn.init.constant_(model.encoder.further.readers["2"].projection.bias, torch.nan)
    with NanDetector(model.train()):
        model(**batch["net_input"])[0].sum().backward()
    assert "NaN detected in output of encoder.further.readers.2.projection" in caplog.text
