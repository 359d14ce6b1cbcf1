"""Class, configuration and tokenizer of exports to ``transformers``."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import export
from docnmt_fairseq.hub.formats.huggingface import HubModel, tokenizer_of
from docnmt_fairseq.hub.hub_text import HubText, HubVocabularies
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from docnmt_fairseq.search.options import SearchOptions
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
OTHERS = {
    "marian": [PRE_NORM, NORM],
    "fsmt": [BIAS, PAD, NORM],
    "m2m_100": [BIAS, PAD, NORM],
    "mbart": [PAD],
}


def hub_model(data, *options, **kind):
    """Returns an untrained model by the hub's names, with a nonzero bias of logits."""
    _, _, model = toy.build(data / "data-bin", *options, "-s", "en", "-t", "de", **kind)
    projection = model.decoder.output_projection
    if projection.bias is not None:
        torch.nn.init.ones_(projection.bias)
    transformer = SentenceTransformer(model)
    return HubModel(transformer, HubVocabularies.of(transformer))


def configuration(found):
    return found.config(found.architecture(Path("model.pt")))


@pytest.mark.parametrize("kind", CLASSES)
def test_class_of_each_model(data, kind):
    assert hub_model(data, *CLASSES[kind]).architecture(Path("model.pt")).kind == kind


@pytest.mark.parametrize("kind, more", [(kind, more) for kind in OTHERS for more in OTHERS[kind]])
def test_unsupported_combinations_are_refused(data, kind, more):
    with pytest.raises(InputError):
        hub_model(data, *CLASSES[kind], *more).architecture(Path("model.pt"))


@pytest.mark.parametrize(
    "options",
    [
        [*LEARNED, *TIED],  # mBART's, but for the norms after sub-layers
        [*PRE_NORM, *LEARNED],  # but for the tables
        [*PRE_NORM, *LEARNED[:-1], *TIED],  # but for the norm of embeddings
    ],
)
def test_unsupported_variants_of_mbart_are_refused(data, options):
    with pytest.raises(InputError):
        hub_model(data, *options).architecture(Path("model.pt"))


def test_decoder_without_final_norm_is_refused(data):
    found = hub_model(data, *PRE_NORM, *TIED, "--no-decoder-final-norm", **STOCK)
    with pytest.raises(InputError):
        found.architecture(Path("model.pt"))


def test_configuration(data):
    sizes = ["--encoder-layers", "1", "--encoder-ffn-embed-dim", "20", "--encoder-attention-heads", "4"]
    rates = ["--dropout", "0.1", "--attention-dropout", "0.2", "--activation-dropout", "0.3"]
    found = configuration(hub_model(data, *sizes, *rates))
    expected = dict(
        model_type="fsmt", d_model=8, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=20, decoder_ffn_dim=12,
        encoder_attention_heads=4, decoder_attention_heads=2, dropout=0.1, attention_dropout=0.2,
        activation_dropout=0.3, scale_embedding=True, tie_word_embeddings=False, bos_token_id=0, pad_token_id=1,
        eos_token_id=2, forced_eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("longest", [(60, 70), (70, 60)])
def test_learned_positions_of_different_length(data, longest):
    limits = [f"--max-{side}-positions={number}" for side, number in zip(("source", "target"), longest)]
    found = hub_model(data, *CLASSES["mbart"], *limits)
    sizes = configuration(found)
    assert sizes["max_position_embeddings"] == 70
    tensors = found.tensors(found.architecture(Path("model.pt")), sizes)
    ours = found.transformer.parameters()
    for name, own in zip(("encoder.embed_positions.word", "decoder.embed_positions"), longest):
        table = tensors[f"model.{name.removesuffix('.word')}.weight"]
        assert torch.equal(table[: own + 2], ours[f"{name}.weight"])
        assert len(table) == 72 and torch.equal(table[own + 2 :], table[own + 1].expand(70 - own, -1))


@pytest.mark.parametrize(
    "ours, theirs",
    [("relu", "relu"), ("gelu", "gelu"), ("gelu_accurate", "gelu_new"), ("gelu_fast", "gelu_new"), ("swish", "swish")],
)
def test_names_of_activations(data, ours, theirs):
    assert configuration(hub_model(data, "--activation-fn", ours))["activation_function"] == theirs


@pytest.mark.parametrize("options", [["--activation-fn", "linear"], ["--decoder-embed-dim", "12"]])
def test_options_missing_in_the_configuration_are_refused(data, options):
    with pytest.raises(InputError):
        configuration(hub_model(data, *options))


def test_export_of_a_data_bin_has_no_tokenizer(data, tmp_path):
    shutil.copytree(data / "data-bin", tmp_path / "alone")
    model = hub.trained(data, tmp_path, updates=1)
    export(str(model / "checkpoint.pt"), tmp_path / "hub", "huggingface", data=tmp_path / "alone")
    written = sorted(path.name for path in (tmp_path / "hub").iterdir())
    assert "vocab.json" in written and "tokenizer_config.json" not in written
    found = json.loads((tmp_path / "hub" / "generation_config.json").read_text())
    search = dict(num_beams=SearchOptions().beam, early_stopping=True, min_new_tokens=1, bad_words_ids=[[1]])
    numbers = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2, forced_eos_token_id=2, decoder_start_token_id=2)
    longest = json.loads((tmp_path / "hub" / "config.json").read_text())["max_position_embeddings"]
    assert found == {**search, **numbers, "max_length": longest}


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, "MarianTokenizer"),
        ({"truecase": True}, None),
        ({"source_tokenizer": "moses"}, None),
        ({"target_tokenizer": "moses"}, None),
        ({"subwords": "none"}, None),
        ({"subwords": "subword-nmt"}, None),
        ({"source_lang_token": ">>deu<<"}, "MarianTokenizer"),
        ({"source_lang_token": "<2de>"}, None),
        ({"source_lang_token": "__en__", "target_lang_token": "__de__"}, "M2M100Tokenizer"),
        ({"source_lang_token": "__en__", "target_lang_token": "de_DE"}, None),
        ({"target_lang_token": "__de__"}, None),
    ],
)
def test_tokenizer_class(data, changes, expected):
    codec = TextCodec.of_output(data)
    codec.options = {**codec.options, **changes}
    assert tokenizer_of(HubText(HubVocabularies(([], []), ([], []), shared=True), codec)) == expected
