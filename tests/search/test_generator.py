"""fairseq's commands search with the engine: hypotheses, scores and their order equal those of fairseq's search."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator

from docnmt_fairseq.search import engine
from docnmt_fairseq.search.generator import EngineGenerator
from tests.search.test_engine import lively, samples_of
from tests.support import toy
from tests.support.architectures import ARCHITECTURES
from tests.support.documents import IDS, text_of, write_lines

NAMES = {
    "sentence": ["sentence"], "conditional": ["conditional, block"], "target": ["target han"], "rnn": ["rnn gru"],
    "ensemble": ["sentence", "conditional, block"], "ensemble with target": ["rnn gru", "target han"],
}  # fmt: skip
OPTIONS = {
    "defaults": {},
    "one hypothesis": {"beam": 1},
    "n-best": {"beam": 4, "nbest": 4},
    "length penalty": {"lenpen": 0.3},
    "sums": {"unnormalized": True, "temperature": 2.0, "unkpen": 1.0},
    "lengths": {"min_len": 3, "max_len_a": 0.7, "max_len_b": 2},
}


def build(data_bin, names):
    """Returns a task and models in float64, whose hypotheses do not have almost equal scores by rounding."""
    built = [ARCHITECTURES[name].build(data_bin) for name in names]
    models = [lively(model.double()) for _, _, model in built]
    for number, model in enumerate(models):
        model.pace = 20
        for parameter in model.parameters():
            parameter.data.mul_(1 + 0.1 * number)
    return built[-1][1], models


def search(task, models, prefixes=None, fairseq=False, **options):
    """Returns the hypotheses of all sentences of the test set in one batch."""
    (sample,) = samples_of(task)
    args = GenerationConfig(**{"max_len_b": 10, **options})
    generator = task.build_generator(models, args, seq_gen_cls=SequenceGenerator if fairseq else None)
    assert fairseq or generator.uses_engine
    return task.inference_step(generator, models, sample, prefix_tokens=prefixes)


def assert_same(found, expected):
    assert [len(hypotheses) for hypotheses in found] == [len(hypotheses) for hypotheses in expected]
    for hypotheses, others in zip(found, expected):
        for one, other in zip(hypotheses, others):
            assert one.keys() == other.keys()
            assert one["tokens"].tolist() == other["tokens"].tolist()
            assert float(one["score"]) == pytest.approx(float(other["score"]), abs=1e-4)
            torch.testing.assert_close(
                one["positional_scores"].float(), other["positional_scores"].float(), atol=2e-4, rtol=1e-4
            )


@pytest.mark.parametrize("names", NAMES)
def test_models(data_bin, names):
    task, models = build(data_bin, NAMES[names])
    expected = search(task, models, fairseq=True)
    assert len({len(hypotheses[0]["tokens"]) for hypotheses in expected}) > 1
    assert_same(search(task, models), expected)


@pytest.mark.parametrize("options", OPTIONS)
def test_options(data_bin, options):
    task, models = build(data_bin, ["sentence"])
    assert_same(search(task, models, **OPTIONS[options]), search(task, models, fairseq=True, **OPTIONS[options]))


@pytest.mark.parametrize("name", ["sentence", "target han"])
def test_prefixes(data_bin, name):
    """Prefixes that end with padding, one with the end of sentence; the minimum length does not apply within them."""
    task, models = build(data_bin, [name])
    dictionary = task.target_dictionary
    prefixes = torch.randint(4, len(dictionary), (len(IDS), 4), generator=torch.manual_seed(2))
    for row in range(len(IDS)):
        prefixes[row, 1 + row % 4 :] = dictionary.pad()
    prefixes[0, :3] = torch.tensor([5, 6, dictionary.eos()])
    for options in ({}, {"min_len": 5}):
        assert_same(search(task, models, prefixes, **options), search(task, models, prefixes, True, **options))


def test_equal_scores_are_ordered_as_by_fairseq(data_bin):
    """Pairs of words have the same output weights, so that every candidate has an equal one."""
    task, models = build(data_bin, ["sentence"])
    decoder = models[0].float().decoder
    weights = decoder.output_projection.weight.data
    weights[5::2] = weights[4:-1:2]
    del decoder.output_layer  # the class's own
    expected = search(task, models, fairseq=True)
    assert_same(search(task, models), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"sampling": True, "sampling_topk": 5}, {"diversity_rate": 0.5},
        {"match_source_len": True}, {"no_repeat_ngram_size": 2},
    ],
    ids=str,
)  # fmt: skip
def test_other_options_use_the_search_of_fairseq(data_bin, options):
    task, models = build(data_bin, ["sentence"])
    (sample,) = samples_of(task)
    found = []
    for kind in (None, SequenceGenerator):
        generator = task.build_generator(models, GenerationConfig(max_len_b=10, **options), seq_gen_cls=kind)
        torch.manual_seed(3)
        found.append(task.inference_step(generator, models, sample))
    assert_same(*found)


def test_changed_parameters_are_used(data_bin):
    """Validation during training: the model that the generator was built for changes in place."""
    task, models = build(data_bin, ["sentence"])
    model = models[0].float()
    (sample,) = samples_of(task)
    generator = task.build_generator(models, GenerationConfig(max_len_b=10))
    before = task.inference_step(generator, models, sample)
    for parameter in model.parameters():
        parameter.data.mul_(0.5)  # as optimizers: without a new version of the parameter
    expected = search(task, models, fairseq=True)
    assert_same(task.inference_step(generator, models, sample), expected)
    assert any(a[0]["tokens"].tolist() != b[0]["tokens"].tolist() for a, b in zip(before, expected))
    assert not any(hasattr(module, "packed") for module in model.modules())


def test_number_of_decoder_steps(data_bin, monkeypatch):
    """A batch of documents takes at most 1.2 × the steps of fairseq's batches of sentences, sorted by length."""
    together = 3
    monkeypatch.setattr(engine, "ON_CPU", together)
    task, models = build(data_bin, ["sentence"])
    (sample,) = samples_of(task)
    steps = []
    models[0].decoder.layers[0].feed_forward.register_forward_hook(lambda *_: steps.append(1))
    ours = search(task, models, beam=1)
    count = len(steps)
    net_input = sample["net_input"]
    args = GenerationConfig(beam=1, max_len_b=10)
    stock = task.build_generator(models, args, seq_gen_cls=SequenceGenerator)
    for rows in net_input["src_lengths"].argsort(descending=True).split(together):
        batch = {name: net_input[name][rows] for name in ("src_tokens", "src_lengths")}
        assert_same([ours[row] for row in rows], stock.generate(models, {"net_input": batch}))
    assert 0 < count <= 1.2 * (len(steps) - count)


