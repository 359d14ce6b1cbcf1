"""Losses that parts of a model hand in: with any criterion, in training and in the log."""

import re

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.auxiliary_losses import AuxiliaryLoss, collector
from docnmt_fairseq.tasks.auxiliary_losses import auxiliary_means, with_auxiliary_losses
from tests.support import toy

CONDITIONAL = ["--context-attention", "conditional", "--context-top-t", "2", "--context-init", "xavier"]
DENSE = [*CONDITIONAL, "--context-top-t-anneal-start", "100"]


class Part(nn.Module):
    """Hands in what it is told."""

    def __init__(self, *losses):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.losses = losses

    def forward(self):
        hand_in = collector()
        for name, total, count, weight in self.losses if hand_in else ():
            hand_in(AuxiliaryLoss(name, total * self.weight, count, weight))


def step(model, sample):
    """A criterion that knows nothing of other losses."""
    model()
    return 10.0 * model.weight, 4, {"loss": 10.0}


def test_losses_are_added_in_training_and_always_logged():
    model = Part(("one", 3.0, 2, 0.5), ("one", 5.0, 2, 0.5), ("other", 1.0, 4, 0.0))
    loss, size, log = with_auxiliary_losses(step)(model, {})
    assert (float(loss), size) == (14.0, 4)
    assert list(auxiliary_means([log])) == [("one", 2.0, 4.0), ("other", 0.25, 4.0)]
    loss.backward()
    assert float(model.weight.grad) == 14.0
    loss, _, log = with_auxiliary_losses(step)(model.eval(), {})
    assert float(loss) == 10.0
    assert list(auxiliary_means([log, log])) == [("one", 2.0, 8.0), ("other", 0.25, 8.0)]


@pytest.mark.parametrize("criterion", ["cross_entropy", "document_label_smoothed_cross_entropy"])
def test_every_criterion_logs_the_losses(data_bin, tmp_path, caplog, criterion):
    caplog.set_level("INFO")
    options = [*DENSE, "--criterion", criterion, "--max-update", "2", "--log-interval", "1", "--selection-loss", "1"]
    toy.train(data_bin, tmp_path, *options)
    logged = [line for line in caplog.messages if "selection_loss=" in line]
    assert logged and all("selected_mass=" in line for line in logged)
    found = toy.validation(data_bin, tmp_path / "checkpoint_last.pt", "--valid-subset", "test")
    assert 0 < found["selected_mass"] <= 1 and found["selection_loss"] >= 0


def test_zero_weight(data_bin, tmp_path):
    """That of the paper; and with a weight it is another."""
    few = [*DENSE, "--max-update", "2"]
    paper = toy.train(data_bin, tmp_path / "paper", *few, "--selection-loss", "0")
    taught = toy.train(data_bin, tmp_path / "taught", *few, "--selection-loss", "3")
    never = toy.train(data_bin, tmp_path / "never", *few, "--selection-loss", "3", "--selection-loss-phase", "window",
                      "--selection-loss-updates", "5")  # fmt: skip
    toy.assert_same_state(paper, never)
    one, other = toy.state(paper), toy.state(taught)
    different = {name for name in one if not torch.equal(one[name], other[name])}
    assert any("sentence_q_proj" in name for name in different)


def kept(messages):
    """Numbers of kept sentences, one per update."""
    messages = [line for line in messages if " / " in line]
    return [float(number) for line in messages for number in re.findall(r"kept_sentences=([\d.]+)", line)]


def test_the_schedule_is_resumed(data_bin, tmp_path, caplog):
    """The first update from the third on whose mean is high enough: there at once, of a threshold of nothing."""
    caplog.set_level("INFO")
    waiting = [*CONDITIONAL, "--log-interval", "1", "--context-top-t-anneal-start", "3", "--selection-loss", "1"]

    def train(name, updates, when):
        caplog.clear()
        checkpoint = toy.train(
            data_bin, tmp_path / name, *waiting, "--max-update", str(updates), "--context-top-t-anneal-threshold", when
        )
        return toy.state(checkpoint), kept(caplog.messages)

    never, numbers = train("never", 5, "1.0")
    assert len(numbers) == 5 and min(numbers) > 2
    whole, numbers = train("whole", 5, "0.01")
    assert min(numbers[:3]) > 2 >= max(numbers[3:])
    began = [value for name, value in whole.items() if name.endswith("schedule.start_update")]
    assert began and all(int(value) == 3 for value in began)
    train("parts", 4, "0.01")
    parts, _ = train("parts", 5, "0.01")
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, msg=name)
    assert any(not torch.equal(never[name], value) for name, value in whole.items())


def test_figures_without_values_are_not_logged(data_bin, tmp_path, caplog):
    """There is no selected mass after annealing, and none of later sentences in an update without context."""
    caplog.set_level("INFO")
    options = ["--context-top-t-anneal-start", "2", "--selection-loss", "1", "--max-epoch", "4", "--log-interval", "1"]
    toy.train(data_bin, tmp_path, *CONDITIONAL, *options, "--criterion", "document_label_smoothed_cross_entropy")
    logged = [line for line in caplog.messages if " / " in line or "train_wall" in line]
    assert "selected_mass" in logged[0] and "selected_mass" not in logged[-1]
    assert not any("None" in line for line in logged)
