"""Training steps on the counted device."""

import contextlib

import pytest
import torch
from fairseq import utils

from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from docnmt_fairseq.layers import attention
from docnmt_fairseq.tasks.auxiliary_losses import with_auxiliary_losses
from tests.support import counted_device

NEEDED = pytest.mark.skipif(not counted_device.HAVE, reason="this PyTorch does not support devices written in Python")


@contextlib.contextmanager
def device(packed_attention=False, types=attention.FLASH_TYPES):
    """Provides the device; ``packed_attention``: with the kernel for packed rows of these types."""
    with counted_device.counted_device() as found, pytest.MonkeyPatch.context() as patch:
        if packed_attention:
            patch.setattr(attention, "has_flash_kernel", lambda device: device.type == counted_device.NAME)
            patch.setattr(attention, "FLASH_TYPES", types)
        yield found


def moved(sample, device):
    """Returns a sample on the device, moved as by fairseq's trainer."""
    return utils.apply_to_sample(lambda x: x.to(device), sample)


def step(task, model, sample):
    """Returns loss, with auxiliary losses, and gradients of a training step."""
    model.zero_grad()
    criterion = DocumentLabelSmoothedCrossEntropy(task, False, 0.1)
    loss, _, _ = with_auxiliary_losses(criterion)(model, sample)
    loss.backward()
    return loss, {name: parameter.grad for name, parameter in model.named_parameters()}


def on_cpu(tensor):
    """Returns a copy on the CPU; None for None."""
    return None if tensor is None else tensor.detach().to("cpu", torch.float32)
