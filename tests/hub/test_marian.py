"""Import of MarianMT: symbols, states, probabilities and translations equal Hugging Face's."""

import pytest

from tests.support.pair import Pair, assert_same_encoder_states, assert_same_log_probabilities, assert_same_translations
from tests.support.pretrained import ENGLISH, GERMAN, imported, marian_folder, some_quick, transformers

SHAPES = {
    "plain": {},
    "relu without scale": dict(activation_function="relu", scale_embedding=False),
    "gelu, other depths": dict(activation_function="gelu", encoder_layers=3, decoder_layers=1),
    "output of its own": dict(tie_word_embeddings=False),
    "two vocabularies": dict(separate=True),
}


@pytest.fixture(scope="module", params=some_quick(SHAPES, {"plain"}))
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    model = marian_folder(folder / "released", **SHAPES[request.param])
    imported(folder / "released", folder / "imported")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder / "released")
    return Pair(model, tokenizer, folder / "imported", model.config.decoder_start_token_id)


def test_symbols(pair):
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        ours, theirs = pair.symbols(side, lines)
        assert ours == theirs
    assert any("<unk>" in symbols for symbols in pair.symbols(1, GERMAN)[0]), "pieces that the vocabulary lacks"


def test_encoder_states(pair):
    assert_same_encoder_states(pair)


def test_log_probabilities(pair):
    assert_same_log_probabilities(pair, added=2)  # <s> and <p>


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_translations(pair, length_penalty):
    assert_same_translations(pair.hypotheses(ENGLISH, length_penalty=length_penalty))
