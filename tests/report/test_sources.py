"""What a report says about the weights of several sources."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.plots import plot_source_weights
from docnmt_fairseq.layers.capture import SourceShares
from docnmt_fairseq.report.documents import dataset_of_lines
from docnmt_fairseq.report.inspection import inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.sources import APART, LESS, LINE, MEAN, draw, section, shares_of, wrap_tokens
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


@pytest.mark.parametrize("cut", [[], CUT], ids=["whole", "in pieces"])
@pytest.mark.parametrize("arch", MODELS)
def test_every_word_divides_its_attention(data_bin, arch, cut):
    inspection, shares = found(data_bin, *HIERARCHICAL, "--attention-sentinel", *cut, arch=arch)
    layers = [MEAN, "decoder layer 1", "decoder layer 2"] if arch == "document_transformer" else ["decoder"]
    assert list(shares.layers) == layers and shares.names == ("source", "previous:1", "sentinel")
    evidence = [
        torch.cat([e.shares for e in of_layer])
        for of_layer in zip(
            *([e for _, e in piece.recording.entries if isinstance(e, SourceShares)] for piece in inspection.pieces)
        )
    ]
    of_layers = list(shares.layers.values())
    assert len(inspection.pieces) == (3 if cut else 1)
    for mine, recorded in zip(of_layers[-len(evidence) :], evidence):
        torch.testing.assert_close(mine, recorded)
    torch.testing.assert_close(shares.mean, torch.stack(evidence).mean(0))
    torch.testing.assert_close(shares.mean.sum(1), torch.ones(len(words_of(inspection))))
    first = len(inspection.sentences[0].translation)
    assert not shares.mean[:first, 1].any() and shares.mean[first:, 1].all()  # nothing before the first sentence


def test_the_page_has_a_heat_map_of_each_sentence_and_a_choice_of_layer(data_bin):
    inspection, shares = found(data_bin, *HIERARCHICAL)
    html = Page("t", {}, inspection, [], [("sources", "Sources", section(shares, inspection))]).to_html()
    Elements(html)
    assert "what words attend to is under Sources" in html
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


@pytest.mark.parametrize(("name", "attention", "note"), [("serial", "luong", APART), ("flat", "ca-att", LESS)])
def test_what_is_no_distribution_is_said(data_bin, name, attention, note):
    options = ["--extra-sources", "previous", "--attention-combination", name, "--combination-attention", attention]
    inspection, shares = found(data_bin, *options)
    html = section(shares, inspection)
    assert [text in html for text in (APART, LESS)] == [text == note for text in (APART, LESS)]


def test_long_sentences_go_on_below():
    tokens = ["x" * (1 + n % 9) for n in range(60)]
    lines = list(wrap_tokens(tokens))
    assert [token for line in lines for token in line] == tokens and len(lines) > 3
    assert all(len(" ".join(line)) <= LINE for line in lines)
    assert list(wrap_tokens(["x" * 200])) == [["x" * 200]]


@pytest.mark.parametrize("arch", MODELS)
def test_one_source_has_nothing_to_divide(data_bin, arch, tmp_path):
    inspection, shares = found(data_bin, arch=arch)
    assert shares is None
    with pytest.raises(InputError, match="--source-weights: the model attends to one source alone"):
        draw(tmp_path / "w.png", shares, inspection)


@pytest.mark.slow
def test_the_picture(data_bin, tmp_path):
    inspection, shares = found(data_bin, *HIERARCHICAL)
    draw(tmp_path / "new" / "three.png", shares, inspection)
    draw(tmp_path / "one.png", shares, inspection, sentence=5)
    three, one = (path.read_bytes() for path in (tmp_path / "new" / "three.png", tmp_path / "one.png"))
    assert three.startswith(PNG) and one.startswith(PNG) and three != one
    for wrong in (0, 6):
        with pytest.raises(InputError, match=f"--sentence {wrong}: the document has sentences 1 to 5"):
            draw(tmp_path / "no.png", shares, inspection, sentence=wrong)
    with pytest.raises(InputError, match=r"--source-weights .* cannot be written"):
        draw(tmp_path, shares, inspection)


def test_words_of_the_picture_are_no_formulas(tmp_path):
    """matplotlib reads what stands between $ as one, a wrong one with an error."""
    plot_source_weights([r"$\mt$"], [[r"$\frac$", "$_$"]], [np.ones((2, 1))], tmp_path / "w.png")
    assert (tmp_path / "w.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("arch", MODELS)
def test_the_command_reports_of_texts_and_features(data_bin, tmp_path, capsys, arch):
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
    assert "needs text:mt, features:image for every line" in capsys.readouterr().err
    assert report("--sentence", "2") == 2
    assert "--sentence 2: needs --source-weights" in capsys.readouterr().err
