"""Class, configuration, vocabularies and tokenizer of exports to ``transformers``."""

from pathlib import Path

import pytest
import torch

from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.formats.huggingface import tokenizer_of
from docnmt_fairseq.hub.hub_model import HubModel
from docnmt_fairseq.hub.hub_text import HubText, HubVocabularies
from docnmt_fairseq.hub.layout import SIDES
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from docnmt_fairseq.hub.vocabulary import UNREACHABLE
from tests.support import hub, toy
from tests.support.hub import PRE_NORM, STOCK

TIED, MARIAN = ["--share-all-embeddings"], ["--sinusoids", "marian"]
LEARNED = ["--word-positions", "learned", "--decoder-learned-pos", "--layernorm-embedding"]
CLASSES = {
    "marian": MARIAN,
    "fsmt": [],
    "m2m_100": [*PRE_NORM, *TIED],
    "mbart": [*PRE_NORM, *LEARNED, *TIED],
}
BIAS, PAD, NORM = ["--output-bias"], ["--decoder-start", "pad"], ["--layernorm-embedding"]
UNSUPPORTED = [
    [*MARIAN, *PRE_NORM],
    [*MARIAN, *NORM],
    BIAS,
    PAD,
    NORM,
    [*CLASSES["m2m_100"], *BIAS],
    [*CLASSES["m2m_100"], *PAD],
    [*CLASSES["mbart"], *PAD],
    [*LEARNED, *TIED],  # post-norm
    [*PRE_NORM, *LEARNED],  # several tables
    [*PRE_NORM, *LEARNED[:-1], *TIED],  # no norm of embeddings
]
ADDED = ["<s>", "<p>"]


def hub_model(data, *options, **kind):
    """Returns an untrained model by the hub's names, with a nonzero bias of logits."""
    _, _, model = toy.build(data / "data-bin", *options, "-s", "en", "-t", "de", **kind)
    if model.decoder.output_projection.bias is not None:
        torch.nn.init.ones_(model.decoder.output_projection.bias)
    return HubModel(SentenceTransformer(model), Path("model.pt"))


@pytest.mark.parametrize("kind", CLASSES)
def test_class_of_each_model(data, kind):
    assert hub_model(data, *CLASSES[kind]).architecture.kind == kind


def test_unsupported_combinations_are_refused(data):
    for options in UNSUPPORTED:
        with pytest.raises(InputError):
            hub_model(data, *options).architecture  # noqa: B018
    with pytest.raises(InputError):
        hub_model(data, *PRE_NORM, *TIED, "--no-decoder-final-norm", **STOCK).architecture  # noqa: B018
    with pytest.raises(InputError):
        hub_model(data, "--decoder-embed-dim", "12").config  # noqa: B018


def test_configuration(data):
    sizes = ["--encoder-layers", "1", "--encoder-ffn-embed-dim", "20", "--encoder-attention-heads", "4"]
    rates = ["--dropout", "0.1", "--attention-dropout", "0.2", "--activation-dropout", "0.3"]
    found = hub_model(data, *sizes, *rates).config
    expected = dict(
        model_type="fsmt", d_model=8, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=20, decoder_ffn_dim=12,
        encoder_attention_heads=4, decoder_attention_heads=2, dropout=0.1, attention_dropout=0.2,
        activation_dropout=0.3, scale_embedding=True, tie_word_embeddings=False, bos_token_id=0, pad_token_id=1,
        eos_token_id=2, forced_eos_token_id=2, decoder_start_token_id=2, activation_function="relu",
    )  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    for ours, theirs in {"gelu_accurate": "gelu_new", "gelu_fast": "gelu_new", "swish": "swish"}.items():
        assert hub_model(data, "--activation-fn", ours).config["activation_function"] == theirs


