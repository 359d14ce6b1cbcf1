"""Former names of options and of their values: on command lines and in configurations they mean what they meant."""

import subprocess
import sys

import pytest
import torch
import yaml

from tests.support import toy

FORMER = {
    "context": (
        ["--context-attention", "sentence", "--decoder-context-attention", "sentence"],
        ["--context-attention", "sentence-encodings", "--decoder-context-attention", "sentence-encodings"],
    ),
    "neighbours": (
        ["--context-attention", "memory", "--memory-contexts", "2", "--memory-selection", "random"],
        ["--context-attention", "memory", "--context-sentences", "2", "--context-selection", "random"],
    ),
    "sources": (
        ["--further-sources", "previous:1,next:2", "--further-encoder", "shared", "--attention-combination", "flat"],
        ["--extra-sources", "previous:1,next:2", "--extra-encoder", "shared", "--attention-combination", "flat"],
    ),
    "encoders of sources": (
        ["--further-sources", "previous", "--further-encoder-layers", "1", "--share-further-embeddings"],
        ["--extra-sources", "previous", "--extra-encoder-layers", "1", "--share-extra-embeddings"],
    ),
}


@pytest.mark.parametrize("kind", FORMER)
def test_a_command_line_with_former_names_builds_the_same_model(data_bin, kind):
    outputs, configurations = [], []
    for options in FORMER[kind]:
        _, task, model = toy.build(data_bin, *options)
        outputs.append(model(**toy.batch_of(task)["net_input"])[0])
        configurations.append({name: value for name, value in vars(model.cfg).items() if name in _todays(model)})
    assert torch.equal(*outputs)
    assert configurations[0] == configurations[1]


def _todays(model):
    return {name for name in vars(model.cfg) if not name.startswith(("further_", "memory_", "share_further"))}


@pytest.mark.slow
def test_a_configuration_with_former_names_trains(data_bin, tmp_path):
    """And its checkpoint goes on under the names of today."""
    configuration = {
        "common": {"user_dir": toy.PLUGIN, "cpu": True},
        "task": {"_name": "document_translation", "data": str(data_bin), "further_sources": "previous:1"},
        "model": {
            "_name": "document_transformer", "encoder_embed_dim": 8, "encoder_ffn_embed_dim": 12,
            "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_layers": 1, "decoder_layers": 1,
            "context_attention": "sentence", "further_encoder": "shared",
        },
        "criterion": {"_name": "document_label_smoothed_cross_entropy"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "dataset": {"max_tokens": 60, "num_workers": 0},
        "optimization": {"max_update": 1, "lr": [0.1]},
        "checkpoint": {"save_dir": str(tmp_path)},
    }  # fmt: skip
    (tmp_path / "former.yaml").write_text("# @package _group_\n" + yaml.safe_dump(configuration))
    command = [sys.executable, "-m", "fairseq_cli.hydra_train", "--config-dir", str(tmp_path)]
    result = subprocess.run(
        [*command, "--config-name", "former"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "checkpoint_last.pt").exists(), result.stdout[-3000:] + result.stderr[-3000:]
    assert "--context-attention sentence is now sentence-encodings" in result.stdout + result.stderr
    assert sorted(toy.generate(data_bin, tmp_path / "checkpoint_last.pt", "--beam", "1").hypotheses)[-1] == 13
