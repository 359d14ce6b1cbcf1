"""Processes that have a batch less than others at the end of an epoch."""

import pytest
import torch
from fairseq.trainer import Trainer

from tests.support import toy

PLAIN = ["--optimizer", "sgd", "--lr", "0.5", "--clip-norm", "0", "--dropout", "0", "--update-freq", "2"]


def after_an_update(data_bin, folder, *more):
    """The first batch and ``more`` are an update: what it logs, and the parameters after it."""
    torch.manual_seed(1)
    cfg, task, model = toy.build(data_bin, *PLAIN, "--save-dir", str(folder))
    task.load_dataset("test")
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    batch = toy.batch_of(task)
    trainer.reset_dummy_batch(batch)
    log = trainer.train_step([batch, *more])
    return log, [parameter.detach().clone() for parameter in model.parameters()]


def test_a_batch_beside_one_that_is_not_there_counts(data_bin, tmp_path):
    log, alone = after_an_update(data_bin, tmp_path)
    other, beside_nothing = after_an_update(data_bin, tmp_path, {})
    assert other["loss"] == pytest.approx(log["loss"]) and log["loss"] > 1
    torch.testing.assert_close(beside_nothing, alone)
