"""Released models whose languages are others, are unknown, or stand where they are not supported: refused."""

import json
import shutil

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.fairseq_languages import Languages
from tests.support.pretrained import changed, imported, marian_folder, multilingual_folder, refused


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nllb")
    multilingual_folder(folder, "nllb", saved_tokenizer=True)
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "tokens",
    [["__en__"], [{"content": "eng_Latn"}], [{"id": 200}], [{"id": "x", "content": "a"}], [{"id": 999, "content": 1}]],
)
def test_added_tokens_without_text_or_number(nllb, tmp_path, tokens):
    folder = shutil.copytree(nllb, tmp_path / "released")
    changed(folder / "tokenizer.json", added_tokens=tokens)
    refused(folder, "tokenizer.json: a token that it adds lacks its text or its number", codes=("eng_Latn", "deu_Latn"))


def test_symbols_whose_number_is_none(nllb, tmp_path):
    folder = shutil.copytree(nllb, tmp_path / "released")
    numbers = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": None}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    refused(folder, "vocab.json: 'a' is number None", codes=("eng_Latn", "deu_Latn"))


def test_a_list_of_languages_that_is_no_text(tmp_path):
    (tmp_path / "langs.txt").write_bytes(b"en_XX\n\xff\n")
    with pytest.raises(InputError, match=r"langs\.txt:2: not UTF-8"):
        Languages.of_task({"lang_dict": "/there/langs.txt"}, tmp_path / "model.pt")


def test_languages_that_the_model_does_not_have(nllb, tmp_path):
    folder = shutil.copytree(nllb, tmp_path / "released")
    refused(folder, "--source-code en: the model has no such language, or several; it has ace_Arab")
    refused(folder, "--target-code zho: .* it has zho_Hans, zho_Hant", codes=("eng_Latn", "zho"))
    refused(folder, "--source-lang and --target-lang must differ", languages=("de", "de"))


def test_tokens_of_languages_are_needed(nllb, tmp_path):
    folder = shutil.copytree(nllb, tmp_path / "released")
    (folder / "tokenizer.json").unlink()
    refused(folder, "names no language tokens; give its tokenizer_config.json", codes=("eng_Latn", "deu_Latn"))


def test_mbart_25_is_refused(tmp_path):
    folder = tmp_path / "released"
    multilingual_folder(folder, "mbart")
    changed(folder / "tokenizer_config.json", tokenizer_class="MBartTokenizer")
    refused(folder, "language tokens of mBART-25 follow the end of sentence")


def test_mbart_50_is_known_by_its_tokenizer_or_by_its_languages(tmp_path):
    folder = tmp_path / "released"
    multilingual_folder(folder, "mbart")
    (folder / "tokenizer_config.json").unlink()
    imported(folder, tmp_path / "by_languages")
    codes = json.loads((folder / "special_tokens_map.json").read_text())["additional_special_tokens"][:25]
    changed(folder / "special_tokens_map.json", additional_special_tokens=codes)
    refused(folder, "nothing says that this is mBART-50")
    changed(folder / "config.json", tokenizer_class="MBart50Tokenizer")
    imported(folder, tmp_path / "by_configuration")


def test_relatives_with_language_tokens_elsewhere(nllb, tmp_path):
    folder = shutil.copytree(nllb, tmp_path / "released")
    codes = ("eng_Latn", "deu_Latn")
    changed(folder / "tokenizer_config.json", legacy_behaviour=True)
    refused(folder, "tokenizer_config.json: legacy_behaviour: language tokens behind the source", codes=codes)
    changed(folder / "tokenizer_config.json", legacy_behaviour=False, tokenizer_class="SMALL100Tokenizer")
    refused(folder, "tokenizer_class SMALL100Tokenizer: a relative of M2M-100", codes=codes)
    (folder / "tokenization_small100.py").write_text("raise SystemExit")
    refused(folder, "splits text by code of its own, tokenization_small100.py", codes=codes)


def test_a_target_language_of_several(tmp_path):
    folder = tmp_path / "released"
    marian_folder(folder, codes=(">>deu<<", ">>nld<<"))
    refused(folder, "--target-code de: the model has no such language, or several; it has deu, nld")
    imported(folder, tmp_path / "imported", codes=(None, "deu"))
    from docnmt_fairseq.corpus.text_codec import TextCodec

    codec = TextCodec.of_output(tmp_path / "imported")
    assert codec.encode(0, ["the cat"])[0].startswith(">>deu<< ▁the") and codec.encode(1, ["die"]) == ["▁d ie"]
