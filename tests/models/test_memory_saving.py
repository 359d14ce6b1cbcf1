"""What saves memory changes nothing else, whatever the architecture: recomputed activations, smaller batches."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import DocumentLabelSmoothedCrossEntropy
from docnmt_fairseq.tasks.auxiliary_losses import with_auxiliary_losses
from tests.support.architectures import ARCHITECTURES, begun, parameters
from tests.support.extra_sources import with_extra_sources

RECOMPUTING = [name for name, family in ARCHITECTURES.items() if family.arch != "document_rnn"]  # which has no layers
BY_DOCUMENT = [name for name in ARCHITECTURES if name != "memory, batch, means"]  # whose documents see one another
DROPPING = ["--dropout", "0.2", "--attention-dropout", "0.2", "--activation-dropout", "0.1"]


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


def built(extra_bin, name, *options):
    """Returns (criterion, model, dataset) in float64."""
    _, task, model = ARCHITECTURES[name].build(extra_bin, *options)
    task.load_dataset("test")
    criterion = DocumentLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    return with_auxiliary_losses(criterion), begun(model).double().train(), task.dataset("test")


def learnt(criterion, model, dataset, *batches):
    """Returns loss, sample size and log of some batches, added up, and the gradients of all."""
    totals = {}
    for numbers in batches:
        loss, size, log = criterion(model, dataset.collater([dataset[int(number)] for number in numbers]))
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


@pytest.mark.parametrize("name", parameters(RECOMPUTING))
def test_recomputed_activations_give_the_same_gradients_with_dropout(extra_bin, name):
    found = []
    for options in ([], ["--checkpoint-activations"]):
        criterion, model, dataset = built(extra_bin, name, *DROPPING, *options)
        torch.manual_seed(5)
        found.append(learnt(criterion, model, dataset, range(len(dataset))))
    assert_alike(*found, 1e-9)
    torch.manual_seed(6)
    other, _ = learnt(criterion, model, dataset, range(len(dataset)))
    assert other["the loss"] != found[0][0]["the loss"], "nothing is dropped: the comparison says little"


@pytest.mark.parametrize("name", parameters(BY_DOCUMENT))
def test_batches_add_up_to_what_a_larger_one_gives(extra_bin, name):
    """What ``--update-freq`` relies on, also of the losses of a model's parts."""
    criterion, model, dataset = built(extra_bin, name)
    numbers = np.arange(len(dataset))
    whole = learnt(criterion, model, dataset, numbers)
    parts = learnt(criterion, model, dataset, numbers[:1], numbers[1:])
    assert len(numbers) > 1 and float(whole[0]["the loss"]) > 0
    assert_alike(parts, whole, 1e-5)  # of the losses, which are computed and logged in float32


def test_dropped_layers_log_the_same_names(extra_bin):
    criterion, model, dataset = built(extra_bin, "conditional, block", "--encoder-layerdrop", "0.5")
    logged = []
    for p in (0.0, 1.0):
        model.encoder.layers.p = p
        logged.append(learnt(criterion, model, dataset, [0])[0])
    assert list(logged[0]) == list(logged[1])
    assert float(logged[0]["auxiliary_selected_mass"]) > 0 == float(logged[1]["auxiliary_selected_mass"])
