"""Import of MarianMT, M2M-100, NLLB-200 and mBART-50: the same symbols, states, probabilities and translations."""

import json
import shutil

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support.marks import slow_except
from tests.support.pair import Pair, assert_same_encoder_states, assert_same_log_probabilities, assert_same_translations
from tests.support.pretrained import (
    ENGLISH,
    GERMAN,
    LANGUAGES,
    imported,
    marian_folder,
    multilingual_folder,
    refused,
    transformers,
)

CODES = {"nllb": ("eng_Latn", "deu_Latn")}
MARIAN_SHAPES = {
    "plain": {},
    "gelu, other depths": dict(activation_function="gelu", encoder_layers=3, decoder_layers=1, scale_embedding=False),
    "untied output": dict(tie_word_embeddings=False),
    "two vocabularies": dict(separate=True, activation_function="relu"),
}
SHAPES = {
    "m2m": {},
    "m2m without scale": dict(scale_embedding=False, activation_function="gelu", encoder_layers=3),
    "nllb": {},
    "nllb with tokenizer.json": dict(saved_tokenizer=True, decoder_layers=1),
    "mbart": dict(activation_function="gelu"),
}


@pytest.fixture(scope="module", params=slow_except({"plain"}, MARIAN_SHAPES))
def marian(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    model = marian_folder(folder / "released", **MARIAN_SHAPES[request.param])
    imported(folder / "released", folder / "imported")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder / "released")
    return Pair(model, tokenizer, folder / "imported", model.config.decoder_start_token_id)


def assert_same_symbols(pair):
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        ours, theirs = pair.symbols(side, lines)
        assert ours == theirs


def test_marian(marian):
    assert_same_symbols(marian)
    assert any("<unk>" in symbols for symbols in marian.symbols(1, GERMAN)[0]), "pieces that the vocabulary lacks"
    assert_same_encoder_states(marian)
    assert_same_log_probabilities(marian, added=2)  # <s> and <p>
    for length_penalty in (0.0, 1.0):
        assert_same_translations(marian.hypotheses(ENGLISH, length_penalty=length_penalty))


def test_marian_with_several_target_languages(tmp_path):
    folder = tmp_path / "released"
    marian_folder(folder, codes=(">>deu<<", ">>nld<<"))
    refused(folder, "--target-code de")
    imported(folder, tmp_path / "imported", codes=(None, "deu"))
    codec = TextCodec.of_output(tmp_path / "imported")
    assert codec.encode(0, ["the cat"])[0].startswith(">>deu<< ▁the") and codec.encode(1, ["die"]) == ["▁d ie"]


@pytest.fixture(scope="module", params=slow_except({"m2m", "nllb", "mbart"}, SHAPES))
def multilingual(request, tmp_path_factory):
    kind = request.param.split()[0]
    folder = tmp_path_factory.mktemp(kind)
    model, tokenizer = multilingual_folder(folder / "released", kind, **SHAPES[request.param])
    imported(folder / "released", folder / "imported", codes=CODES.get(kind, (None, None)))
    target = tokenizer.get_lang_id("de") if kind == "m2m" else tokenizer.convert_tokens_to_ids(tokenizer.tgt_lang)
    pair = Pair(model, tokenizer, folder / "imported", 2, target)
    pair.kind = kind
    return pair


def test_multilingual(multilingual):
    assert_same_symbols(multilingual)
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        assert all(LANGUAGES[side] in symbols[0] for symbols in multilingual.symbols(side, lines)[0])
    assert_same_encoder_states(multilingual)
    assert_same_log_probabilities(multilingual)
    assert_same_translations(multilingual.hypotheses(ENGLISH))


def test_paragraph_mark_replaces_an_unused_symbol_and_language_tokens_are_not_printed(multilingual):
    ensemble = multilingual.ensemble
    dictionary = ensemble.dictionaries[1]
    assert len(dictionary) == multilingual.model.config.vocab_size and "<p>" in dictionary
    names = [side[number] for side, number in zip(ensemble.dictionaries, ensemble.task.language_tokens)]
    assert [name.strip("_")[:2] for name in names] == [*LANGUAGES]
    token = ensemble.task.language_tokens[1]
    assert dictionary.string(torch.tensor([token, 7, 2])) == dictionary[7]


