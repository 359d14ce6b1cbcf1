"""The search engine's hypotheses and scores are those of fairseq's search, for every model and option."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

from docnmt_fairseq.search.engines import search_engine
from docnmt_fairseq.search.options import SearchOptions
from tests.support import toy
from tests.support.architectures import ARCHITECTURES, begun
from tests.support.extra_sources import with_extra_sources

STOCK = {"task": "translation", "arch": "transformer"}


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


def samples_of(task, pieces=None):
    """Yields batches of the test set, of ``pieces`` samples each; None: all together."""
    if "test" not in task.datasets:
        task.load_dataset("test")
    dataset = task.dataset("test")
    order = dataset.ordered_indices()
    step = pieces or len(order)
    for start in range(0, len(order), step):
        yield dataset.collater([dataset[int(number)] for number in order[start : start + step]])


def of_fairseq(task, models, samples, prefixes=None, **options):
    """Returns {id: hypotheses} of fairseq's search, batch by batch."""
    generator = task.build_generator(models, GenerationConfig(**options))
    found = {}
    for sample in samples:
        prefix = None
        if prefixes is not None:
            prefix = torch.stack([prefixes[int(number)] for number in sample["id"]])
        hypotheses = task.inference_step(generator, models, sample, prefix_tokens=prefix)
        found.update(zip(sample["id"].tolist(), hypotheses))
    return found


def of_engine(task, models, samples, prefixes=None, hypotheses=None, **options):
    """Returns {id: hypotheses} of the engine."""
    options.setdefault("nbest", options.get("beam", 5))
    engine = search_engine(models, task.target_dictionary, SearchOptions(**options), hypotheses)
    found = {}
    for sentence, of_sentence in engine.run(iter(samples), prefixes):
        assert sentence.number not in found
        source = sentence.batch.sample["net_input"]["src_tokens"][sentence.row, None]
        own = getattr(task, "of_sentences", lambda _, hypotheses, *rest: hypotheses)
        (found[sentence.number],) = own(source, [of_sentence], options.get("lenpen", 1.0))
    return found


def assert_same(found, expected):
    assert sorted(found) == sorted(expected)
    for number, hypotheses in expected.items():
        assert len(found[number]) == len(hypotheses)
        for one, other in zip(found[number], hypotheses):
            assert one["tokens"].tolist() == other["tokens"].tolist(), number
            assert float(one["score"]) == pytest.approx(float(other["score"]), abs=1e-4)
            torch.testing.assert_close(one["positional_scores"], other["positional_scores"], atol=2e-4, rtol=1e-4)


def lively(model):
    """Fills a model's parameters such that sentences have different translations, which end at different steps."""
    begun(model, 0.4)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.data.add_(1)
    output_layer, eos = model.decoder.output_layer, model.decoder.dictionary.eos()

    def with_ends(features, *rest, **options):
        """Ends sentences with a probability that the states decide upon."""
        logits = 0.3 * output_layer(features, *rest, **options)
        wave = 0.6 + 0.6 * torch.sin(model.pace * features.double().sum(-1)).to(logits)
        logits[..., eos] += wave * (logits.amax(-1) - logits[..., eos])
        return logits

    model.decoder.output_layer, model.pace = with_ends, 5
    return model.eval()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture(extra_bin, name):
    _, task, model = ARCHITECTURES[name].build(extra_bin)
    lively(model)
    options = {"beam": 3, "max_len_b": 10}
    for model.pace in (5, 20, 80, 320):
        expected = of_fairseq(task, [model], samples_of(task), **options)
        if len({len(one["tokens"]) for hypotheses in expected.values() for one in hypotheses}) > 2:
            break
    else:
        pytest.fail("sentences of one length")
    for pieces, hypotheses in ((None, None), (1, 9)):  # all at once, and three sentences at a time
        assert_same(of_engine(task, [model], samples_of(task, pieces), hypotheses=hypotheses, **options), expected)
