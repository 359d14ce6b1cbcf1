"""Properties of every architecture: ways to decode agree, documents are independent, all parameters learn."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from docnmt_fairseq.tasks.auxiliary_losses import with_auxiliary_losses
from tests.support import toy
from tests.support.architectures import ARCHITECTURES, parameters, randomised
from tests.support.decoding import logits, padded, stepwise, stir
from tests.support.extra_sources import with_extra_sources
from tests.support.toy import TINY_RNN

DOCUMENTS = [name for name, family in ARCHITECTURES.items() if family.task == "document_translation"]
RECOMPUTING = (  # one architecture for each kind of layer
    "sentence", "concatenation", "conditional, heads", "tree by keys", "memory, gated-feed-forward",
    "context-aware, gated-attention", "decoder ca-att", "decoder sentence-encodings", "target han",
    "feed-forward ca-res", "sources flat dot-product", "sources parallel dot-product", "sources, shared",
)  # fmt: skip
BY_DOCUMENT = [name for name in DOCUMENTS if name != "memory, batch, means"]  # in training it reads the whole batch
WITH_CONTEXT = (
    "positions",
    "conditional, block",
    "tree by keys",
    "memory, gated-feed-forward",
    "decoder ca-att",
    "target han",
)
DROPPING = ["--dropout", "0.2", "--attention-dropout", "0.2", "--activation-dropout", "0.1"]


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


def built(extra_bin, name, *options):
    """Returns (criterion, model, dataset) in float64."""
    _, task, model = ARCHITECTURES[name].build(extra_bin, *options)
    task.load_dataset("test")
    criterion = DocumentLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    return with_auxiliary_losses(criterion), randomised(model).double(), task.dataset("test")


def batch_of(dataset, numbers):
    return dataset.collater([dataset[int(number)] for number in numbers])


def learnt(criterion, model, *batches):
    """Returns loss, sample size and log of some batches, added up, and the gradients of all."""
    totals = {}
    for batch in batches:
        loss, size, log = criterion(model.train(), batch)
        loss.backward()
        for key, value in {**log, "the loss": loss.detach(), "the size": size}.items():
            totals[key] = totals.get(key, 0) + value
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return totals, gradients


def assert_alike(one, other, tolerance):
    assert one[0].keys() == other[0].keys() and one[1].keys() == other[1].keys()
    for found, expected in zip(one, other):
        for name, value in found.items():
            a, b = (torch.as_tensor(0.0 if x is None else x, dtype=torch.float64) for x in (value, expected[name]))
            torch.testing.assert_close(a.expand_as(b), b, atol=tolerance, rtol=tolerance, msg=name)


@pytest.mark.parametrize("name", parameters(BY_DOCUMENT))
def test_packed_padded_and_incremental_decoding_are_equal(extra_bin, name):
    _, model, dataset = built(extra_bin, name)
    batch = batch_of(dataset, range(len(dataset)))
    real = batch["target"].ne(1)
    with torch.no_grad():
        full = logits(model.eval(), batch)[real]
        ways = [model.train()(**batch["net_input"])[0]]
        model.eval()
        if not name.startswith("target"):  # decoding sees previous translations, not references
            ways += [padded(model, batch)[real], stepwise(model, batch)[real]]
    for found in ways:
        torch.testing.assert_close(found, full, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", parameters(BY_DOCUMENT))
def test_documents_are_independent_and_every_parameter_learns(extra_bin, name):
    """The losses of batches add up to that of a larger one, as ``--update-freq`` assumes."""
    criterion, model, dataset = built(extra_bin, name)
    parts = [batch_of(dataset, numbers) for numbers in ([2, 0], [1])]
    whole = batch_of(dataset, range(len(dataset)))
    rows = dict(zip(whole["id"].tolist(), logits(model.eval(), whole)))
    for part in parts:
        for number, values, target in zip(part["id"].tolist(), logits(model, part), part["target"]):
            real = target.ne(1)
            torch.testing.assert_close(values[real], rows[number][: len(real)][real], atol=1e-7, rtol=1e-7)
    found, expected = learnt(criterion, model, *parts), learnt(criterion, model, whole)
    assert not [parameter for parameter, gradient in expected[1].items() if gradient is None]
    assert_alike(found, expected, 1e-5)  # losses are computed and logged in float32


@pytest.mark.parametrize("name", parameters(RECOMPUTING))
def test_recomputed_activations_give_the_same_gradients_with_dropout(extra_bin, name):
    found = []
    for options in ([], ["--checkpoint-activations"]):
        criterion, model, dataset = built(extra_bin, name, *DROPPING, *options)
        batch = batch_of(dataset, range(len(dataset)))
        torch.manual_seed(5)
        found.append(learnt(criterion, model, batch))
    assert_alike(*found, 1e-9)
    torch.manual_seed(6)
    other, _ = learnt(criterion, model, batch)
    assert other["the loss"] != found[0][0]["the loss"], "nothing is dropped: the comparison says little"


@pytest.mark.parametrize("name", WITH_CONTEXT)
def test_without_context_sentences_are_independent(data_bin, name):
    _, task, model = ARCHITECTURES[name].build(data_bin, "--context", "none")
    batch = toy.batch_of(task)
    net_input = batch["net_input"]
    together = logits(randomised(model), batch)
    for row in np.random.default_rng(1).permutation(len(together))[:4]:
        length, target = int(net_input["src_lengths"][row]), int(batch["target"][row].ne(1).sum())
        alone = {
            "src_tokens": net_input["src_tokens"][row : row + 1, :length],
            "src_lengths": torch.tensor([length]),
            "prev_output_tokens": net_input["prev_output_tokens"][row : row + 1, :target],
        }
        expected = logits(model, {"net_input": alone})[0]
        torch.testing.assert_close(together[row, :target], expected, atol=1e-5, rtol=1e-5)


# Options, and the attending module; context mechanisms: tests/context/test_contract.py.
ATTENDING = {
    "context": (["--context-attention", "conditional", "--context-init", "xavier"], "encoder.layers.1.context"),
    "several sources": (["--extra-sources", "previous:2"], "decoder.layers.0.encoder_attn"),
    "recurrent": ([], "decoder.attention"),
}


@pytest.mark.parametrize("name", ATTENDING)
def test_dropout_of_attention_weights_in_training_only(data_bin, name):
    options, attending = ATTENDING[name]
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
