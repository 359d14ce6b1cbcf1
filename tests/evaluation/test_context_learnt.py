"""Models trained on the artificial corpus: accuracy and CXMI with and without context."""

import json

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.corpus.synth import SynthOptions, read_cases, write_corpus
from docnmt_fairseq.evaluation.contrast import synth
from docnmt_fairseq.evaluation.contrast.report import build_report
from docnmt_fairseq.evaluation.contrast.scoring import answer
from docnmt_fairseq.evaluation.cxmi import measure, read_test_set
from docnmt_fairseq.evaluation.cxmi_report import build_report as cxmi_report
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder
from tests.support import toy
from tests.support.preprocess import fairseq_preprocess

pytestmark = pytest.mark.slow

CORPUS = SynthOptions(
    seed=5,
    train_documents=2000,
    valid_documents=1,
    test_documents=80,
    kinds=("ambiguous", "formality"),
    max_distance=3,
    sentences_per_document=(8, 9),
    words_per_sentence=(4, 4),
    nouns=3,
    places=2,
    verbs=2,
    fillers=4,
    names=2,
    ambiguous_words=2,
    greetings=1,
)
SIZES = ["--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "32", "--encoder-attention-heads", "2"]
SIZES += ["--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "32", "--decoder-attention-heads", "2"]
SIZES += ["--encoder-layers", "2", "--decoder-layers", "1", "--dropout", "0"]
SIZES += ["--encoder-normalize-before", "--decoder-normalize-before"]
TRAINING = ["--max-tokens", "800", "--lr", "0.005", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "50"]
CONDITIONAL = ["--context-attention", "conditional", "--context-top-t", "0", "--max-update", "700"]
CONDITIONAL += ["--sentence-positions", "learned", "--paragraph-positions", "sinusoidal"]
CONDITIONAL += ["--context-dropout", "0.1"]  # so that the model has seen sentences without context
SENTENCE_LEVEL = ["--context-attention", "none", "--max-update", "200"]


def trained(corpus, name, arguments):
    """Trains and returns a model."""
    checkpoint = toy.train(corpus / "bin", corpus / name, *arguments, *TRAINING, tiny=SIZES)
    return load_ensemble(checkpoint, data=corpus / "bin")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    write_corpus(CORPUS, folder)
    arguments = ["-s", "src", "-t", "tgt", "--destdir", str(folder / "bin"), "--joined-dictionary"]
    arguments += [f"--{split}pref={folder / split}" for split in ("train", "test")]
    fairseq_preprocess(arguments)
    return folder


@pytest.fixture(scope="module")
def conditional(corpus):
    return trained(corpus, "conditional", CONDITIONAL)


@pytest.fixture(scope="module")
def sentence_level(corpus):
    return trained(corpus, "sentence", SENTENCE_LEVEL)


def accuracy(corpus, loaded):
    items = synth.read(corpus / "test.phenomena.tsv")
    return build_report(answer(items, ForcedDecoder(loaded), TextCodec(corpus / "bin")), {})


def test_model_with_context_is_accurate(corpus, conditional):
    report = accuracy(corpus, conditional)
    assert all(figures["accuracy"] >= 0.95 for figures in report.groups["phenomenon"].values())
    assert all(figures["accuracy"] >= 0.95 for figures in report.groups["distance"].values())


def test_sentence_level_model_is_at_chance(corpus, sentence_level):
    """Within the upper bound of the ceiling, above and below."""
    report = accuracy(corpus, sentence_level)
    ceiling = json.loads((corpus / "test.ceiling.json").read_text(encoding="utf-8"))["kinds"]
    for kind, figures in report.groups["phenomenon"].items():
        margin = ceiling[kind]["upper_bound"] - ceiling[kind]["accuracy"]
        assert abs(figures["accuracy"] - figures["chance"]) < margin
        assert figures["interval"][0] <= figures["chance"] <= figures["interval"][1]


def test_cxmi_is_positive_for_true_context_only(corpus, conditional):
    test_set = read_test_set(corpus / "test.src", corpus / "test.tgt", conditional, TextCodec(corpus / "bin"))
    measured = measure(test_set, ForcedDecoder(conditional), sentences=300)
    report = cxmi_report(test_set, measured, conditional.task.target_dictionary, {})
    assert report.probes["true"]["cxmi_interval"][0] > 0.1
    assert all(report.probes[probe]["cxmi"] <= 0 for probe in ("shuffled", "random-document"))
    cases = read_cases(corpus / "test.phenomena.tsv")
    forms = {form for case in cases for form in (case.right, *case.wrong)}
    assert report.tokens and {token["token"] for token in report.tokens} <= forms
