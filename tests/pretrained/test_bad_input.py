"""What is wrong with a released model is said in one sentence, and nothing is left of it."""

import json
import os
import shutil
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest
import torch

from docnmt_fairseq.cli import main
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.sources import Found
from tests.support.pretrained import LANGUAGES, changed, imported, marian_folder, refused, train_sentencepiece


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    marian_folder(folder)
    return folder


@pytest.fixture
def copy(marian, tmp_path):
    """A MarianMT to be damaged."""
    shutil.copytree(marian, tmp_path / "released")
    return tmp_path / "released"


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "model.safetensors"])
def test_a_missing_file(copy, name):
    (copy / name).unlink()
    refused(copy, rf"(lacks|holds no) {name}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"model_type": "t5"},
            "model_type t5 cannot be imported; m2m_100, marian, mbart and checkpoints of fairseq can",
        ),
        ({"activation_function": "mish"}, "activation_function 'mish': there are relu"),
        ({"encoder_attention_heads": 3}, "encoder_attention_heads 3 do not divide d_model 16"),
        ({"d_model": "16"}, "d_model is '16', not of type int"),
        ({"normalize_before": True}, "normalize_before is True: Hugging Face's MarianMT does not compute"),
        ({"encoder_layers": 3}, "lacks model.encoder.layers.2"),
        ({"encoder_layers": 1}, "has 16 tensors of another architecture: model.encoder.layers.1"),
        ({"encoder_ffn_dim": 25}, r"fc1.weight is \[24, 16\], by the configuration \[25, 16\]"),
        ({"vocab_size": 7}, "vocab.json: has .* symbols, the model 7: the vocabulary does not match"),
    ],
)
def test_a_configuration_of_another_model(copy, values, message):
    changed(copy / "config.json", **values)
    refused(copy, message)


def test_a_vocabulary_of_another_model(copy):
    ids = json.loads((copy / "vocab.json").read_text(encoding="utf-8"))
    first, second = [symbol for symbol in ids if "<" not in symbol][:2]
    changed(copy / "vocab.json", **{first: ids[second]})
    refused(copy, f"vocab.json: .* have one number, {ids[second]}")
    changed(copy / "vocab.json", **{first: 4000})
    refused(copy, "is number 4000, but the model has .* embeddings")


def test_a_symbol_of_two_lines_cannot_stand_in_a_dictionary(copy):
    ids = json.loads((copy / "vocab.json").read_text(encoding="utf-8"))
    symbol = next(symbol for symbol in ids if "<" not in symbol)
    renamed = {"two\nlines" if one == symbol else one: number for one, number in ids.items()}
    (copy / "vocab.json").write_text(json.dumps(renamed), encoding="utf-8")
    refused(copy, r"the symbol 'two\\nlines' cannot stand in a dictionary")


@pytest.mark.parametrize("left", [0, 9, 2000])
def test_a_truncated_file_of_tensors(copy, left):
    os.truncate(copy / "model.safetensors", left)
    refused(copy, "model.safetensors: truncated or damaged")


def test_damaged_json(copy):
    (copy / "config.json").write_text("{")
    refused(copy, "config.json: cannot be read as JSON")
    (copy / "config.json").write_text(f'{{"a": {"[" * 100_000}{"]" * 100_000}}}')
    refused(copy, "config.json: cannot be read as JSON: nested too deeply")


def test_damaged_subword_models(copy):
    (copy / "target.spm").write_bytes(b"no model")
    refused(copy, "target.spm: not a SentencePiece model")


class Executing:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_what_could_execute_something_is_refused(copy, tmp_path, name):
    (copy / "model.safetensors").unlink()
    torch.save({"weight": Executing(tmp_path / "made")}, copy / name)
    if name == "model.pt":
        (copy / "config.json").unlink()
    refused(copy, "could execute something when it is loaded")
    assert not (tmp_path / "made").exists()


def test_a_truncated_pickle(copy):
    (copy / "model.safetensors").unlink()
    torch.save({"a": torch.ones(1000)}, copy / "pytorch_model.bin")
    os.truncate(copy / "pytorch_model.bin", 900)
    refused(copy, "pytorch_model.bin: refused: .* damaged")


