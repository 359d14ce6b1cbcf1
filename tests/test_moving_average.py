"""fairseq's --store-ema with models whose state is more than parameters."""

import pytest
import torch

from tests.support import toy

NARROWING = ["--context-attention", "conditional", "--context-top-t", "1", "--context-narrow-from", "2"]


@pytest.mark.parametrize(
    ("options", "narrowed"), [([], 1), (["--context-narrow-updates", "7", "--ema-fp32"], 1 / 7)], ids=["", "float32"]
)
def test_schedules_are_taken_over_and_parameters_averaged(data_bin, tmp_path, options, narrowed):
    averaging = ("--store-ema", "--ema-decay", "0.9", "--max-update", "4")
    path = toy.train(data_bin, tmp_path, *NARROWING, *options, *averaging)
    checkpoint = torch.load(path, weights_only=False)
    model, averaged = checkpoint["model"], checkpoint["extra_state"]["ema"]
    schedule, table = "encoder.layers.1.context.schedule.", "encoder.embed_tokens.weight"
    assert float(model[schedule + "narrowed"]) == narrowed
    assert all(torch.equal(averaged[name], value) for name, value in model.items() if name.startswith(schedule))
    assert not torch.equal(averaged[table], model[table])