@pytest.fixture(scope="module", params=[[], ["--target-context-attention", "han"]], ids=["source", "target"])
def checkpoint(request, data_bin, tmp_path_factory):
    options = ["--context-attention", "conditional", "--context-init", "xavier", "--max-update", "60", *request.param]
    return toy.train(data_bin, tmp_path_factory.mktemp("trained"), *options)


def output(text):
    """Returns the lines of hypotheses with their scores to 3 digits, in order."""
    lines = [line.split("\t") for line in text.splitlines() if line[:2] in ("H-", "P-")]
    return [(name, [round(float(score), 3) for score in scores.split()], *rest) for name, scores, *rest in lines]


def test_commands(data_bin, checkpoint, tmp_path):
    write_lines(tmp_path / "input", [" ".join(words) for words in text_of("test")[0]])
    options = ["--beam", "3", "--nbest", "2", "--max-len-b", "10"]
    for prefix in ([], ["--prefix-size", "2"]):
        ours, stock = (
            toy.generate_text(data_bin, checkpoint, *options, *prefix, *search)
            for search in ([], ["--search", "fairseq"])
        )
        assert output(ours) == output(stock) and len(output(ours)) == 4 * len(IDS)
    ours, stock = (
        toy.interactive(data_bin, checkpoint, tmp_path / "input", "--beam", "3", "--buffer-size", "20", *search)
        for search in ([], ["--search", "fairseq"])
    )
    assert output(ours.text) == output(stock.text) and sorted(ours.hypotheses) == IDS


def test_validation(data_bin, tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO")
    used = []
    generate = EngineGenerator.generate
    monkeypatch.setattr(
        EngineGenerator, "generate", lambda *args, **kwargs: used.append(1) or generate(*args, **kwargs)
    )
    options = ["--context-attention", "han", "--context-init", "xavier", "--max-update", "60", "--eval-bleu"]
    options += ["--eval-bleu-args", '{"max_len_b": 10, "beam": 2}', "--valid-subset", "train"]
    trained = toy.train(data_bin, tmp_path, *options)
    assert used
    toy.assert_bleu_is_of_translations(
        caplog.text, data_bin, trained, "--max-len-b", "10", "--beam", "2", "--search", "fairseq"
    )


def test_validation_in_half_precision(data_bin, tmp_path, caplog):
    caplog.set_level("INFO")
    options = ["--context-attention", "conditional", "--target-context-attention", "han", "--max-update", "2"]
    toy.train(data_bin, tmp_path, *options, "--bf16", "--eval-bleu", "--valid-subset", "train")
    assert "| bleu " in caplog.text
