"""Hypotheses and scores of the search engine equal those of fairseq's search, for every model and option."""

from collections import Counter

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.sequence_generator import SequenceGenerator

from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.sequential_decoding import decode_sequentially
from docnmt_fairseq.search.steps import IncrementalSteps
from docnmt_fairseq.search.transformer_steps import TransformerSteps
from tests.support import toy
from tests.support.architectures import ARCHITECTURES, QUICK, parameters, randomised
from tests.support.extra_sources import with_extra_sources
from tests.support.marks import slow_except

# One architecture for each part that is computed differently in a search.
SEARCHED = (
    *QUICK, "as Marian", "positions", "conditional, heads", "conditional, top p", "decoder ca-att",
    "decoder sentence-encodings", "han, gated-output", "embeddings ca-em", "feed-forward ca-res",
    "sources hierarchical dot-product", "sources parallel dot-product", "sources serial dot-product",
    "sources flat ca-att", "sources, shared", "sources rnn", "rnn updated state",
)  # fmt: skip
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


def search_fairseq(task, models, samples, **options):
    """Returns {id: hypotheses} of fairseq's search, batch by batch."""
    generator = task.build_generator(models, GenerationConfig(**options), seq_gen_cls=SequenceGenerator)
    found = {}
    for sample in samples:
        hypotheses = task.inference_step(generator, models, sample)
        found.update(zip(sample["id"].tolist(), hypotheses))
    return found


def search_ours(task, models, samples, hypotheses=None, **options):
    """Returns {id: hypotheses} of the engine."""
    options.setdefault("nbest", options.get("beam", 5))
    engine = SearchEngine(models, task.target_dictionary, SearchOptions(**options), hypotheses)
    for model, decoder in zip(models, getattr(engine.decoder, "decoders", [engine.decoder])):
        decoder.model.decoder.output_layer = model.decoder.output_layer  # of a converted stock model
    found = {}
    for sentence, of_sentence in engine.run(iter(samples)):
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
    """Sets random parameters for which sentences have different translations of different lengths."""
    randomised(model, 0.4)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.data.add_(1)
    output_layer, eos = model.decoder.output_layer, model.decoder.dictionary.eos()

    def with_ends(features, *rest, **options):
        """Makes the probability of end of sentence depend on the states."""
        logits = 0.8 * output_layer(features, *rest, **options)
        wave = 0.6 + 0.6 * torch.sin(model.pace * features.double().sum(-1)).to(logits)
        logits[..., eos] += wave * (logits.amax(-1) - logits[..., eos])
        return logits

    model.decoder.output_layer, model.pace = with_ends, 5
    return model.eval()


@pytest.mark.parametrize("name", parameters(SEARCHED))
def test_architectures(extra_bin, name):
    _, task, model = ARCHITECTURES[name].build(extra_bin)
    lively(model)
    options = {"beam": 3, "max_len_b": 10}
    for model.pace in (5, 20, 80, 320):
        expected = search_fairseq(task, [model], samples_of(task), **options)
        if len({len(one["tokens"]) for hypotheses in expected.values() for one in hypotheses}) > 2:
            break
    else:
        pytest.fail("sentences of one length")
    for pieces, hypotheses in ((None, None), (1, 9)):  # all at once, and three sentences at a time
        assert_same(search_ours(task, [model], samples_of(task, pieces), hypotheses=hypotheses, **options), expected)


@pytest.fixture(scope="module")
def sentence(extra_bin):
    """Returns a task and a model in double precision, since hypotheses have almost equal scores."""
    _, task, model = ARCHITECTURES["sentence"].build(extra_bin)
    lively(model.double()).pace = 20
    return task, model


OPTIONS = {
    "more hypotheses than tokens": {"beam": 30},
    "unknown words wanted": {"unkpen": -3.0},
    "one length": {"min_len": 7, "max_len_b": 7},
    "no trigram twice": {"no_repeat_ngram_size": 3, "max_len_b": 30},
    "long": {"max_len_b": 90, "min_len": 60},
}


@pytest.fixture
def ngrams_are_blocked(monkeypatch):
    """Repairs fairseq's search, which looks for repeated n-grams in the padding at the end of a buffer."""
    block = NGramRepeatBlock._no_repeat_ngram
    monkeypatch.setattr(
        NGramRepeatBlock,
        "_no_repeat_ngram",
        lambda self, tokens, lprobs, bsz, beam, step: block(self, tokens[:, : step + 1], lprobs, bsz, beam, step),
    )


SLOW_OPTIONS = ("more hypotheses than tokens", "unknown words wanted", "long")


@pytest.mark.parametrize("options", slow_except(set(OPTIONS) - set(SLOW_OPTIONS), OPTIONS))
def test_options(sentence, ngrams_are_blocked, options):
    task, model = sentence
    options = {"beam": 4, "max_len_b": 12, **OPTIONS[options]}
    expected = search_fairseq(task, [model], samples_of(task), **options)
    assert_same(search_ours(task, [model], samples_of(task), hypotheses=20, **options), expected)


def test_length_limit_applies_to_the_sentence_itself(sentence):
    task, model = sentence
    options = {"beam": 3, "max_len_a": 1.5, "max_len_b": 2, "min_len": 3}
    alone = {}
    for sample in samples_of(task):
        for row in range(len(sample["id"])):
            length = int(sample["net_input"]["src_lengths"][row])
            one = {"src_tokens": sample["net_input"]["src_tokens"][row, None, :length]}
            one["src_lengths"] = sample["net_input"]["src_lengths"][row, None]
            generator = task.build_generator([model], GenerationConfig(**options), seq_gen_cls=SequenceGenerator)
            alone[int(sample["id"][row])] = generator.generate([model], {"net_input": one})[0]
    assert len({len(hypotheses[0]["tokens"]) for hypotheses in alone.values()}) > 1
    assert_same(search_ours(task, [model], samples_of(task), **options), alone)


