"""Views of the words of a document, for every registered mechanism."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.layers.capture import Relevance
from docnmt_fairseq.report.html import words_html
from docnmt_fairseq.report.inspection import dataset_of_lines, inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.views import RELEVANCE, views_of
from tests.support.html import Elements
from tests.support.toy import build, split_of

TEXT = ["a b c", "d", "e e a", "<p>", "b", "c </script> d", "", "a"]
PLACES = [("--context-attention", name) for name in CONTEXT_MECHANISMS.names()]
PLACES += [("--decoder-context-attention", name) for name in DECODER_MECHANISMS.names()]
PLACES += [("--target-context-attention", name) for name in TARGET_MECHANISMS.names()]
QUICK = ("conditional", "tree", "han")
PLACES = [pytest.param(*place, marks=() if place[1] in QUICK else pytest.mark.slow) for place in PLACES]


def trained(data_bin, *options):
    _, task, model = build(data_bin, "--context-top-t", "2", "--context-init", "xavier", *options)
    return Ensemble(task, [model], paths=[Path("x/checkpoint_best.pt")])


def inspected(of, document=0, lines=TEXT):
    inspection = inspect(of, dataset_of_lines(of, lines, "text"), document, beam=1)
    return inspection, views_of(of.model, inspection)


@pytest.mark.parametrize(("option", "name"), PLACES)
def test_view_of_every_word(data_bin, option, name):
    inspection, (*_, view) = inspected(trained(data_bin, option, name))
    assert view.mechanism == name and view.heads > 0
    words = {
        "source": sum(len(sentence.source) for sentence in inspection.sentences),
        "target": sum(len(sentence.translation) for sentence in inspection.sentences),
    }
    assert view.sentences
    for entries in view.sentences.values():
        assert sorted(entries) == list(range(words[view.side]))
        assert {key for heads in entries.values() for head in heads for key, _ in head} <= set(range(5))
    for entries in view.tokens.values():
        assert sorted(entries) == list(range(words[view.side]))
        found = {key for heads in entries.values() for head in heads for key, _ in head}
        assert found and found <= set(range(words[view.looks_at]))
    in_encoder = option == "--context-attention" and CONTEXT_MECHANISMS[name].placements[0].startswith("gated")
    gated = in_encoder or option.startswith("--target")  # the decoder's sub-layer for source context has no gate
    assert bool(view.share) == gated
    json.dumps(view.to_json(), allow_nan=False)


def test_relevance_of_sentences(data_bin):
    of = trained(data_bin, "--context-attention", "conditional")
    inspection, views = inspected(of)
    assert [view.title for view in views] == ["encoder layer 2: conditional"]
    assert inspection.sentences[0].source == ["a", "b", "c", "</s>"]
    assert [sentence.paragraph for sentence in inspection.sentences] == [0, 0, 0, 1, 1]
    (chunk,) = inspection.chunks
    (evidence,) = (e for _, e in chunk.capture.entries if isinstance(e, Relevance))
    for word, heads in views[0].sentences[RELEVANCE].items():
        for head, entries in enumerate(heads):
            scores = evidence.scores[word, :, head]
            assert len(entries) == 2 == int(scores.isfinite().sum())
            assert [value for _, value in entries] == sorted((value for _, value in entries), reverse=True)
            for key, value in entries:
                assert value == pytest.approx(float(scores[key]), abs=1e-3)


def test_document_in_chunks(data_bin):
    cut = ("--max-document-sentences", "2", "--context-overlap", "1")
    inspection, (view,) = inspected(trained(data_bin, "--context-attention", "sentence-encodings", *cut))
    assert len(inspection.chunks) == 3
    (entries,) = view.sentences.values()
    seen = {word: {key for head in heads for key, _ in head} for word, heads in entries.items()}
    of_word = np.repeat(np.arange(5), [len(sentence.source) for sentence in inspection.sentences])
    windows = [set(range(max(0, int(start) - 1), int(end))) for start, end in ((0, 2), (2, 4), (4, 5))]
    visible = [
        next(window for window in windows if sentence in window and sentence >= max(window) - 1)
        for sentence in range(5)
    ]
    assert sorted(seen) == list(range(len(of_word)))
    for word, sentences in seen.items():
        assert sentences <= visible[of_word[word]]


@pytest.mark.parametrize("longest", [0, 3], ids=["whole", "in chunks"])
def test_tree_paths_lead_to_selected_sentences(data_bin, longest):
    _, (view,) = inspected(trained(data_bin, "--context-attention", "tree", "--max-document-sentences", str(longest)))
    roots = {0: {(3, 0, 4)}, 3: {(2, 0, 2), (1, 3, 4)}}[longest]  # their heights, and the sentences below them
    assert {(nodes[0][0], *nodes[0][3:]) for heads in view.nodes.values() for nodes in heads} <= roots
    assert view.nodes
    for word, heads in view.nodes.items():
        for head, nodes in enumerate(heads):
            kept = {key for key, _ in view.sentences[RELEVANCE][word][head]}
            assert {first for height, _, _, first, _ in nodes if height == 0} == kept
            for key, value in view.sentences[RELEVANCE][word][head]:
                path = [score for _, _, score, first, last in nodes if first <= key <= last]
                assert sum(path) == pytest.approx(value, abs=5e-3)


def test_documents_of_a_split(data_bin):
    of = trained(data_bin, "--context-attention", "memory")
    dataset = split_of(of.task, "test")
    inspection = inspect(of, dataset, 1, beam=2)
    assert [(s.line, s.source, s.reference) for s in inspection.sentences] == [
        (6, ["c", "d", "</s>"], ["d", "c", "</s>"])
    ]
    assert views_of(of.model, inspection)[0].heads == 0  # one sentence has no context
    with pytest.raises(IndexError):
        inspect(of, dataset, 8)


def test_page_is_self_contained_and_has_every_word(data_bin):
    of = trained(data_bin, "--context-attention", "conditional")
    inspection, views = inspected(of, lines=[*TEXT[:6], "</script> <b>"])
    inspection.sentences[0].source[0] = "</script><b>"
    page = Elements(Page("a <title>", {"beam": "1"}, inspection, views).to_html())
    for _, attributes in page.found:
        assert "src" not in attributes and attributes.get("href", "#").startswith("#")
    words = sum(len(sentence.source) for sentence in inspection.sentences)
    buttons = [attributes for tag, attributes in page.found if tag == "button"]
    assert [int(button["data-w"]) for button in buttons if button["data-side"] == "source"] == list(range(words))
    assert json.loads(page.data)["views"][0]["heads"] == 2
    assert "b" not in {tag for tag, _ in page.found}
    rows = sum(tag == "tr" for tag, _ in page.found)
    assert rows == words + 1  # table for use without a mouse


def test_model_without_context(data_bin):
    inspection, views = inspected(trained(data_bin))
    html = Page("t", {}, inspection, views).to_html()
    assert not views and "no context mechanism" in html and "<button" not in html


def test_subwords_of_a_word_stay_together():
    def text(*tokens, active=False):
        (html,) = words_html([list(tokens)], "source", active)
        return html

    def words(*tokens):
        return re.findall('data-w="(.*?)" data-n="(.*?)">(.*?)<', text(*tokens, active=True))

    assert text("\u2581the", "r", "mo", "\u2581", "town", ".", "</s>") == "thermo town."
    assert text("ther@@", "mo", "on", "</s>") == "thermo on"
    assert words("\u2581the", "r", "\u2581", "mo", "\u2581", "</s>") == [
        ("0", "2", "ther"),
        ("2", "2", "mo"),
        ("4", "2", ""),
    ]
    assert words("\u2581<unk>", "r", "</s>", "__de__") == [
        ("0", "2", "&lt;unk&gt;r"),
        ("2", "1", ""),
        ("3", "1", "__de__"),
    ]
    assert text("\u2581我", "喜欢", "。", "\u2581DNA", "</s>") == "我喜欢。 DNA"
    assert words("\u2581我", "喜欢", "。", "</s>") == [("0", "1", "我"), ("1", "2", "喜欢。"), ("3", "1", "")]
    assert words("a", "@@", "</s>")[:2] == [("0", "1", "a"), ("1", "1", "@@")]


def test_byte_pieces_show_characters():
    tokens = ["▁Ma", "<0xC5>", "<0xA1>", "a", "</s>"]
    assert list(words_html([tokens], "source", False)) == ["Maša"]
    (html,) = words_html([tokens], "source", True)
    assert "<0x" not in html and html.count("<button") == 2 and 'data-w="0" data-n="4">Maša<' in html
