import math

import pytest
import torch
from fairseq.logging import metrics

from docnmt_fairseq.ca_layers.decomposition import ReportsChi
from docnmt_fairseq.criterions.document_label_smoothed_cross_entropy import (
    DocumentLabelSmoothedCrossEntropy,
)
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture
from tests.support import toy

NAME = "document_label_smoothed_cross_entropy"
SMOOTHING = ["--label-smoothing", "0.1", "--report-accuracy"]
CONDITIONAL = ["--context-attention", "conditional", "--context-top-t", "2", "--sentence-positions", "learned"]
STRONG = [*CONDITIONAL, "--context-init", "xavier"]
OPENING = {0, 6, 8}  # ids of the sentences that open the documents of the test split
PROBE = ["--criterion", NAME, "--report-cxmi"]


def built(data_bin, *options, criterion=NAME, **more):
    """Returns (model, criterion, batch of the whole test split)."""
    cfg, task, model = toy.build(data_bin, "--criterion", criterion, *SMOOTHING, *options, **more)
    return model, task.build_criterion(cfg.criterion), toy.batch_of(task)


def averages(logs):
    with metrics.aggregate(new_root=True) as aggregated:
        DocumentLabelSmoothedCrossEntropy.reduce_metrics(logs)
    return {name: float(value) for name, value in aggregated.get_smoothed_values().items()}


@pytest.mark.parametrize(
    ("arch", "training", "extra"),
    [
        ("document_transformer", True, []),
        ("document_transformer", False, ["--sentence-avg"]),
        ("transformer", True, []),
    ],
)
def test_loss_gradient_and_accuracy_equal_fairseq(data_bin, arch, training, extra):
    options = [*(STRONG if arch == "document_transformer" else []), *extra]
    results = []
    for name in (NAME, "label_smoothed_cross_entropy"):
        model, criterion, sample = built(data_bin, *options, criterion=name, arch=arch)
        if arch == "transformer":
            del sample["net_input"]["layout"]
        loss, size, log = criterion(model.train(training), sample)
        loss.backward()
        results.append((loss, size, log, [parameter.grad for parameter in model.parameters()]))
    (loss, size, log, gradients), (loss_2, size_2, log_2, gradients_2) = results
    assert size == size_2
    torch.testing.assert_close(loss, loss_2)
    torch.testing.assert_close(gradients, gradients_2)
    for key in log_2:
        torch.testing.assert_close(torch.as_tensor(log[key]), torch.as_tensor(log_2[key]))


@pytest.mark.parametrize(("extra", "training"), [([], True), (["--max-document-sentences", "2"], False)])
def test_sums_by_place_equal_the_reference(data_bin, extra, training):
    model, criterion, sample = built(data_bin, *STRONG, *extra)
    _, _, log = criterion(model.train(training), sample)
    scores = model.eval().get_normalized_probs(model(**sample["net_input"]), log_probs=True)
    nll, tokens = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for number, words, of_sentence in zip(sample["id"].tolist(), sample["target"], scores):
        words = words[words.ne(criterion.padding_idx)]
        nll[number in OPENING] -= sum(float(of_sentence[place, word]) for place, word in enumerate(words.tolist()))
        tokens[number in OPENING] += len(words)
    for name, opens in (("first", True), ("later", False)):
        assert int(log[f"{name}_ntokens"]) == tokens[opens] > 0
        assert float(log[f"{name}_nll_loss"]) == pytest.approx(nll[opens], rel=1e-5)
    assert tokens[True] + tokens[False] == log["ntokens"]
    assert float(log["first_nll_loss"] + log["later_nll_loss"]) == pytest.approx(float(log["nll_loss"]), rel=1e-5)


def test_means_of_parts_are_those_of_the_whole(data_bin):
    model, criterion, whole = built(data_bin, *STRONG, "--report-cxmi")
    _, task, _ = toy.build(data_bin)
    task.load_dataset("test")
    dataset = task.dataset("test")
    parts = [dataset.collater([dataset[number] for number in numbers]) for numbers in ([0, 2], [1])]
    logs = [criterion(model, part)[2] for part in parts]
    assert criterion.logging_outputs_can_be_summed()
    summed = [{key: sum(log[key] for log in logs) for key in logs[0]}]
    expected = averages([criterion(model, whole)[2]])
    assert averages(logs) == averages(summed) == expected
    assert expected["cxmi"] == pytest.approx(expected["no_context_nll_loss"] - expected["nll_loss"], abs=0.0015)
    assert {"first_nll_loss", "later_nll_loss", "no_context_loss", "accuracy"} <= expected.keys()