def test_safe_pickles_and_models_in_several_files_are_read(marian, copy, tmp_path):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    imported(marian, tmp_path / "one")
    (copy / "model.safetensors").unlink()
    torch.save(tensors, copy / "pytorch_model.bin")
    imported(copy, tmp_path / "two")
    (copy / "pytorch_model.bin").unlink()
    names = sorted(tensors)
    files = {f"model-0000{number}-of-00002.safetensors": names[number - 1 :: 2] for number in (1, 2)}
    for file, held in files.items():
        save_file({name: tensors[name] for name in held}, copy / file)
    index = {"weight_map": {name: file for file, held in files.items() for name in held}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    imported(copy, tmp_path / "three")
    states = [
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["model"] for name in ("one", "two", "three")
    ]
    for state in states[1:]:
        assert state.keys() == states[0].keys()
        assert all(torch.equal(state[name], value) for name, value in states[0].items())
    next(iter(copy.glob("model-00002*"))).unlink()
    refused(copy, "names model-00002-of-00002.safetensors, which is not there")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("content", [[1], {"weight_map": {"a": 1, "b": "x"}}, {"weight_map": ["x"]}, {}])
def test_an_index_that_is_none(copy, content):
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors.index.json").write_text(json.dumps(content))
    refused(copy, r"model.safetensors.index.json: not (the index of a model in several files|a JSON object)")


def test_weights_that_are_none(copy):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    save_file({name: value.to(torch.int8) for name, value in tensors.items()}, copy / "model.safetensors")
    refused(copy, "model.safetensors: .* is of type int8; quantised models are not read")
    tensors["model.encoder.layers.1.fc1.bias"][3] = float("nan")
    save_file(tensors, copy / "model.safetensors")
    refused(copy, "fc1.bias has values that are no finite numbers; the model is damaged")


@pytest.mark.parametrize("name", ["model.safetensors", "source.spm", "config.json"])
def test_a_file_instead_of_its_folder(copy, tmp_path, name):
    with pytest.raises(InputError, match=f"{name}: no checkpoint of fairseq; .* give the folder, {copy}") as error:
        imported(copy / name, tmp_path / "imported")
    assert "\n" not in str(error.value)


def test_files_that_are_no_checkpoint_of_fairseq(tmp_path):
    place = tmp_path / "place" / "model.pt"
    place.parent.mkdir()
    place.write_text("hello")
    refused(place.parent, r"model.pt: refused: it is no file of tensors alone, or it is damaged \(KeyError: 101\)$")
    for content in ({"a": torch.ones(1)}, {"model": {"a": torch.ones(1)}}, [1], {"model": 1, "cfg": {"a": 1}}):
        torch.save(content, place)
        refused(place.parent, r"model.pt: no checkpoint of fairseq, which holds a model and its configuration")


def test_a_subword_model_of_another_language(copy):
    train_sentencepiece(copy / "target.spm", ["кошка сидела на ковре .", "собака лает на серую кошку ."], 60)
    refused(copy, "target.spm: of its .* pieces .* are in the vocabulary: it is of another model")


def test_names_that_lead_nowhere(marian, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(marian)
    with pytest.raises(InputError, match="SOURCE: an empty name; give one"):
        imported("", tmp_path / "imported")
    refused(tmp_path / "no" / "such" / "folder", "no such folder or file, and no name of the hub")
    with pytest.raises(InputError, match="nobody/no-such-model: no such folder here, and it cannot be fetched"):
        imported("nobody/no-such-model", tmp_path / "imported")


@pytest.mark.parametrize("safe", [True, False])
def test_from_the_hub_only_what_is_read_is_fetched(marian, tmp_path, monkeypatch, safe):
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
    fetched = [file for file in files if any(fnmatch(file, pattern) for pattern in asked["allow_patterns"])]
    assert fetched == (["model.safetensors"] if safe else ["pytorch_model.bin"])
    about = json.loads((tmp_path / "imported" / "manifest.json").read_text())["imported"]
    assert (about["from"], about["revision"]) == ("owner/model", "c0ffee")
    files.append("tokenization_own.py")
    with pytest.raises(InputError, match=r"owner/model: splits text by code of its own, tokenization_own\.py"):
        imported("owner/model", tmp_path / "other")


def test_an_output_that_is_there_is_left_alone(marian, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    command = ["import", str(marian), "-s", "en", "-t", "de", "--output", str(tmp_path / "there")]
    assert main(command) == 2
    assert "is there already; remove it, or give another place" in capsys.readouterr().err


def test_the_command_says_what_it_is(marian, tmp_path, capsys):
    assert main(["import", str(marian), "-s", "en", "-t", "de", "--output", str(tmp_path / "new")]) == 0
    told = capsys.readouterr().out
    assert "family: marian; licence as stated: apache-2.0" in told and str(tmp_path / "new") in told
    manifest = json.loads((tmp_path / "new" / "manifest.json").read_text())
    about = manifest["imported"]
    assert set(about["files"]) == {"config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"}
    assert about["licence"] == "apache-2.0" and about["positions"] == [64, 64]
    assert (manifest["options"]["source_lang"], manifest["options"]["target_lang"]) == LANGUAGES


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlanguage: en\nlicense: cc-by-nc-4.0\n---\ntext", "cc-by-nc-4.0"),
        ("---\nlicense:\n- mit\n---\n", "mit"),
        ("# no header\nlicense: mit\n", None),
        (None, None),
    ],
)
def test_the_licence_is_what_the_card_states(tmp_path, card, licence):
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert Found(tmp_path).licence == licence
