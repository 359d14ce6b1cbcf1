"""Damaged, unsafe and unsupported models are rejected, and nothing is written."""

import json
import os
import shutil
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest
import torch

from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.base import licence
from tests.support.pretrained import LANGUAGES, changed, imported, marian_folder, multilingual_folder, refused

CODES = ("eng_Latn", "deu_Latn")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    marian_folder(folder)
    return folder


@pytest.fixture
def copy(marian, tmp_path):
    """Returns a copy of the MarianMT model to be damaged."""
    return shutil.copytree(marian, tmp_path / "released")


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nllb")
    multilingual_folder(folder, "nllb", saved_tokenizer=True)
    return folder


@pytest.mark.parametrize("values", [{"normalize_before": True}, {"encoder_layers": 1}], ids=str)
def test_configuration_of_another_model(copy, values):
    changed(copy / "config.json", **values)
    refused(copy, "")


@pytest.mark.parametrize("name", ["target.spm", "model.safetensors"])
def test_damaged_or_missing_file(copy, name):
    (copy / name).write_bytes(b"{" * 99)
    refused(copy, name)
    (copy / name).unlink()
    refused(copy, name)


def test_vocabulary_of_another_model(copy):
    ids = json.loads((copy / "vocab.json").read_text(encoding="utf-8"))
    first, second = [symbol for symbol in ids if "<" not in symbol][:2]
    for number in (ids[second], 4000):
        changed(copy / "vocab.json", **{first: number})
        refused(copy, "vocab.json")


class Executing:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_code_in_a_file_is_not_executed(copy, tmp_path, name):
    (copy / "model.safetensors").unlink()
    torch.save({"weight": Executing(tmp_path / "made")}, copy / name)
    if name == "model.pt":
        (copy / "config.json").unlink()
    refused(copy, "mkdir")
    assert not (tmp_path / "made").exists()


def test_quantised_weights(copy):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    save_file({name: value.to(torch.int8) for name, value in tensors.items()}, copy / "model.safetensors")
    refused(copy, "int8")


@pytest.mark.parametrize("safe", [True, False])
def test_only_necessary_files_are_downloaded(marian, tmp_path, monkeypatch, safe):
    import huggingface_hub

    asked = {}
    files = ["model.safetensors", "pytorch_model.bin", "rust_model.ot"][0 if safe else 1 :]

    def model_info(self, name, revision=None):
        return SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=file) for file in files])

    def snapshot_download(name, **options):
        asked.update(options, name=name)
        return str(marian)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    imported("owner/model", tmp_path / "imported", revision="v1")
    assert (asked["name"], asked["revision"]) == ("owner/model", "c0ffee")
    downloaded = [file for file in files if any(fnmatch(file, pattern) for pattern in asked["allow_patterns"])]
    assert downloaded == (["model.safetensors"] if safe else ["pytorch_model.bin"])
    about = json.loads((tmp_path / "imported" / "manifest.json").read_text())["imported"]
    assert (about["from"], about["revision"]) == ("owner/model", "c0ffee")
    files.append("tokenization_own.py")
    with pytest.raises(InputError):
        imported("owner/model", tmp_path / "other")


def test_command(marian, tmp_path, capsys):
    command = ["import", str(marian), "-s", "en", "-t", "de", "--output", str(tmp_path / "new")]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert "marian" in output and "apache-2.0" in output and str(tmp_path / "new") in output
    manifest = json.loads((tmp_path / "new" / "manifest.json").read_text())
    about = manifest["imported"]
    assert set(about["files"]) == {"config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"}
    assert about["licence"] == "apache-2.0" and about["positions"] == [64, 64]
    assert (manifest["options"]["source_lang"], manifest["options"]["target_lang"]) == LANGUAGES
    assert main(command) == 2 and "--output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("card", "stated"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\ntext", "mit"),
        ("---\nlicense:\n- mit\n---\n", "mit"),
        ("license: mit", None),
    ],
)
def test_licence_of_the_model_card(tmp_path, card, stated):
    (tmp_path / "README.md").write_text(card)
    assert licence(tmp_path) == stated


def test_unknown_and_ambiguous_languages(nllb, tmp_path):
    refused(nllb, "--source-code en")
    refused(nllb, "--target-code zho", codes=("eng_Latn", "zho"))
    refused(nllb, "--target-lang", languages=("de", "de"))
    folder = shutil.copytree(nllb, tmp_path / "released")
    (folder / "tokenizer.json").unlink()
    refused(folder, "--source-code eng_Latn", codes=CODES)


def test_mbart_50_is_distinguished_from_mbart_25(tmp_path):
    folder = tmp_path / "released"
    multilingual_folder(folder, "mbart")
    changed(folder / "tokenizer_config.json", tokenizer_class="MBartTokenizer")
    refused(folder, "mBART-25")
    (folder / "tokenizer_config.json").unlink()
    imported(folder, tmp_path / "by_languages")
    codes = json.loads((folder / "special_tokens_map.json").read_text())["additional_special_tokens"][:25]
    changed(folder / "special_tokens_map.json", additional_special_tokens=codes)
    refused(folder, "mBART-25")
    changed(folder / "config.json", tokenizer_class="MBart50Tokenizer")
    imported(folder, tmp_path / "by_configuration")


def test_relatives_with_language_tokens_in_other_places(nllb, tmp_path):
    folder = shutil.copytree(nllb, tmp_path / "released")
    changed(folder / "tokenizer_config.json", legacy_behaviour=True)
    refused(folder, "legacy_behaviour", codes=CODES)
    changed(folder / "tokenizer_config.json", legacy_behaviour=False, tokenizer_class="SMALL100Tokenizer")
    refused(folder, "SMALL100Tokenizer", codes=CODES)
    (folder / "tokenization_small100.py").write_text("raise SystemExit")
    refused(folder, "tokenization_small100.py", codes=CODES)
