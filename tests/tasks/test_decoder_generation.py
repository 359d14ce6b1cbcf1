"""Beam search with context in the decoder."""

import copy
import re

import pytest
import torch

from docnmt_fairseq.context.base import DECODER_MECHANISMS
from tests.support import toy
from tests.support.decoding import assert_same_hypotheses, translate
from tests.support.documents import IDS


@pytest.fixture(scope="module", params=DECODER_MECHANISMS.names())
def checkpoint(request, data_bin, tmp_path_factory):
    """Returns a model with context in its decoder only, trained until it ends sentences at different steps."""
    options = ["--decoder-context-attention", request.param, "--decoder-context-layers", "0,1"]
    options += ["--context-init", "xavier", "--max-update", "60"]
    return toy.train(data_bin, tmp_path_factory.mktemp("decoder"), *options)


def test_a_batch_equals_its_documents(built):
    task, model = built
    alone = translate(task, [model], [[0], [1], [2]], beam=4)
    assert len({len(hypothesis["tokens"]) for hypothesis in alone.values()}) > 1  # sentences finish at different steps
    for batches in ([[2, 0, 1]], [[1, 2], [0]]):
        assert_same_hypotheses(translate(task, [model], batches, beam=4), alone)


def test_greedy_search_equals_full_decoding(built):
    task, model = built
    dataset = task.dataset("test")
    for number in range(3):
        net_input = dataset.collater([dataset[number]])["net_input"]
        found = [best["tokens"].tolist() for best in translate(task, [model], [[number]], beam=1).values()]
        tokens = torch.full((len(found), 1), task.target_dictionary.eos())
        for step in range(12):
            words = model(**{**net_input, "prev_output_tokens": tokens})[0][:, -1]
            words[:, task.target_dictionary.pad()] = -torch.inf
            if step == 0:  # fairseq's --min-len 1
                words[:, task.target_dictionary.eos()] = -torch.inf
            tokens = torch.cat([tokens, words.argmax(1, keepdim=True)], dim=1)
        for expected, hypothesis in zip(tokens[:, 1:].tolist(), found):
            assert hypothesis[:12] == expected[: len(hypothesis)]


def test_ensembles(built):
    task, model = built
    other = copy.deepcopy(model)
    for layer in other.decoder.layers:
        for parameter in layer.context.parameters():
            parameter.data.mul_(-3)
    alone = translate(task, [model, other], [[0], [1], [2]], beam=3)
    assert_same_hypotheses(translate(task, [model, other], [[0, 1, 2]], beam=3), alone)
    of_one = translate(task, [model], [[0], [1], [2]], beam=3)
    assert any(float(alone[n]["score"]) != float(of_one[n]["score"]) for n in IDS)


@pytest.mark.slow
def test_only_the_context_is_trained(data_bin, tmp_path):
    sentence = toy.train(data_bin, tmp_path / "sentence", "--max-update", "3", task="translation", arch="transformer")
    options = ["--decoder-context-attention", "sentence-encodings", "--finetune-from-model", str(sentence)]
    options += ["--freeze-sentence-model", "--max-update", "2"]
    document = toy.train(data_bin, tmp_path / "document", *options)
    before, after = toy.state(sentence), toy.state(document)
    before = {re.sub(r"\.(fc\d)\.", r".feed_forward.\1.", key): value for key, value in before.items()}
    added = {key for key in after if ".context" in key}
    shared = after.keys() - added
    assert shared <= before.keys() and len(shared) > 40
    for key in shared:
        assert torch.equal(after[key], before[key]), key
    moved = [key for key in added if key.endswith("out_proj.weight") and "encoder" not in key.split("context.")[1]]
    assert moved and all(after[key].abs().sum() > 0 for key in moved)
