"""Format of SCAT, and agreement with highlighted words."""

from pathlib import Path

import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.layers.capture import Weights, capture
from docnmt_fairseq.report.agreement import ON_SENTENCES, ON_WORDS, SELECTED, measure, section
from docnmt_fairseq.report.inspection import dataset_of_lines
from docnmt_fairseq.report.scat import read_scat
from tests.support.documents import write_lines
from tests.support.toy import build

CONDITIONAL = ["--context-attention", "conditional", "--context-top-t", "1"]
TOKENS = TextCodec(Path("."), tokenized=True)
CONTEXT = [
    "A  <hon>b<hoff>  c. D e... still e! B a.",  # complete
    "a b.",  # highlighted word in the sentence of the pronoun
    "A  <hon>b c.",  # not closed: the first word counts
    "A <ho <hon>n>b<hoff> .",  # damaged
    "A b.",  # no highlighted word
]
SENTENCE = ["c <p>a</p> b.", "c <p>a</p>  <hon>b<hoff> .", "<p>a</p> s<p>it</p>e", "<p>a</p>", "<p>a</p>"]


@pytest.fixture()
def prefix(tmp_path):
    write_lines(tmp_path / "h.context.src", CONTEXT)
    write_lines(tmp_path / "h.src", SENTENCE)
    return tmp_path / "h"


def test_one_side(prefix):
    scat = read_scat(prefix, "src", "tgt")
    first, second, third = scat.examples
    assert first.sentences == [["A", "b", "c."], ["D", "e...", "still", "e!"], ["B", "a."], ["c", "a", "b."]]
    assert first.pronouns == [1] and first.highlighted == [(0, 1)]
    assert second.sentences == [["a", "b."], ["c", "a", "b."]] and second.highlighted == [(1, 2)]
    assert third.highlighted == [(0, 1)] and third.pronouns == [0]
    assert (scat.repaired, scat.damaged, scat.unmarked, scat.unaligned) == (1, 1, 1, 0)


def test_highlighted_words_of_the_target(tmp_path):
    write_lines(tmp_path / "h.context.src", ["A b. C d.", "A b. C d."])
    write_lines(tmp_path / "h.src", ["e <p>a</p>", "e <p>a</p>"])
    write_lines(tmp_path / "h.context.tgt", ["X y. Z  <hon>w<hoff> .", "X y, z  <hon>w<hoff> ."])
    write_lines(tmp_path / "h.tgt", [" <hon>v<hoff> ", "v"])
    scat = read_scat(tmp_path / "h", "src", "tgt")
    (example,) = scat.examples
    assert example.highlighted == [(1, None), (2, None)]
    assert (scat.unmarked, scat.unaligned) == (0, 1)


def trained(data_bin, *options):
    _, task, model = build(data_bin, "--context-init", "xavier", *options)
    return Ensemble(task, [model], paths=[Path("x.pt")])


class LanguageCodec(TextCodec):
    """Adds a language token to each sentence."""

    def begin(self, side):
        return ["e"]

    def encode(self, side, sentences):
        return [f"e {sentence}" for sentence in super().encode(side, sentences)]


def test_agreement_equals_the_mechanism(data_bin, prefix):
    of, scat = trained(data_bin, *CONDITIONAL), read_scat(prefix, "src", "t")
    agreement = measure(of, scat, LanguageCodec(Path("."), tokenized=True))
    assert (agreement.cases, agreement.own, agreement.long) == (2, 1, 0)
    ((title, figures),) = agreement.figures.items()
    assert title == "encoder layer 2: conditional"
    cases = []
    for example, pronoun, word in ((scat.examples[0], 10 + 1, 1), (scat.examples[2], 4, 1)):
        pronoun += len(example.sentences) - 2 if len(example.sentences) > 2 else 0  # ends of previous sentences
        pronoun, word = pronoun + len(example.sentences), word + 1  # language tokens
        lines = [" ".join(["e", *words]) for words in example.sentences]
        dataset = dataset_of_lines(of, lines, "t")
        inputs = dataset.collater([dataset[0]])["net_input"]
        with capture() as captured, torch.no_grad():
            of.model.encoder(inputs["src_tokens"], layout=inputs["layout"])
        (weights,) = (e.weights for _, e in captured.entries if isinstance(e, Weights))
        first = int(inputs["layout"].tokens.lengths[0])
        cases.append((weights[pronoun, :first].sum(0), weights[pronoun, word]))
    for case, (of_sentence, of_word) in enumerate(cases):
        torch.testing.assert_close(torch.tensor(figures[ON_SENTENCES].heads[case]), of_sentence)
        torch.testing.assert_close(torch.tensor(figures[ON_WORDS].heads[case]), of_word)
        selected = torch.tensor(figures[SELECTED].heads[case])
        assert selected.tolist() == (of_sentence > 0).float().tolist()  # with t = 1 the weight is 0 or 1
        assert figures[SELECTED].any_head == sum(float((s > 0).any()) for s, _ in cases) / 2
    assert figures[SELECTED].chance == pytest.approx([1 / 4, 1 / 2])
    assert figures[ON_WORDS].chance == pytest.approx([1 / (16 + 4), 1 / (7 + 2)])
    html = section(scat, agreement)
    assert html.count("<svg") == 3 and "3 examples, 2 pairs" in html


def test_mechanisms_without_selection(data_bin, prefix):
    scat = read_scat(prefix, "src", "t")
    of = trained(data_bin, "--context-attention", "tree", "--context-top-t", "0")
    figures = measure(of, scat, TOKENS).figures["encoder layer 2: tree"][SELECTED]
    assert figures.by_head.tolist() == [1, 1] and figures.chance == [1, 1]
    of = trained(data_bin, "--context-attention", "sentence-encodings")
    (figures,) = measure(of, scat, TOKENS).figures.values()
    assert set(figures) == {ON_SENTENCES}
    assert measure(trained(data_bin), scat, TOKENS).figures == {}
