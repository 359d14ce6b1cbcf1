import torch
from hypothesis import given, settings

from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS, Source2Token
from tests.conftest import layouts, make_layout
from tests.reference import attention as reference


@settings(max_examples=20)
@given(layouts())
def test_source2token_equals_the_equation(layout):
    torch.manual_seed(0)
    encoder = Source2Token(6, 2).double()
    x = torch.randn(layout.words.total, 6, dtype=torch.double, requires_grad=True)
    fast = encoder(x, layout.words)
    slow = reference.source2token(x, layout, encoder.query, encoder.k_proj, encoder.v_proj, encoder.out_proj)
    torch.testing.assert_close(fast, slow, atol=1e-9, rtol=1e-9)
    weight = torch.linspace(-1, 1, fast.numel(), dtype=torch.double).view_as(fast)
    wanted = [x, encoder.query, encoder.v_proj.weight, encoder.out_proj.weight, encoder.k_proj.weight]
    of_fast = torch.autograd.grad((fast * weight).sum(), wanted)
    of_slow = torch.autograd.grad((slow * weight).sum(), wanted)
    for a, b in zip(of_fast, of_slow):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


def test_every_encoder_sees_its_own_sentence_only():
    layout = make_layout([3, 1, 2], [3])
    x = torch.randn(6, 8)
    changed = x.clone()
    changed[3:] += 1
    for name in SENTENCE_ENCODERS.names():
        encoder = SENTENCE_ENCODERS[name](8, 2)
        before, after = encoder(x, layout.words), encoder(changed, layout.words)
        assert before.shape == (3, 8)
        torch.testing.assert_close(before[0], after[0])
        assert not torch.allclose(before[1:], after[1:])


def test_mean_is_the_mean():
    layout = make_layout([3, 1], [2])
    x = torch.randn(4, 8)
    encoded = SENTENCE_ENCODERS["mean"](8, 2)(x, layout.words)
    torch.testing.assert_close(encoded, torch.stack([x[:3].mean(0), x[3]]))
