"""Half precision: sums are accumulated in float32, and losses and gradients are close to those of float32."""

import pytest
import torch

from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from docnmt_fairseq.models.base import LearnedTable
from docnmt_fairseq.tasks.auxiliary_losses import with_auxiliary_losses
from tests.support import toy
from tests.support.architectures import ARCHITECTURES, QUICK, parameters, randomised
from tests.support.extra_sources import with_extra_sources
from tests.support.summed import Summed

OTHERS = (
    "positions", "context-aware, gated-attention", "conditional, torch", "decoder ca-att", "tree source2token",
    "memory, parallel, document", "embeddings ca-em", "feed-forward ca-res", "sources serial dot-product", "rnn ca-rnn",
)  # fmt: skip
# By operation, calling file and architecture (None: all).
ALLOWED = {
    ("sum", "backward", None): "biases and what was broadcast: PyTorch accumulates in float32, see "
    "test_pytorch_accumulates_in_float32",
    ("sum", "combinations.py", None): "over the few sources; added up in float32 and rounded once, too",
    ("mean", "transformer_decoder.py", "concatenation"): "fairseq's weights of heads, for nobody in training",
    ("_scaled_dot_product_flash_attention_for_cpu", "functional.py", "concatenation"): "fairseq's own attention",
    ("_scaled_dot_product_flash_attention_for_cpu_backward", "backward", "concatenation"): "the same",
    ("index_put", "backward", "concatenation"): "of the mask of real target tokens, each of which is there once",
}
# Of float32: relative errors of the loss and of the norm of all gradients. A bfloat16 has 8 bits, a float16 11. Where
# two sentences are nearly as relevant as each other, another one is selected: the norm tells, the loss hardly.
TOLERANCE = {torch.bfloat16: (0.01, 0.1), torch.float16: (0.002, 0.02)}


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


@pytest.fixture(scope="module", params=parameters((*QUICK, *OTHERS)))
def built(request, extra_bin):
    """Returns (name, criterion, model, batch) of an architecture, without dropout."""
    _, task, model = ARCHITECTURES[request.param].build(extra_bin)
    criterion = DocumentLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    return request.param, with_auxiliary_losses(criterion), randomised(model).train(), toy.batch_of(task)


def loss_and_norm(criterion, model, batch, scale=1.0, mode=None):
    """Returns the loss a token, the norm of its gradients, and these, of the loss times ``scale``."""
    model.zero_grad(set_to_none=True)
    loss, size, _ = criterion(model, batch)
    assert loss.dtype == torch.float32
    if mode is not None:
        mode.backward = True
    (loss * (scale / size)).backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum().sqrt()
    return float(loss) / float(size), float(norm) / scale, gradients


def test_half_precision_sums_in_float32(built):
    name, criterion, model, batch = built
    loss, norm, gradients = loss_and_norm(criterion, model.float(), batch)
    assert norm > 0.01 and all(gradient.isfinite().all() for gradient in gradients)
    for dtype, (of_loss, of_norm) in TOLERANCE.items():
        randomised(model.float())  # not the weights rounded to the previous type
        with Summed() as summed:
            found, found_norm, gradients = loss_and_norm(criterion, model.to(dtype), batch, 8.0, summed)
        allowed = {(operation, file) for operation, file, only in ALLOWED if only in (None, name)}
        assert summed.found <= allowed
        assert found == pytest.approx(loss, rel=of_loss)
        assert found_norm == pytest.approx(norm, rel=of_norm)
        assert all(gradient.dtype == dtype and gradient.isfinite().all() for gradient in gradients)


@pytest.mark.slow
def test_autocast_trains_float32_weights(built):
    """As with --amp on a GPU."""
    _, criterion, model, batch = built
    loss, norm, _ = loss_and_norm(criterion, randomised(model.float()), batch)
    with torch.autocast("cpu", torch.bfloat16):
        found, found_norm, gradients = loss_and_norm(criterion, model, batch)
    assert all(gradient.dtype == torch.float32 and gradient.isfinite().all() for gradient in gradients)
    assert (found, found_norm) == (pytest.approx(loss, rel=0.01), pytest.approx(norm, rel=0.1))


def test_pytorch_accumulates_in_float32():
    """4,096 terms of 0.01: in bfloat16 a sum of these stops growing at 4."""
    terms = torch.full((4096, 8), 0.01).bfloat16()
    expected = pytest.approx(float(terms.float().sum(0)[0]), rel=2**-7)
    assert float(terms.sum(0)[0]) == expected
    assert 4096 * float(terms.mean(0)[0]) == expected
    assert float((terms.t() @ torch.ones_like(terms))[0, 0]) == expected
    bias = torch.zeros(8, dtype=torch.bfloat16, requires_grad=True)
    torch.nn.functional.linear(terms, torch.eye(8).bfloat16(), bias).backward(terms)
    assert float(bias.grad[0]) == expected


TOKENS, WIDTH = 4096, 4


def gradient_of(module, dtype, tokens):
    """Returns the gradient of a table in float32, for output gradients of 0.01."""
    module = module.to(dtype)
    output = module(tokens)
    output.backward(torch.full_like(output, 0.01))
    assert output.dtype == module.weight.grad.dtype == dtype
    return module.weight.grad.float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_positions_of_fairseq(dtype):
    tokens = torch.full((TOKENS, 2), 3)
    found, expected = (gradient_of(LearnedTable(4, WIDTH, 1), kind, tokens) for kind in (dtype, torch.float32))
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
    assert float(found[2, 0]) > 40 and not found[1].any()
    padded, half = LearnedTable(4, WIDTH, 1), torch.tensor([[3, 3, 1]])
    assert torch.equal(padded.to(dtype)(half)[0], padded.weight[[2, 3, 1]])
