"""--attention-dropout is of all that attends to other sentences and other sources, and of that in training alone."""

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from tests.support import toy
from tests.support.decoding import logits, stir
from tests.support.marks import slow_except
from tests.support.toy import TINY_RNN

BEGUN = ["--context-init", "xavier"]
# Options, and the modules that attend.
MODELS = {
    **{
        name: (["--context-attention", name, *BEGUN], "encoder.layers.1.context") for name in CONTEXT_MECHANISMS.names()
    },
    **{
        f"decoder {name}": (["--decoder-context-attention", name, *BEGUN], "decoder.layers.1.context")
        for name in DECODER_MECHANISMS.names()
    },
    **{
        f"target {name}": (["--target-context-attention", name, *BEGUN], "decoder.target_context")
        for name in TARGET_MECHANISMS.names()
    },
    "several sources": (["--extra-sources", "previous:2"], "decoder.layers.0.encoder_attn"),
    "recurrent": ([], "decoder.attention"),
}


@pytest.mark.parametrize("name", slow_except(["conditional", "decoder ca-att", "several sources", "recurrent"], MODELS))
def test_dropout_of_attention_weights_in_training_only(data_bin, name):
    options, attending = MODELS[name]
    kind = {"arch": "document_rnn", "tiny": TINY_RNN} if name == "recurrent" else {}
    found = {}
    for share in ("0", "0.5"):
        _, task, model = toy.build(data_bin, *options, "--attention-dropout", share, **kind)
        sample = toy.batch_of(task)
        stir(model).eval()
        found[share] = logits(model, sample)
        model.get_submodule(attending).train()
        found[f"{share}, training"] = logits(model, sample)
    assert torch.equal(found["0"], found["0.5"])
    torch.testing.assert_close(found["0, training"], found["0"])
    assert not torch.allclose(found["0.5, training"], found["0"])
