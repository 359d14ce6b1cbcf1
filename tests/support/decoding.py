"""Decoding of a batch in several ways that must equal training."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

from tests.support.documents import IDS


def stepwise(model, sample):
    """Returns the logits [S, m_t, V] of one step after another, as a search takes them."""
    encoder_out = model.encoder.forward_torchscript(sample["net_input"])
    previous, state = sample["net_input"]["prev_output_tokens"], {}
    steps = [
        model.decoder(previous[:, : step + 1], encoder_out=encoder_out, incremental_state=state)[0]
        for step in range(previous.size(1))
    ]
    return torch.cat(steps, dim=1)


def padded(model, sample):
    """Returns the logits [S, m_t, V] of all steps at once, from the encoder's output for a search."""
    encoder_out = model.encoder.forward_torchscript(sample["net_input"])
    return model.decoder(sample["net_input"]["prev_output_tokens"], encoder_out=encoder_out)[0]


def logits(model, sample, **options):
    return model(**{**sample["net_input"], **options})[0]


def stir(model):
    """Gives every parameter a random value."""
    generator = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3, generator=generator)
    return model


def translate(task, models, batches, beam):
    """Returns {sentence id: best hypothesis} of batches of documents of the test set, by number."""
    dataset, found = task.dataset("test"), {}
    generator = task.build_generator(models, GenerationConfig(beam=beam, max_len_b=12))
    for numbers in batches:
        sample = dataset.collater([dataset[number] for number in numbers])
        hypotheses = task.inference_step(generator, models, sample)
        found.update({number: best[0] for number, best in zip(sample["id"].tolist(), hypotheses)})
    return found


def assert_same_hypotheses(found, expected):
    assert sorted(found) == sorted(expected) == IDS
    for number in IDS:
        assert found[number]["tokens"].tolist() == expected[number]["tokens"].tolist()
        assert float(found[number]["score"]) == pytest.approx(float(expected[number]["score"]), abs=1e-5)
