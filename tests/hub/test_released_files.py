"""Forms of files on the hub: half types, several files, old configurations."""

import json
import shutil

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from tests.support.pretrained import imported, marian_folder

SHARDS = 2
# What save_pretrained wrote into config.json in 2020, and what translating makes nothing of.
LEGACY = {
    "_num_labels": 3, "add_bias_logits": False, "add_final_layer_norm": False, "architectures": ["MarianMTModel"],
    "bad_words_ids": [[58100]], "classif_dropout": 0.0,
    "do_blenderbot_90_layernorm": False, "extra_pos_embeddings": 58101,
    "force_bos_token_to_be_generated": False, "forced_eos_token_id": 0, "id2label": {"0": "LABEL_0"},
    "label2id": {"LABEL_0": 0}, "length_penalty": 1.0, "max_length": 512, "normalize_before": False,
    "normalize_embedding": False, "num_beams": 6, "static_position_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    marian_folder(folder)
    return folder


def with_files(released, folder, write):
    """Returns a copy of a model with other tensor files, and the tensors."""
    from safetensors.torch import load_file

    shutil.copytree(released, folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    write(tensors, folder)
    return folder


def in_half(tensors, folder):
    """Writes the format of PyTorch before 1.6."""
    halved = {name: value.half() for name, value in tensors.items()}
    torch.save(halved, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def in_bfloat16(tensors, folder):
    """Writes several files with an index."""
    held = {}
    for number in range(SHARDS):
        file = f"pytorch_model-{number + 1:05d}-of-{SHARDS:05d}.bin"
        part = sorted(tensors)[number::SHARDS]
        torch.save({name: tensors[name].bfloat16() for name in part}, folder / file)
        held.update(dict.fromkeys(part, file))
    index = {"metadata": {"total_size": 1}, "weight_map": held}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def parameters(folder):
    return dict(load_ensemble(folder / "checkpoint.pt", data=folder).model.named_parameters())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("write", "dtype"), [(in_half, torch.float16), (in_bfloat16, torch.bfloat16)])
def test_half_types_are_read_exactly(marian, tmp_path, write, dtype):
    expected = parameters(imported(marian, tmp_path / "plain"))
    found = parameters(imported(with_files(marian, tmp_path / "released", write), tmp_path / "imported"))
    assert found.keys() == expected.keys() and {value.dtype for value in found.values()} == {torch.float32}
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value.to(dtype).float(), rtol=0, atol=0)


def test_old_configuration_with_copied_tensors(marian, tmp_path):
    def with_copies(tensors, folder):
        copies = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
        positions = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
        shared = {
            **dict.fromkeys(copies, tensors["model.shared.weight"]),
            **dict.fromkeys(positions, torch.zeros(64, 16)),
        }
        torch.save({**tensors, **shared}, folder / "pytorch_model.bin")

    folder = with_files(marian, tmp_path / "released", with_copies)
    path = folder / "config.json"
    about = json.loads(path.read_text())
    for name in ("decoder_vocab_size", "share_encoder_decoder_embeddings", "tie_word_embeddings", "dtype"):
        about.pop(name, None)  # said later, and so by default
    path.write_text(json.dumps({**LEGACY, **about, "extra_pos_embeddings": about["pad_token_id"] + 1}))
    expected, found = parameters(imported(marian, tmp_path / "a")), parameters(imported(folder, tmp_path / "b"))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