def test_fairseq_architecture_translates_the_same(multilingual, tmp_path):
    released, codes = multilingual.folder.parent / "released", CODES.get(multilingual.kind, (None, None))
    if multilingual.kind == "mbart":  # its logits have a bias here, unlike those of released models
        with pytest.raises(InputError):
            imported(released, tmp_path / "plain", architecture="transformer")
        return
    imported(released, tmp_path / "plain", codes=codes, architecture="transformer")
    search = SearchOptions(beam=3, max_len_b=30)
    ours, plain = (
        DocumentTranslator.from_checkpoint(folder / "checkpoint.pt", search=search, cpu=True).translate_lines([ENGLISH])
        for folder in (multilingual.folder, tmp_path / "plain")
    )
    for one, other in zip(ours[0], plain[0]):
        assert one.text == other.text
        assert one.translations[0].score == pytest.approx(other.translations[0].score, abs=1e-5)


# --- Forms of files on the hub ---

# Unused values that save_pretrained wrote into config.json in 2020.
LEGACY = {
    "_num_labels": 3, "add_bias_logits": False, "add_final_layer_norm": False, "architectures": ["MarianMTModel"],
    "bad_words_ids": [[58100]], "classif_dropout": 0.0, "do_blenderbot_90_layernorm": False,
    "force_bos_token_to_be_generated": False, "forced_eos_token_id": 0, "id2label": {"0": "LABEL_0"},
    "label2id": {"LABEL_0": 0}, "length_penalty": 1.0, "max_length": 512, "normalize_before": False,
    "normalize_embedding": False, "num_beams": 6, "static_position_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Returns a MarianMT, its tensors, and the parameters of its import."""
    from safetensors.torch import load_file

    folder = tmp_path_factory.mktemp("plain")
    marian_folder(folder / "released")
    tensors = load_file(folder / "released" / "model.safetensors")
    return folder / "released", tensors, parameters(imported(folder / "released", folder / "imported"))


def parameters(folder):
    return dict(load_ensemble(folder / "checkpoint.pt", data=folder).model.named_parameters())


def without_tensors(released, folder):
    shutil.copytree(released, folder)
    (folder / "model.safetensors").unlink()
    return folder


def assert_equal(found, expected):
    assert found.keys() == expected.keys() and all(torch.equal(found[name], value) for name, value in expected.items())


def test_old_format_of_half_types_is_read_exactly(plain, tmp_path):
    released, tensors, expected = plain
    folder = without_tensors(released, tmp_path / "released")
    halved = {name: value.half() for name, value in tensors.items()}
    torch.save(halved, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    found = parameters(imported(folder, tmp_path / "imported"))
    assert_equal(found, {name: value.half().float() for name, value in expected.items()})


@pytest.mark.parametrize("suffix", ["bin", "safetensors"])
def test_several_files_with_an_index(plain, tmp_path, suffix):
    from safetensors.torch import save_file

    released, tensors, expected = plain
    folder, held = without_tensors(released, tmp_path / "released"), {}
    for number in range(2):
        part = {name: tensors[name].bfloat16() for name in sorted(tensors)[number::2]}
        file = folder / f"model-{number}.{suffix}"
        torch.save(part, file) if suffix == "bin" else save_file(part, file)
        held.update(dict.fromkeys(part, file.name))
    name = {"bin": "pytorch_model.bin", "safetensors": "model.safetensors"}[suffix]
    (folder / f"{name}.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": held}))
    found = parameters(imported(folder, tmp_path / "found"))
    assert_equal(found, {name: value.bfloat16().float() for name, value in expected.items()})
    (folder / f"model-1.{suffix}").unlink()
    refused(folder, f"model-1.{suffix}")


def test_old_configuration_with_copied_tensors(plain, tmp_path):
    released, tensors, expected = plain
    folder = without_tensors(released, tmp_path / "released")
    copies = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
    positions = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    shared = {**dict.fromkeys(copies, tensors["model.shared.weight"]), **dict.fromkeys(positions, torch.zeros(64, 16))}
    torch.save({**tensors, **shared}, folder / "pytorch_model.bin")
    path = folder / "config.json"
    about = json.loads(path.read_text())
    for name in ("decoder_vocab_size", "share_encoder_decoder_embeddings", "tie_word_embeddings", "dtype"):
        about.pop(name, None)  # defaults
    path.write_text(json.dumps({**LEGACY, **about}))
    assert_equal(parameters(imported(folder, tmp_path / "imported")), expected)