def test_cxmi_is_the_mean_of_the_log_ratio_over_words(data_bin):
    model, criterion, sample = built(data_bin, *STRONG, "--target-context-attention", "han", "--report-cxmi")
    cxmi = averages([criterion(model, sample)[2]])["cxmi"]
    hidden = built(data_bin, *STRONG, "--target-context-attention", "han", "--context", "none")[2]
    assert hidden["id"].tolist() == sample["id"].tolist()
    with_context, without = (
        model.get_normalized_probs(model(**batch["net_input"]), log_probs=True) for batch in (sample, hidden)
    )
    target = sample["target"]
    ratio = (with_context - without).gather(2, target[..., None]).squeeze(2)[target.ne(criterion.padding_idx)]
    assert cxmi == pytest.approx(float(ratio.mean()) / math.log(2), abs=6e-4) and abs(cxmi) > 2e-3


def test_cxmi_is_the_difference_of_two_validations(data_bin, tmp_path):
    """Also of a model that was trained with another criterion."""
    options = [*STRONG, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--max-update", "9"]
    trained = toy.train(data_bin, tmp_path, *options)
    probe = {"criterion": {"_name": NAME, "report_cxmi": True}}
    probed = toy.validation(data_bin, trained, "--model-overrides", str(probe))
    plain = toy.validation(data_bin, trained)
    hidden = toy.validation(data_bin, trained, "--context", "none")
    assert (probed["loss"], probed["nll_loss"]) == (plain["loss"], plain["nll_loss"])
    assert (probed["no_context_loss"], probed["no_context_nll_loss"]) == (hidden["loss"], hidden["nll_loss"])
    assert probed["cxmi"] == pytest.approx(hidden["nll_loss"] - plain["nll_loss"], abs=0.0015)
    assert probed["cxmi"] != 0


CHI = {
    "sentence encoder": [*CONDITIONAL, "--sentence-encoder", "ca-bsfe"],
    "context": ["--context-attention", "ca-att", "--decoder-context-attention", "ca-att"],
    "attention": ["--attention-combination", "flat", "--combination-attention", "ca-att"],
}


@pytest.mark.parametrize("options", CHI.values(), ids=CHI)
def test_mean_chi_of_every_layer_is_logged_in_validation(data_bin, options):
    model, criterion, whole = built(data_bin, *options)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5, generator=torch.Generator().manual_seed(len(parameter)))
    with capture(ContextFreeIndicator) as recording:
        model(**whole["net_input"])
    layers = {name: recording.of(layer) for name, layer in model.named_modules() if isinstance(layer, ReportsChi)}
    expected = {
        f"chi_{name.replace('.layers.', '_').replace('.', '_')}": e.chi.nanmean() for name, (e,) in layers.items()
    }
    _, task, _ = toy.build(data_bin)
    task.load_dataset("test")
    parts = [task.dataset("test").collater([task.dataset("test")[n] for n in numbers]) for numbers in ([0, 2], [1])]
    logged = averages([criterion(model, part)[2] for part in parts])
    assert expected.keys() == {name for name in logged if name.startswith("chi_")}
    for name, mean in expected.items():
        assert logged[name] == pytest.approx(float(mean), abs=1e-4) and 0 < logged[name] < 1
    assert not any("chi" in key for key in criterion(model.train(), whole)[2])


@pytest.mark.slow
def test_two_processes_log_what_one_does(data_bin, tmp_path, starts_soon):
    options = [*STRONG, *PROBE, *SMOOTHING, "--optimizer", "adam", "--lr", "0.01", "--max-update", "2"]
    options += ["--log-format", "json", "--max-tokens", "400", "--batch-size", "6", "--batch-size-valid", "1"]
    logged = []
    for processes, name in ((1, "one"), (2, "two")):
        found = toy.log_of_processes(processes, data_bin, tmp_path / name, "valid_cxmi", *options)
        logged.append({key: found[key] for key in found if "loss" in key or key in ("valid_cxmi", "valid_accuracy")})
    assert logged[0] == logged[1] and len(logged[0]) >= 8
