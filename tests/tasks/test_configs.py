"""Every YAML of configs/ trains with fairseq-hydra-train, at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import toy

pytestmark = pytest.mark.slow
CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = ["model.encoder_embed_dim=8", "model.encoder_ffn_embed_dim=12", "dataset.max_tokens=60", "common.cpu=true"]
SMALL += ["optimization.max_update=2", "lr_scheduler.warmup_updates=1", "dataset.num_workers=0"]


@pytest.mark.usefixtures("starts_soon")
@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.yaml")))
def test_config_trains(name, data_bin, tmp_path):
    overrides = [*SMALL, f"common.user_dir={toy.PLUGIN}", f"task.data={data_bin}", f"checkpoint.save_dir={tmp_path}"]
    if "finetune" in name:
        sizes = ["--encoder-layers", "4", "--decoder-layers", "4", "--encoder-normalize-before"]
        sizes += ["--decoder-normalize-before", "--share-all-embeddings", "--encoder-attention-heads", "4"]
        sentence = toy.train(data_bin, tmp_path / "sentence", *sizes, "--max-update", "1")
        overrides.append(f"checkpoint.finetune_from_model={sentence}")
    command = [sys.executable, "-m", "fairseq_cli.hydra_train", "--config-dir", str(CONFIGS), "--config-name", name]
    result = subprocess.run([*command, *overrides], cwd=tmp_path, capture_output=True, text=True)
    assert (tmp_path / "checkpoint_last.pt").exists(), result.stdout[-3000:] + result.stderr[-3000:]
    assert sorted(toy.generate(data_bin, tmp_path / "checkpoint_last.pt").hypotheses)[-1] == 13