@pytest.mark.parametrize("longest", [(60, 70), (70, 60)])
def test_learned_positions_of_different_length(data, longest):
    limits = [f"--max-{side}-positions={number}" for side, number in zip(("source", "target"), longest)]
    found = hub_model(data, *CLASSES["mbart"], *limits)
    assert found.config["max_position_embeddings"] == 70
    tensors, ours = found.tensors(), found.transformer.parameters
    for name, own in zip(("encoder.embed_positions.word", "decoder.embed_positions"), longest):
        table = tensors[f"model.{name.removesuffix('.word')}.weight"]
        assert torch.equal(table[: own + 2], ours[f"{name}.weight"])
        assert len(table) == 72 and torch.equal(table[own + 2 :], table[own + 1].expand(70 - own, -1))


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, "MarianTokenizer"),
        ({"truecase": True}, None),
        ({"source_tokenizer": "moses"}, None),
        ({"subwords": "none"}, None),
        ({"subwords": "subword-nmt"}, None),
        ({"source_lang_token": ">>deu<<"}, "MarianTokenizer"),
        ({"source_lang_token": "<2de>"}, None),
        ({"source_lang_token": "__en__", "target_lang_token": "__de__"}, "M2M100Tokenizer"),
        ({"source_lang_token": "__en__", "target_lang_token": "de_DE"}, None),
        ({"target_lang_token": "__de__"}, None),
    ],
    ids=str,
)
def test_tokenizer_class(data, changes, expected):
    codec = TextCodec.of_output(data)
    codec.options = {**codec.options, **changes}
    assert tokenizer_of(HubText(HubVocabularies(([], []), ([], []), shared=True), codec)) == expected


# --- Vocabularies ---


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """Returns a small corpus with two dictionaries of different size."""
    return hub.made(tmp_path_factory.mktemp("words"), subwords="none", joint=False)


def model_of(data, *options):
    _, _, model = toy.build(data / "data-bin", "--output-bias", "-s", "en", "-t", "de", *options)
    return model, [getattr(model, side).dictionary for side in SIDES]


@torch.no_grad()
def make_unused(model, side, symbols):
    """Gives symbols zero embeddings in the source, or no probability in the target."""
    part = getattr(model, side)
    rows = [part.dictionary.index(symbol) for symbol in symbols]
    if side == "encoder":
        part.embed_tokens.weight[rows] = 0
    else:
        part.output_projection.bias[rows] = 0.9 * UNREACHABLE


@pytest.mark.parametrize("symbols", [ADDED, ["<p>"], ["</s>"]])
@pytest.mark.parametrize("side", SIDES)
def test_added_symbols_are_removed_from_two_vocabularies(divided, side, symbols):
    model, dictionaries = model_of(divided)
    make_unused(model, side, symbols)
    found = HubVocabularies.of(SentenceTransformer(model))
    assert not found.shared and dictionaries[0].symbols != dictionaries[1].symbols
    for number, (name, dictionary) in enumerate(zip(SIDES, dictionaries)):
        gone = [symbol for symbol in symbols if symbol in ADDED] if name == side else []
        assert found.symbols[number] == [symbol for symbol in dictionary.symbols if symbol not in gone]
        assert [dictionary[row] for row in found.rows[number]] == found.symbols[number]


def test_shared_vocabulary(data):
    model, dictionaries = model_of(data, "--share-all-embeddings")
    make_unused(model, "decoder", ADDED)
    found = HubVocabularies.of(SentenceTransformer(model))
    assert found.shared and found.symbols[0] == found.symbols[1]
    assert found.symbols[0] == [symbol for symbol in dictionaries[0].symbols if symbol not in ADDED]
    untied = HubVocabularies.of(SentenceTransformer(model_of(data)[0]))
    assert not untied.shared and untied.symbols[0] == untied.symbols[1]


def test_index_of_marian_padding(divided):
    model, dictionaries = model_of(divided, "--sinusoids", "marian")
    for side in SIDES:
        make_unused(model, side, ADDED)
    found = HubVocabularies.of(SentenceTransformer(model)).symbols
    sizes = [len(dictionary) - len(ADDED) for dictionary in dictionaries]
    assert [len(symbols) for symbols in found] == sizes and sizes[0] != sizes[1]
    for symbols, dictionary in zip(found, dictionaries):
        assert symbols[:2] == ["</s>", "<unk>"] and symbols.index("<pad>") == min(sizes) - 1
        rest = [symbol for symbol in symbols[2:] if symbol != "<pad>"]
        assert rest == [symbol for symbol in dictionary.symbols if symbol not in ("</s>", "<unk>", "<pad>", *ADDED)]
