"""What addresses the memory network: states after the self-attention sub-layer, or what it added ([M] eq. 5)."""

import pytest
import torch

from tests.support import toy
from tests.support.decoding import stir


@pytest.mark.parametrize("norm", [[], ["--encoder-normalize-before"]], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("query", ["sub-layer", "attention"])
def test_the_memory_is_asked_by_what_was_named(data_bin, norm, query):
    options = ["--context-attention", "memory", "--memory-query", query, *norm]
    _, task, model = toy.build(data_bin, *options)
    stir(model).eval()
    layer, seen = model.encoder.layers[-1], {}
    layer.self_attn.register_forward_hook(lambda module, given, result: seen.update(attended=result))
    layer.context.register_forward_hook(lambda module, given, result: seen.update(asked=given[0], entered=given[1]))
    layer.register_forward_hook(lambda module, given, result: seen.update(x=given[0]))
    model(**toy.batch_of(task)["net_input"])
    after = seen["x"] + seen["attended"]
    after = layer.context_layer_norm(after) if norm and query == "sub-layer" else after
    after = layer.self_attn_layer_norm(after) if not norm else after
    torch.testing.assert_close(seen["asked"], seen["attended"] if query == "attention" else after)
