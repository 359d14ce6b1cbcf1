"""Attention to several sources."""

import json
import re
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.capture import SourceShares
from docnmt_fairseq.report.inspection import dataset_of_lines, inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.sources import (
    INCOMPLETE,
    INDEPENDENT,
    MEAN,
    draw,
    section,
    shares_of,
)
from tests.support import toy
from tests.support.decoding import stir
from tests.support.documents import write_lines
from tests.support.extra_sources import with_extra_sources
from tests.support.html import Elements
from tests.support.toy import TINY_RNN

TEXT = ["a b c", "d", "e e a", "<p>", "b", "c d"]
CUT = ["--max-document-sentences", "2", "--context-overlap", "1"]
HIERARCHICAL = ["--extra-sources", "previous", "--attention-combination", "hierarchical"]
MODELS = {"document_transformer": toy.TINY, "document_rnn": TINY_RNN}
PNG = b"\x89PNG"


def found(data_bin, *options, arch="document_transformer"):
    _, task, model = toy.build(data_bin, *options, arch=arch, tiny=MODELS[arch])
    of = Ensemble(task, [stir(model)], paths=[Path("x/checkpoint_best.pt")])
    inspection = inspect(of, dataset_of_lines(of, TEXT, "text"), 0, beam=1)
    return inspection, shares_of(model, inspection)


def words_of(inspection):
    return [token for sentence in inspection.sentences for token in sentence.translation]


@pytest.mark.parametrize("arch, cut", [("document_transformer", CUT), ("document_rnn", [])])
def test_shares_of_every_word(data_bin, arch, cut):
    inspection, shares = found(data_bin, *HIERARCHICAL, "--attention-sentinel", *cut, arch=arch)
    layers = [MEAN, "decoder layer 1", "decoder layer 2"] if arch == "document_transformer" else ["decoder"]
    assert list(shares.layers) == layers and shares.names == ("source", "previous:1", "sentinel")
    evidence = [
        torch.cat([e.shares for e in of_layer])
        for of_layer in zip(
            *([e for _, e in chunk.capture.entries if isinstance(e, SourceShares)] for chunk in inspection.chunks)
        )
    ]
    of_layers = list(shares.layers.values())
    assert len(inspection.chunks) == (3 if cut else 1)
    for mine, recorded in zip(of_layers[-len(evidence) :], evidence):
        torch.testing.assert_close(mine, recorded)
    torch.testing.assert_close(shares.mean, torch.stack(evidence).mean(0))
    torch.testing.assert_close(shares.mean.sum(1), torch.ones(len(words_of(inspection))))
    first = len(inspection.sentences[0].translation)
    assert not shares.mean[:first, 1].any() and shares.mean[first:, 1].all()  # the first sentence has no previous one


def test_heat_maps_of_layers(data_bin):
    inspection, shares = found(data_bin, *HIERARCHICAL)
    html = Page("t", {}, inspection, [], [("sources", "Sources", section(shares, inspection))]).to_html()
    Elements(html)
    assert "under Sources" in html
    cells = re.findall(r'<td data-w="(\d+)" data-k="(\d)" style="--share:([\d.]+)">(\d+)</td>', html)
    shown = {(int(word), int(source)): int(value) for word, source, _, value in cells}
    assert len(shown) == len(cells) == shares.mean.numel()
    assert all(float(share) == int(value) / 100 for _, _, share, value in cells)
    data = json.loads(re.search(r'id="source-shares">(.*?)</script>', html)[1])
    assert shown == {(w, k): value for w, of_word in enumerate(data[0]) for k, value in enumerate(of_word)}
    for of_layer, percents in zip(shares.layers.values(), data):
        assert torch.equal(of_layer.mul(100).round(), torch.tensor(percents).float())
    options = re.findall(r'<option value="(\d)">(.*?)</option>', html)
    assert options == [("0", MEAN), ("1", "decoder layer 1"), ("2", "decoder layer 2")]
    heads = re.findall(r'<th scope="col">(.*?)</th>', html)
    assert heads == [token.replace("</s>", "&lt;/s&gt;") for token in words_of(inspection)]


@pytest.mark.parametrize(
    ("name", "attention", "note"), [("serial", "luong", INDEPENDENT), ("flat", "ca-att", INCOMPLETE)]
)
def test_notes_on_shares_that_do_not_sum_to_one(data_bin, name, attention, note):
    options = ["--extra-sources", "previous", "--attention-combination", name, "--combination-attention", attention]
    inspection, shares = found(data_bin, *options)
    html = section(shares, inspection)
    assert [text in html for text in (INDEPENDENT, INCOMPLETE)] == [text == note for text in (INDEPENDENT, INCOMPLETE)]


def test_single_source(data_bin, tmp_path):
    inspection, shares = found(data_bin)
    assert shares is None
    with pytest.raises(InputError):
        draw(tmp_path / "w.png", shares, inspection)


@pytest.mark.slow
def test_picture(data_bin, tmp_path):
    inspection, shares = found(data_bin, *HIERARCHICAL)
    inspection.sentences[4].translation[0] = r"$\frac$"  # matplotlib interprets text between $ as a formula
    draw(tmp_path / "new" / "one.png", shares, inspection, sentence=5)
    assert (tmp_path / "new" / "one.png").read_bytes().startswith(PNG)


@pytest.mark.slow
@pytest.mark.parametrize("arch", MODELS)
def test_command_with_texts_and_features(data_bin, tmp_path, capsys, arch):
    folder = with_extra_sources(data_bin, tmp_path / "bin")
    options = ["--extra-sources", "text:mt,features:image", "--attention-combination", "flat", "--max-update", "1"]
    options += ["--decoder-feed-forward", "ca-nn"] if arch == "document_transformer" else []
    trained = toy.train(folder, tmp_path / "m", *options, arch=arch, tiny=MODELS[arch])

    def report(*more):
        return main(["report", "--path", str(trained), "--data", str(folder), "--output", str(tmp_path / "r"), *more])

    assert report("--source-weights", str(tmp_path / "w.png"), "--sentence", "2") == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "r"), str(tmp_path / "w.png")]
    html = (tmp_path / "r").read_text()
    fact = "<dt>encoder cell</dt><dd>gru</dd>" if arch == "document_rnn" else "<dt>decoder feed-forward</dt><dd>ca-nn"
    assert fact in html and "<dt>encoder feed-forward" not in html
    assert "<h2>Sources</h2>" in html and "source, text:mt, features:image" in html
    assert (tmp_path / "w.png").read_bytes().startswith(PNG)
    write_lines(tmp_path / "text", ["a b"])
    assert report("--input", str(tmp_path / "text")) == 2
    assert "needs text:mt, features:image" in capsys.readouterr().err
