"""Vocabularies of exports to ``transformers``."""

import pytest
import torch

from docnmt_fairseq.hub.hub_text import HubVocabularies
from docnmt_fairseq.hub.layout import SIDES
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from docnmt_fairseq.hub.vocabulary import UNREACHABLE
from tests.support import hub, toy

ADDED = ["<s>", "<p>"]


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """Returns a small corpus with two dictionaries of different size."""
    return hub.made(tmp_path_factory.mktemp("words"), subwords="none", joint=False)


def model_of(data, *options):
    _, _, model = toy.build(data / "data-bin", "--output-bias", "-s", "en", "-t", "de", *options)
    return model, [getattr(model, side).dictionary for side in SIDES]


def without_share(model, side, symbols):
    """Makes symbols unused: zero embeddings in the source, no probability in the target."""
    part = getattr(model, side)
    rows = [part.dictionary.index(symbol) for symbol in symbols]
    with torch.no_grad():
        if side == "encoder":
            part.embed_tokens.weight[rows] = 0
        else:
            part.output_projection.bias[rows] = 0.9 * UNREACHABLE


@pytest.mark.parametrize("symbols", [ADDED, ["<s>"], ["<p>"], ["</s>"], []])
@pytest.mark.parametrize("side", SIDES)
def test_added_symbols_are_removed_from_two_vocabularies(divided, side, symbols):
    model, dictionaries = model_of(divided)
    with torch.no_grad():
        model.encoder.embed_tokens.weight[dictionaries[0].bos(), 0] = 0  # by chance
    without_share(model, side, symbols)
    found = HubVocabularies.of(SentenceTransformer(model))
    assert not found.shared and dictionaries[0].symbols != dictionaries[1].symbols
    for number, (name, dictionary) in enumerate(zip(SIDES, dictionaries)):
        gone = [symbol for symbol in symbols if symbol in ADDED] if name == side else []
        assert found.symbols[number] == [symbol for symbol in dictionary.symbols if symbol not in gone]
        assert [dictionary[row] for row in found.rows[number]] == found.symbols[number]


@pytest.mark.parametrize("symbols", [ADDED, []])
def test_shared_vocabulary(data, symbols):
    model, dictionaries = model_of(data, "--share-all-embeddings")
    without_share(model, "decoder", symbols)
    found = HubVocabularies.of(SentenceTransformer(model))
    assert found.shared and found.symbols[0] == found.symbols[1]
    assert found.symbols[0] == [symbol for symbol in dictionaries[0].symbols if symbol not in symbols]


def test_untied_tables_are_not_shared(data):
    found = HubVocabularies.of(SentenceTransformer(model_of(data)[0]))
    assert not found.shared and found.symbols[0] == found.symbols[1]


def test_index_of_marian_padding(divided):
    model, dictionaries = model_of(divided, "--sinusoids", "marian")
    without_share(model, "encoder", ADDED)
    without_share(model, "decoder", ADDED)
    found = HubVocabularies.of(SentenceTransformer(model)).symbols
    sizes = [len(dictionary) - len(ADDED) for dictionary in dictionaries]
    assert [len(symbols) for symbols in found] == sizes and sizes[0] != sizes[1]
    for symbols, dictionary in zip(found, dictionaries):
        assert symbols[:2] == ["</s>", "<unk>"] and symbols.index("<pad>") == min(sizes) - 1
        rest = [symbol for symbol in symbols[2:] if symbol != "<pad>"]
        assert rest == [symbol for symbol in dictionary.symbols if symbol not in ("</s>", "<unk>", "<pad>", *ADDED)]
