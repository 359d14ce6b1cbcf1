"""The loss from logits is fairseq's from log-probabilities."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from docnmt_fairseq.criterions import document_label_smoothed_cross_entropy
from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import label_smoothed_nll


def made(dtype=torch.float64, tokens=23, words=7):
    torch.manual_seed(1)
    logits = (3 * torch.randn(tokens, words, dtype=torch.float64)).to(dtype).requires_grad_()
    return logits, torch.randint(0, words, (tokens,)), torch.rand(tokens, dtype=torch.float64)


def stock(logits, target, smoothing):
    log_p = logits.log_softmax(1, dtype=torch.promote_types(logits.dtype, torch.float32))
    return label_smoothed_nll_loss(log_p, target, smoothing, reduce=False)


@pytest.mark.parametrize(("smoothing", "chunk"), [(0.0, 1), (0.1, 28), (0.5, 10**6)])  # one row, four, all
def test_loss_and_gradient_equal_fairseq(smoothing, chunk, monkeypatch):
    monkeypatch.setattr(document_label_smoothed_cross_entropy, "CHUNK", chunk)
    logits, target, weights = made()
    found, expected = label_smoothed_nll(logits, target, smoothing), stock(logits, target, smoothing)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-12)
    gradients = [torch.autograd.grad((loss * weights).sum(), logits)[0] for loss, _ in (found, expected)]
    torch.testing.assert_close(*gradients, atol=1e-12, rtol=1e-12)
    assert not found[1].requires_grad


def test_half_types_are_summed_in_float32():
    logits, target, _ = made(torch.bfloat16, words=700)
    exact = logits.detach().double().requires_grad_()
    (loss, nll), (expected, _) = label_smoothed_nll(logits, target, 0.1), label_smoothed_nll(exact, target, 0.1)
    assert loss.dtype == nll.dtype == torch.float32
    torch.testing.assert_close(loss.double(), expected, atol=1e-5, rtol=1e-5)
    loss.sum().backward()
    expected.sum().backward()
    assert logits.grad.dtype == torch.bfloat16
    torch.testing.assert_close(logits.grad.double(), exact.grad, atol=1e-5, rtol=2**-8)