@pytest.mark.parametrize("names", [["target han"], pytest.param(["sentence", "target han"], marks=pytest.mark.slow)])
def test_given_target_context(extra_bin, names):
    built = [ARCHITECTURES[name].build(extra_bin) for name in names]
    task, models = built[-1][1], [lively(model) for _, _, model in built]
    for model in models:
        model.pace = 20
    (sample,) = samples_of(task)
    words = torch.randint(4, len(task.target_dictionary), (len(sample["id"]), 5), generator=torch.manual_seed(3))
    words[:, -1] = task.target_dictionary.eos()
    given = dict(list(zip(sample["id"].tolist(), words))[::2])
    options, own = {"beam": 3, "max_len_b": 8}, {}
    generator = task.build_generator(models, GenerationConfig(**options), seq_gen_cls=SequenceGenerator)

    def search(batch, numbers):
        """Returns hypotheses with the given translations as the best ones."""
        found = dict(zip(numbers[:, 0].tolist(), generator.generate(models, batch)))
        own.update(found)
        return [[{"tokens": given.get(number, best[0]["tokens"])}] for number, best in found.items()]

    with torch.no_grad():
        decode_sequentially(search, models, sample, sample["id"][:, None])
    with_given = {**sample, "target_context": [given.get(number) for number in sample["id"].tolist()]}
    assert_same(search_ours(task, models, [with_given], hypotheses=9, **options), own)
    free = search_ours(task, models, [sample], **options)
    assert sum(float(free[n][0]["score"]) != float(own[n][0]["score"]) for n in own) > len(own) // 3


STOCK_MODELS = {
    "pre-norm, one table": ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"],
    "learned": ["--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding", "--decoder-layers", "1"],
    "mixed": ["--encoder-learned-pos", "--encoder-normalize-before", "--activation-fn", "gelu", "--no-scale-embedding"],
    "no positions": ["--no-token-positional-embeddings", "--share-decoder-input-output-embed"],
}
OTHER_STOCK_MODELS = {
    "adaptive softmax": ["--adaptive-softmax-cutoff", "5"],
    "no last norm": ["--encoder-normalize-before", "--decoder-normalize-before", "--no-decoder-final-norm"],
}


@pytest.mark.parametrize("options", slow_except(["mixed"], {**STOCK_MODELS, **OTHER_STOCK_MODELS}))
def test_fairseq_transformer(data_bin, options):
    words = {**STOCK_MODELS, **OTHER_STOCK_MODELS}[options]
    _, task, model = toy.build(data_bin, *words, **STOCK)
    lively(model.double() if options in STOCK_MODELS else model)
    engine = SearchEngine([model], task.target_dictionary, SearchOptions())
    assert isinstance(engine.decoder, TransformerSteps if options in STOCK_MODELS else IncrementalSteps)
    own, stock = (each.decoder.layers[0].encoder_attn.k_proj.weight for each in (engine.decoder.model, model))
    assert own.data_ptr() == stock.data_ptr()  # no second copy
    task.load_dataset("test")
    dataset = task.dataset("test")
    numbers = [number for number in range(len(dataset)) if len(dataset[number]["source"]) > 1]
    samples = [
        dataset.collater([dataset[n] for n in numbers[start : start + 5]]) for start in range(0, len(numbers), 5)
    ]
    options = {"beam": 3, "max_len_b": 8}
    assert_same(
        search_ours(task, [model], samples, hypotheses=6, **options), search_fairseq(task, [model], samples, **options)
    )


def test_sampling_depends_on_seed_and_sentence_only(sentence):
    task, model = sentence

    def sampled(seed=1, pieces=None, hypotheses=None, **options):
        options = {"beam": 3, "max_len_b": 8, "sampling": True, "seed": seed, **options}
        found = search_ours(task, [model], samples_of(task, pieces), hypotheses=hypotheses, **options)
        return {number: [one["tokens"].tolist() for one in several] for number, several in found.items()}

    first = sampled()
    assert first == sampled(pieces=1, hypotheses=6) != sampled(seed=2)
    assert len({str(one) for several in first.values() for one in several}) > 20
    assert sampled(sampling_topk=1) == sampled(seed=2, sampling_topk=1) == sampled(seed=3, sampling_topp=1e-6)


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram_size": 3, "unkpen": 1.0}, {"sampling": True}], ids=str)
@pytest.mark.parametrize("name", ["conditional, block", "rnn gru"])
def test_step_reads_once(name, options, data_bin, monkeypatch):
    """A search step waits for a GPU once, to read the candidates."""
    _, task, model = ARCHITECTURES[name].build(data_bin)
    task.load_dataset("test")
    dataset = task.dataset("test")
    wanted = SearchOptions(beam=3, min_len=18, max_len_b=18, **options)  # all end together
    engine = SearchEngine([randomised(model, 0.4).eval()], task.target_dictionary, wanted)
    reads = Counter()
    for read in ("cpu", "item", "tolist"):
        method = getattr(torch.Tensor, read)
        monkeypatch.setattr(torch.Tensor, read, lambda *x, n=read, call=method: reads.update([n]) or call(*x))
    found = list(engine.run(iter([dataset.collater([dataset[number] for number in range(len(dataset))])])))
    monkeypatch.undo()
    assert {len(hypotheses[0]["tokens"]) for _, hypotheses in found} == {19}
    assert 19 <= sum(reads.values()) <= 19 + 7, reads  # of the batch, and when the cache is full
