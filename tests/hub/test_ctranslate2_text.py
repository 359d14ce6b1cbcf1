"""Text models and README.md of exports to CTranslate2."""

import json
import shutil

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.exporting import export
from docnmt_fairseq.hub.formats.ctranslate2 import write_text_models
from tests.support.hub import made, trained
from tests.support.pretrained import ENGLISH, GERMAN, changed

STEPS = {
    "nothing": (dict(subwords="none"), "splitting at spaces"),
    "one tokenizer": (dict(subwords="none", tokenizer="moses"), "tokenizer moses"),
    "merges": (dict(subwords="subword-nmt", vocab_size=60), "BPE codes"),
    "of the source alone": (
        dict(subwords="bpe", vocab_size=60, joint=False, truecase=True, source_tokenizer="moses"),
        "tokenizer moses, truecasing, SentencePiece",
    ),
    "of the target alone": (dict(subwords="none", truecase=True, target_tokenizer="moses"), "tokenizer moses, truecas"),
}


@pytest.mark.parametrize("name", STEPS)
def test_text_models_equal_those_of_prepare(tmp_path, name):
    options, told = STEPS[name]
    data, folder = made(tmp_path, **options), tmp_path / "model"
    write_text_models(data, folder)
    before, after = TextCodec.of_output(data), TextCodec.of_output(folder / "text")
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        tokens = before.encode(side, lines)
        assert after.encode(side, lines) == tokens
    assert [after.decode(line) for line in tokens] == [before.decode(line) for line in tokens]
    assert f"Steps from text to tokens: {told}" in (folder / "README.md").read_text()


def test_page_with_two_subword_models(tmp_path):
    write_text_models(made(tmp_path, subwords="unigram", vocab_size=40, joint=False), tmp_path / "model")
    page = (tmp_path / "model" / "README.md").read_text()
    found = [page.index(f"FOLDER/text/models/subword.{language}.model") for language in ("en", "de")]
    assert found == sorted(found)


def test_language_tokens(tmp_path):
    data = made(tmp_path, subwords="unigram", vocab_size=60, source_lang_token="__en__", target_lang_token="__de__")
    write_text_models(data, tmp_path / "model")
    page = (tmp_path / "model" / "README.md").read_text()
    assert "SentencePiece, language token __en__, language token __de__." in page
    assert 'suppress_sequences=[["<pad>"]], target_prefix=[["__de__"]] * len(tokens))' in page
    codec = TextCodec.of_output(tmp_path / "model" / "text")
    assert [codec.begin(side) for side in (0, 1)] == [["__en__"], ["__de__"]]


def test_page_for_a_data_bin_takes_tokens(tmp_path):
    shutil.copytree(made(tmp_path, subwords="none") / "data-bin", tmp_path / "alone")
    write_text_models(tmp_path / "alone", tmp_path / "model")
    assert not (tmp_path / "model" / "text").exists()


def test_two_vocabularies(tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    model = trained(made(tmp_path, subwords="none", joint=False), tmp_path, updates=1)
    export(str(model / "checkpoint.pt"), tmp_path / "hub", "ctranslate2", data=model)
    dictionaries = load_ensemble(model / "checkpoint.pt", data=model).dictionaries
    assert dictionaries[0].symbols != dictionaries[1].symbols
    for side, dictionary in zip(("source", "target"), dictionaries):
        assert json.loads((tmp_path / "hub" / f"{side}_vocabulary.json").read_text()) == dictionary.symbols


@pytest.mark.parametrize("change, message", [("edits_of", "edit operations"), ("model", "subword.model")])
def test_missing_text_models_are_refused(tmp_path, change, message):
    data = made(tmp_path, subwords="unigram", vocab_size=60)
    if change == "model":
        (data / "models" / "subword.model").unlink()
    else:
        options = json.loads((data / "manifest.json").read_text())["options"]
        changed(data / "manifest.json", options={**options, change: "source"})
    with pytest.raises(InputError):
        write_text_models(data, tmp_path / "model")
