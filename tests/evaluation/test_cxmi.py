"""CXMI: context of each probe, scores, reports, and the command."""

import copy
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation import cxmi
from docnmt_fairseq.evaluation.cxmi import (
    PROBES,
    ProbeScores,
    SentencePair,
    TokenizedTestSet,
    measure,
    read_test_set,
)
from docnmt_fairseq.evaluation.cxmi_report import build_report
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, ScoringRequest
from docnmt_fairseq.evaluation.tables import render
from tests.support import toy
from tests.support.documents import DOCUMENTS, write_lines

CONDITIONAL = ["--context-attention", "conditional", "--context-init", "xavier", "--sentence-positions", "learned"]
TARGET = ["--target-context-attention", "han", "--context-init", "xavier"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    lines = []
    for document in DOCUMENTS["test"]:
        for number, paragraph in enumerate(document):
            lines += (["<p>"] if number else []) + paragraph
        lines.append("")
    write_lines(folder / "test.src", lines)
    write_lines(folder / "test.tgt", [" ".join(reversed(line.split())) for line in lines])
    return folder / "test.src", folder / "test.tgt"


def build(data_bin, *arguments, **options):
    _, task, model = toy.build(data_bin, *arguments, **options)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return Ensemble(task, [model.eval()])


@pytest.fixture(scope="module")
def loaded(data_bin):
    return build(data_bin, *CONDITIONAL)


@pytest.fixture(scope="module")
def test_set(data_bin, files, loaded):
    return read_test_set(*files, loaded, TextCodec(data_bin))


def test_lines_documents_and_paragraphs(test_set):
    assert test_set.documents == [[0, 1, 2, -1, 3], [4], [5, 6, 7, 8, 9, 10]]
    assert [sentence.line for sentence in test_set.sentences] == [1, 2, 3, 5, 7, 9, 10, 11, 12, 13, 14]
    assert test_set.sentences[3].document == 0 and test_set.sentences[4].texts == ("c d", "d c")


@pytest.mark.parametrize("number", [0, 2, 4, 7])
def test_context_of_probes(test_set, number):
    document = test_set.sentences[number].document
    true = test_set.documents[document]
    assert PROBES["true"](test_set, number, None) == true and PROBES["empty"](test_set, number, None) == [number]
    drawn = set()
    for seed in range(20):
        for probe in ("shuffled", "random-document"):
            rows = PROBES[probe](test_set, number, np.random.default_rng(seed))
            # Other sentences of the document are replaced, boundaries are kept.
            assert [row if row < 0 or row == number else None for row in rows] == [
                row if row < 0 or row == number else None for row in true
            ]
            others = [row for row in rows if row >= 0 and row != number]
            owners = [test_set.sentences[row].document for row in others]
            assert document not in owners
            if probe == "random-document":  # whole documents from their first sentence on, one after another
                at = 0
                while at < len(others):
                    whole = [row for row in test_set.documents[owners[at]] if row >= 0]
                    assert others[at : at + len(whole)] == whole[: len(others) - at]
                    at += len(whole)
            else:
                drawn.update(others)
    outside = {row for row in range(11) if test_set.sentences[row].document != document}
    assert drawn == (set() if len(true) == 1 else outside)


@pytest.mark.parametrize("arguments", [CONDITIONAL, TARGET], ids=["source", "target"])
def test_scores_equal_single_documents(data_bin, files, arguments):
    loaded = build(data_bin, *arguments)
    test_set = read_test_set(*files, loaded, TextCodec(data_bin))
    decoder = ForcedDecoder(loaded)
    measured = measure(test_set, decoder, seed=3)
    dictionary = loaded.task.source_dictionary
    for kind, (probe, show) in enumerate(PROBES.items()):
        for number in (0, 3, 4, 7, 10):
            rows = show(test_set, number, np.random.default_rng((3, kind, number)))
            place = rows.index(number)
            text = [
                dictionary.encode_line("<p>", add_if_not_exist=False).long()
                if row < 0
                else test_set.sentences[row].source
                for row in rows
            ]
            before = tuple(test_set.sentences[row].target for row in rows[:place] if row >= 0)
            (expected,) = decoder.score(text, [ScoringRequest(place, test_set.sentences[number].target, before)])
            np.testing.assert_allclose(measured.scores[probe][number], expected, atol=2e-5)
    changed = [np.abs(values).max() for values in measured.pointwise("true")]
    alone = {0, 4, 5} if arguments == TARGET else {4}
    assert [number for number, change in enumerate(changed) if change < 1e-4] == sorted(alone)
    assert all(not values.any() for values in measured.pointwise("empty"))


def test_cxmi_of_models_without_context_is_zero(data_bin, files):
    loaded = build(data_bin, task="translation", arch="transformer_iwslt_de_en")
    test_set = read_test_set(*files, loaded, TextCodec(data_bin))
    measured = measure(test_set, ForcedDecoder(loaded))
    report = build_report(test_set, measured, loaded.task.target_dictionary, {})
    assert all(abs(figures["cxmi"]) < 1e-5 for figures in report.probes.values())


def test_sample_is_a_subset(test_set, loaded):
    decoder = ForcedDecoder(loaded)
    everything, sample = measure(test_set, decoder), measure(test_set, decoder, sentences=4)
    assert len(sample.numbers) == 4 and everything.numbers == list(range(11))
    for probe in PROBES:
        for number, scores in zip(sample.numbers, sample.scores[probe]):
            np.testing.assert_allclose(scores, everything.scores[probe][number], atol=2e-5)
    again = measure(test_set, decoder, sentences=4, seed=2)
    assert again.numbers != sample.numbers


def long_test_set(documents, sentences, tokens):
    """Returns a test set with the index of each sentence as its target."""
    numbers = range(documents * sentences)
    source = torch.ones(tokens, dtype=torch.long)
    rows = [list(numbers[start : start + sentences]) for start in range(0, len(numbers), sentences)]
    return TokenizedTestSet([SentencePair(i + 1, i // sentences, ("s", "t"), source, (i, 2)) for i in numbers], rows)


class RecordingDecoder(ForcedDecoder):
    """Returns target tokens as scores, and records the source of each request and the number of source tokens."""

    def score(self, text, requests, progress=None):
        self.sizes = [*getattr(self, "sizes", []), sum(map(len, text))]
        self.sources = [*getattr(self, "sources", []), *(text[request.line] for request in requests)]
        return [np.array(request.target, dtype=float) for request in requests]


def test_text_parts_are_of_limited_size(loaded, monkeypatch):
    monkeypatch.setattr(cxmi, "MAX_TEXT_TOKENS", 10_000)
    decoder = RecordingDecoder(loaded)
    measured = measure(long_test_set(30, 10, 50), decoder, sentences=50)
    for scores in measured.scores.values():
        assert [values[0] for values in scores] == measured.numbers
    assert 10_000 < max(decoder.sizes) < 10_600 and len(decoder.sizes) > len(PROBES)  # by at most one document


def test_dictionary_without_paragraph_symbol(test_set, loaded):
    dictionary = copy.copy(loaded.task.source_dictionary)
    dictionary.indices = {symbol: number for symbol, number in dictionary.indices.items() if symbol != "<p>"}
    decoder, usual = RecordingDecoder(loaded), RecordingDecoder(loaded)
    decoder.ensemble = SimpleNamespace(dictionaries=(dictionary, loaded.task.target_dictionary))
    for one in (decoder, usual):
        measure(test_set, one)
        expected = [test_set.sentences[number].source for number in range(11)] * len(PROBES)
        assert len(one.sources) == len(expected) and all(map(torch.equal, one.sources, expected))
    documents = 1 + 4 + 4  # with paragraphs: the true one, and two false ones for each of its sentences
    assert sum(decoder.sizes) == sum(usual.sizes) - 2 * documents  # paragraph symbol and end


def test_report_lists_frequent_words_and_some_context(loaded):
    dictionary = loaded.task.target_dictionary
    words = [dictionary.index(word) for word in "aaaaabbbb"]
    one, other = long_test_set(1, 9, 3), long_test_set(1, 1, 3)
    sentences = [
        SentencePair(i + 1, 0, (f"s{i}", "t"), one.sentences[i].source, (word, 2)) for i, word in enumerate(words)
    ]
    test_set = TokenizedTestSet([*sentences, *other.sentences], [*one.documents, [9]])
    scores = {probe: [np.array([-2.0, -1.0])] * 9 for probe in PROBES}
    scores["true"] = [np.array([-1.0, -1.0])] * 9
    report = build_report(test_set, ProbeScores(list(range(9)), scores), dictionary, {})
    assert report.words == [{"word": "a", "pcxmi": 1.0, "count": 5}]  # "b" has four occurrences only
    contexts = [[], ["s0"], ["s0", "s1"], ["s0", "s1", "s2"], ["s1", "s2", "s3"]]
    assert [token["context"] for token in report.tokens[:5]] == contexts


def test_report(test_set, loaded):
    dictionary = loaded.task.target_dictionary
    assert [len(test_set.sentences[number].target) for number in (0, 6)] == [4, 2]
    scores = {probe: [np.full(length, -1.0) for length in (4, 2)] for probe in PROBES}
    scores["true"] = [np.array([-0.5, -1.0, -0.25, -1.0]), np.array([-3.0, -1.0])]
    report = build_report(test_set, ProbeScores([0, 6], scores), dictionary, {"model": "m"}, tokens=2)
    true = report.probes["true"]
    assert true["cxmi"] == pytest.approx((1.25 - 2) / 2) and true["cxmi_token"] == pytest.approx(-0.75 / 6)
    assert true["log_probability"] == pytest.approx(-6.75 / 6) and true["cxmi_interval"] == pytest.approx((-2, 1.25))
    assert report.probes["shuffled"]["cxmi"] == report.probes["empty"]["cxmi"] == 0
    first, second = report.tokens
    assert [first[name] for name in ("token", "position", "line", "pcxmi")] == ["a", 2, 1, 0.75]
    assert (first["with_context"], first["without_context"]) == pytest.approx((math.exp(-0.25), math.exp(-1)))
    assert (first["source"], first["target"], first["context"]) == ("a b c", "c b a", [])
    assert second["token"] == "c" and second["pcxmi"] == 0.5
    one = build_report(test_set, ProbeScores([0, 1], scores), dictionary, {})
    assert one.probes["true"]["cxmi_interval"] is None and "(one document)" in render(one.parts())
    assert "**Tokens that depend" in render(report.parts(), "markdown")


def test_bad_test_sets(data_bin, files, test_set, loaded, tmp_path):
    codec = TextCodec(data_bin)
    write_lines(tmp_path / "one", ["a", "b"])
    with pytest.raises(InputError):
        measure(read_test_set(tmp_path / "one", tmp_path / "one", loaded, codec), ForcedDecoder(loaded))
    small = build(data_bin, "--max-source-positions", "6", "--max-target-positions", "6")
    with pytest.raises(InputError, match=r"test.src:14: 8 tokens"):
        read_test_set(*files, small, codec)


@pytest.mark.slow
def test_command(data_bin, files, tmp_path, capsys):
    trained = toy.train(data_bin, tmp_path, *CONDITIONAL, "--max-update", "30")
    command = ["cxmi", "--path", str(trained), "--data", str(data_bin), "--cpu"]
    texts = ["--source", str(files[0]), "--reference", str(files[1]), "--format", "json"]
    assert main([*command, *texts, "--sentences", "5"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["probes"]) == list(PROBES) and report["about"]["sentences"] == 5
    assert main([*command, *texts, "--max-document-sentences", "1"]) == 0
    alone = json.loads(capsys.readouterr().out)["probes"]
    single, whole = (
        {one["log_probability"] for name, one in of.items() if name != "empty"} for of in (alone, report["probes"])
    )
    assert len(single) == 1 < len(whole)  # without context all documents are the same
    assert main([*command, "--split", "test"]) == 2 and "test.src" in capsys.readouterr().err


@pytest.mark.slow
def test_split_of_prepared_data_with_hyphens_in_languages(data_bin, files, tmp_path, capsys):
    prepared = toy.as_prepared(data_bin, tmp_path / "prepared")
    codes = {"src": "pt-BR", "tgt": "zh-CN"}
    manifest = prepared / "manifest.json"
    (prepared / "text").mkdir()
    for path, (code, language) in zip(files, codes.items()):
        manifest.write_text(manifest.read_text().replace(f'"{code}"', f'"{language}"'))
        (prepared / "text" / f"test.{language}").write_bytes(path.read_bytes())
        for file in (prepared / "data-bin").iterdir():
            file.rename(file.with_name(file.name.replace(code, language)))
    trained = toy.train(prepared / "data-bin", tmp_path, *CONDITIONAL, "--max-update", "1")
    for data, options in ((prepared, []), (prepared / "data-bin", ["--split", "test"])):
        assert main(["cxmi", "--path", str(trained), "--data", str(data), "--cpu", "--format", "json", *options]) == 0
        about = json.loads(capsys.readouterr().out)["about"]
        assert (about["source"], about["sentences"]) == (str(prepared / "text" / "test.pt-BR"), 11)
