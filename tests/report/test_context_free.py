"""Context-free indicator χ of the words of a document."""

import re
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture
from docnmt_fairseq.report.context_free import indicators_of, section
from docnmt_fairseq.report.inspection import dataset_of_lines, inspect
from tests.support.decoding import stir
from tests.support.toy import TINY, build

TEXT = ["a b c", "d", "e e a", "b"]
CUT = ["--max-document-sentences", "2", "--context-overlap", "1"]
FEED_FORWARD = ["--feed-forward", "ca-nn", "--decoder-feed-forward", "ca-res"]
BAGS = ["--decoder-context-attention", "sentence-encodings", "--sentence-encoder", "ca-bsfe"]
BAGS += ["--context-attention", "conditional"]
RNN = ["--encoder-cell", "ca-rnn", "--decoder-cell", "ca-rnn", "--decoder-layers", "2", "--attention-dim", "3"]
RNN += ["--encoder-embed-dim", "4", "--encoder-hidden-size", "4", "--combination-attention", "ca-att"]
TITLES = ["encoder layer 1: forwards", "encoder layer 1: backwards", "decoder: attention"]
TITLES += ["decoder: attending recurrent cell", "decoder layer 1"]


def found(data_bin, *options, **kinds):
    _, task, model = build(data_bin, *options, **kinds)
    of = Ensemble(task, [stir(model)], paths=[Path("x/checkpoint_best.pt")])
    inspection = inspect(of, dataset_of_lines(of, TEXT, "text"), 0, beam=1)
    return model, inspection, indicators_of(model, inspection)


@pytest.mark.parametrize(
    "arch, tiny, options, titles",
    [
        (
            "document_transformer",
            TINY,
            FEED_FORWARD,
            ["encoder layer 1: feed-forward", "encoder layer 2: feed-forward"],
        ),
        ("document_transformer", TINY, [*FEED_FORWARD, *CUT], ["encoder layer 1: feed-forward"]),
        ("document_rnn", RNN, [], TITLES),
        ("document_rnn", RNN, [*CUT, "--extra-sources", "previous"], TITLES),
    ],
    ids=["transformer", "transformer in chunks", "rnn", "rnn in chunks"],
)
def test_chi_of_every_layer_and_word(data_bin, arch, tiny, options, titles):
    _, inspection, layers = found(data_bin, *options, arch=arch, tiny=tiny)
    assert [layer.title for layer in layers][: len(titles)] == titles
    words = {
        "source": sum(len(sentence.source) for sentence in inspection.sentences),
        "target": sum(len(sentence.translation) for sentence in inspection.sentences),
    }
    for layer in layers:
        assert layer.side == ("source" if layer.name.startswith("encoder") else "target")
        assert sorted(layer.chi) == list(range(words[layer.side])) and min(layer.chi.values()) > 0


def test_chi_of_sentence_encoders(data_bin):
    _, inspection, layers = found(data_bin, *BAGS)
    titles = {f"{side} layer 2: context sentence encoder" for side in ("encoder", "decoder")}
    assert {layer.title for layer in layers} == titles and {layer.side for layer in layers} == {"source"}
    assert "translation: mean" not in section(layers, inspection)


def test_words_without_context(data_bin):
    _, inspection, (layer,) = found(data_bin, "--context-attention", "ca-att", "--context-selection", "next")
    sentences = [sentence.source for sentence in inspection.sentences]
    assert layer.title == "encoder layer 2: context attention 1" and layer.side == "source"
    assert sorted(layer.chi) == list(range(sum(map(len, sentences[:-1]))))
    assert f"<td>{sentences[0][0]}</td>" in section([layer], inspection)


def test_table_of_means_by_word_type(data_bin):
    model, inspection, layers = found(data_bin, "--encoder-feed-forward", "ca-nn")
    (chunk,) = inspection.chunks
    tokens = [token for sentence in inspection.sentences for token in sentence.source]
    with capture(ContextFreeIndicator) as captured:
        numbers = torch.tensor([model.encoder.dictionary.index(token) for token in tokens])
        model.encoder.encode(chunk.layout.tokens.pad(numbers, 1), chunk.layout)
    chi = [evidence.chi for _, evidence in captured.entries]
    rows = re.findall(r"<tr>(.*?)</tr>", section(layers, inspection))[1:]
    cells = {row[0]: row[1:] for row in (re.findall(r"<td>(.*?)</td>", row) for row in rows)}
    assert cells.keys() == {token.replace("</s>", "&lt;/s&gt;") for token in tokens}
    places = [number for number, token in enumerate(tokens) if token == "e"]
    assert cells["e"][0] == "2" and cells["e"][2:] == [f"{float(of[places].mean()):.3f}" for of in chi]
    means = [float(row[1]) for row in cells.values()]
    assert means == sorted(means, reverse=True) and len(set(means)) > 3
