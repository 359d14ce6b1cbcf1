"""Forced decoding equals fairseq's scorer on whole batches, for every kind of model."""

import copy

import numpy as np
import pytest
import torch
from fairseq.sequence_scorer import SequenceScorer

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, ScoringRequest, as_tokens
from docnmt_fairseq.models.base import batch_for_model
from tests.support import toy
from tests.support.documents import DOCUMENTS

CONTEXT = ["--context-init", "xavier"]
CONCATENATED = {"task": "concatenated_translation", "arch": "transformer_iwslt_de_en"}
MODELS = {
    "none": (["--context-attention", "none"], {}),
    "conditional": (["--context-attention", "conditional", "--sentence-positions", "learned", *CONTEXT], {}),
    "decoder": (["--decoder-context-attention", "sentence-encodings", *CONTEXT], {}),
    "target": (["--target-context-attention", "han", "--context-sentences", "2", *CONTEXT], {}),
    "cut": (["--target-context-attention", "han", "--max-document-sentences", "2", *CONTEXT], {}),
    "hidden": (["--target-context-attention", "han", "--context", "none", *CONTEXT], {}),
    "2-to-1": (["--concatenate-source", "2"], CONCATENATED),
    "3-to-3": (["--concatenate-source", "3", "--concatenate-target", "3"], CONCATENATED),
    "stock": ([], {"task": "translation", "arch": "transformer_iwslt_de_en"}),
    "stock in documents": ([], {"arch": "transformer_iwslt_de_en"}),
}
QUICK = ("conditional", "target", "3-to-3")
# fairseq's own task does not know boundaries and would score empty lines.
TINY = [*toy.TINY, "--share-all-embeddings"]


def build(data_bin, name):
    arguments, options = MODELS[name]
    _, task, model = toy.build(data_bin, *arguments, tiny=TINY, **options)
    for parameter in model.parameters():  # far from uniform
        torch.nn.init.normal_(parameter, std=0.4)
    return Ensemble(task, [model.eval()])


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in MODELS], ids=str
)
def loaded(request, data_bin):
    return build(data_bin, request.param)


def requests_of(loaded):
    """Returns the test split's source, and its references in their documents."""
    loaded.task.load_dataset("test")
    lines = [line for document in DOCUMENTS["test"] for line in lines_of(document)]
    source = [loaded.task.source_dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]
    reverse = [" ".join(reversed(line.split())) for line in lines]
    target = as_tokens(loaded.task.target_dictionary.encode_line(line, add_if_not_exist=False) for line in reverse)
    requests, before = [], []
    for number, line in enumerate(lines):
        if line == "":
            before = []
        elif line != "<p>":
            requests.append(ScoringRequest(number, target[number], tuple(before)))
            before.append(target[number])
    return source, requests


def lines_of(document):
    return [line for number, part in enumerate(document) for line in [*(["<p>"] if number else []), *part]] + [""]


def expected_of(loaded, requests):
    """Returns what fairseq's scorer says of the whole split in one batch."""
    dataset = loaded.task.dataset("test")
    sample = dataset.collater([dataset[number] for number in range(len(dataset))])
    hypotheses = SequenceScorer(loaded.task.target_dictionary).generate(
        loaded.models, batch_for_model(loaded.models[0], sample)
    )
    scores = {number: best[0]["positional_scores"] for number, best in zip(sample["id"].tolist(), hypotheses)}
    return [scores[request.line][-len(request.target) :].numpy() for request in requests]


def test_scores_equal_fairseq_in_one_batch(loaded):
    source, requests = requests_of(loaded)
    assert len(requests) == 11
    for max_tokens in (7, 4000):
        found = ForcedDecoder(loaded, max_tokens).score(source, requests)
        for one, other in zip(found, expected_of(loaded, requests)):
            np.testing.assert_allclose(one, other, atol=2e-5)


def test_batch_equals_single_requests_in_any_order(loaded):
    source, requests = requests_of(loaded)
    requests += [ScoringRequest(one.line, other.target, one.before) for one, other in zip(requests, requests[3:])]
    decoder = ForcedDecoder(loaded)
    together = decoder.score(source, [*reversed(requests), *requests])
    for number, request in enumerate(requests):
        (alone,) = decoder.score(source, [request])
        np.testing.assert_allclose(together[len(requests) + number], alone, atol=2e-5)
        same = together[len(requests) - 1 - number]
        assert same.tobytes() == together[len(requests) + number].tobytes()


def test_ensemble_averages_probabilities(loaded):
    source, requests = requests_of(loaded)
    other = copy.deepcopy(loaded.models[0])
    for parameter in other.parameters():
        parameter.data.mul_(0.7)
    of_each = [
        ForcedDecoder(Ensemble(loaded.task, [model])).score(source, requests) for model in (loaded.models[0], other)
    ]
    found = ForcedDecoder(Ensemble(loaded.task, [loaded.models[0], other])).score(source, requests)
    for number, one in enumerate(found):
        mean = (np.exp(of_each[0][number]) + np.exp(of_each[1][number])) / 2
        np.testing.assert_allclose(one, np.log(mean), atol=2e-5)


@pytest.mark.parametrize("name, sees", [("target", 2), ("3-to-3", 2), ("2-to-1", 0)])
def test_target_context_is_that_of_the_request(data_bin, name, sees):
    loaded = build(data_bin, name)
    decoder = ForcedDecoder(loaded)
    assert decoder.target_sentences == sees
    source, requests = requests_of(loaded)
    last = requests[3]  # the fourth sentence of the first document
    other = (requests[0].target, last.target, requests[1].target)
    changed = ScoringRequest(last.line, last.target, other)
    beyond = ScoringRequest(last.line, last.target, (last.target, *last.before[1:]))  # changed, but not visible
    before, after, unseen = decoder.score(source, [last, changed, beyond])
    assert np.allclose(before, after, atol=1e-5) == (sees == 0)
    np.testing.assert_allclose(before, unseen, atol=1e-5)


def test_too_long_sentences(data_bin):
    _, task, model = toy.build(data_bin, "--max-source-positions", "6", "--max-target-positions", "6", tiny=TINY)
    source, requests = requests_of(Ensemble(task, [model]))
    with pytest.raises(InputError, match="line 14 of the documents: 8 tokens"):
        ForcedDecoder(Ensemble(task, [model])).score(source, requests[:1])


def test_target_context_is_limited_by_the_length(data_bin):
    loaded = build(data_bin, "3-to-3")
    source, requests = requests_of(loaded)
    (third, *_) = [request for request in requests if len(request.before) == 2]
    decoder = ForcedDecoder(loaded)
    (of_two,) = decoder.score(source, [third])
    decoder.longest = (decoder.longest[0], len(third.before[1]) + len(third.target))
    (shortened,) = decoder.score(source, [third])
    (of_one,) = decoder.score(source, [ScoringRequest(third.line, third.target, third.before[1:])])
    np.testing.assert_allclose(shortened, of_one)
    assert not np.allclose(shortened, of_two)
