"""Readers of contrastive sets."""

import json
import os
import re
from pathlib import Path

import pytest

from docnmt_fairseq.corpus.synth import SynthOptions, read_cases, write_corpus
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast import bawden, contrapro, ctxpro, synth, voita
from docnmt_fairseq.report.scat import read_scat
from tests.support.documents import write_lines


def write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    write_corpus(SynthOptions(train_documents=40, valid_documents=2, test_documents=4), folder)
    return folder


def test_synth_items_are_cases_in_whole_documents(corpus):
    items, cases = synth.read(corpus / "test.phenomena.tsv"), read_cases(corpus / "test.phenomena.tsv")
    lines = (corpus / "test.tgt").read_text(encoding="utf-8").split("\n")
    assert len(items) == len(cases) > 20
    documents = {item.document for item in items}
    assert len(documents) == 4 and all("<p>" in document.source for document in documents)
    for item, case in zip(items, cases):
        (line,) = item.lines
        words = lines[case.id].split()
        forms = (case.right, *case.wrong)
        expected = [" ".join([*words[: case.position], form, *words[case.position + 1 :]]) for form in forms]
        assert [candidate[line] for candidate in item.candidates] == expected and item.right == 0
        assert item.document.target[line] == lines[case.id]
        assert item.attributes == {"phenomenon": case.kind, "distance": case.distance}


def test_voita_items_of_the_same_corpus(corpus):
    whole, truncated = synth.read(corpus / "test.phenomena.tsv"), voita.read(corpus / "test.contrastive.json")
    for one, other in zip(whole, truncated):
        assert one.attributes == other.attributes
        assert one.candidates[one.right][one.lines[0]] == other.candidates[other.right][other.lines[0]]
        assert other.lines == [len(other.document.source) - 1] and len(other.document.source) >= 2


def test_synth_files_of_different_corpora(corpus, tmp_path):
    for name in ("lexicon.json", "test.phenomena.tsv", "test.src", "test.tgt"):
        (tmp_path / name).write_bytes((corpus / name).read_bytes())
    table, target = tmp_path / "test.phenomena.tsv", tmp_path / "test.tgt"
    lines = target.read_text(encoding="utf-8").splitlines()
    first = read_cases(table)[0]
    other = [line if number != first.id else "other words" for number, line in enumerate(lines)]
    write_lines(target, other)
    with pytest.raises(InputError, match=rf"phenomena.tsv:2: line {first.id + 1} of .*test.tgt"):
        synth.read(table)


VOITA = {"src": "a _eos b _eos c _eos d", "dst": ["A _eos B _eos C _eos D", "A _eos B _eos X _eos D"], "true_ind": 0}


def test_voita_items_are_judged_from_the_first_difference(tmp_path):
    gap = {**VOITA, "dst": ["A _eos B _eos C _eos D", "A _eos X _eos C _eos Y"]}
    (item, other) = voita.read(write_json(tmp_path / "set.json", [{**VOITA, "ctx_dist": 2}, gap]))
    assert item.document.source == ("a", "b", "c", "d") and item.document.target == ("A", "B", "C", "D")
    assert item.candidates == ({2: "C", 3: "D"}, {2: "X", 3: "D"}) and item.right == 0
    assert item.attributes == {"distance": 2} and other.candidates[1] == {1: "X", 2: "C", 3: "Y"}


def test_candidates_equal_to_the_correct_one_are_dropped(tmp_path, caplog):
    true, false = VOITA["dst"][:2]
    path = write_json(tmp_path / "set.json", [{**VOITA, "dst": [true, false, true], "true_ind": 2}])
    (item,) = voita.read(path)
    assert len(item.candidates) == 2 and item.right == 1
    assert "item 0: dropped 1" in caplog.text


PAIR = {"correct": ["Les maisons .", "Elles"], "incorrect": ["Les maisons .", "Ils"]}
SEMI = {"semi-correct": ["Les abris .", "Ils"], "incorrect": ["Les abris .", "Elles"], "type": "f.pl"}
ANAPHORA = {
    "10": {"src": ["The houses .", "They"], "trg": [PAIR]},
    "2": {"src": ["The houses .", "They"], "trg": [SEMI]},
}
EXAMPLES = [{"src": ["Some lemonade ?", "Lemonade !"], "trg": PAIR}]


def test_bawden_items(tmp_path):
    two, ten = bawden.read(write_json(tmp_path / "anaphora.json", ANAPHORA))
    assert two.document.target == ("Les abris .", "Ils") and two.candidates == ({1: "Ils"}, {1: "Elles"})
    assert two.attributes == {"phenomenon": "anaphora, semi-correct, f.pl"}
    assert ten.attributes == {"phenomenon": "anaphora, correct"} and ten.document.source == ("The houses .", "They")
    (item,) = bawden.read(write_json(tmp_path / "choice.json", {"1": {"type": "repet", "examples": EXAMPLES}}))
    assert item.attributes == {"phenomenon": "lexical choice, repet"} and item.candidates[1] == {1: "Ils"}


CONTRAPRO = {
    "document id": "film.de",
    "segment id": 3,
    "src segment": "It sleeps .",
    "ref segment": "Sie schläft .",
    "src pronoun": "it",
    "ref pronoun": "Sie",
    "ante distance": 1,
    "errors": [{"contrastive": "Er schläft ."}, {"contrastive": "Es schläft ."}],
}


@pytest.fixture
def film(tmp_path):
    folder = tmp_path / "documents" / "2016"
    folder.mkdir(parents=True)
    write_lines(folder / "film.en", ["Hello .", "The cat .", "It  sleeps ."])
    write_lines(folder / "film.de", ["Hallo .", "Die Katze .", "Sie schläft ."])
    return tmp_path


def read_contrapro(path, **options):
    return contrapro.read(path, ("en", "de"), **options)


def test_contrapro_items_with_documents(film, caplog):
    path = write_json(film / "contrapro.json", [CONTRAPRO, {**CONTRAPRO, "ante distance": 7, "ref pronoun": "sie"}])
    items = read_contrapro(path, documents=film / "documents")
    assert items[0].document.source == ("Hello .", "The cat .", "It sleeps .")
    assert items[0].document.target == ("Hallo .", "Die Katze .", "Sie schläft .")
    assert items[0].candidates == ({2: "Sie schläft ."}, {2: "Er schläft ."}, {2: "Es schläft ."})
    assert items[0].document.name == items[1].document.name == "film.de"  # resampled together
    assert [item.attributes["distance"] for item in items] == ["1", "> 3"]
    assert {item.attributes["pronoun"] for item in items} == {"sie"}
    (one, _) = read_contrapro(path, documents=film / "documents", sentences=1)
    assert one.document.source == ("The cat .", "It sleeps .") and one.lines == [1]
    (whole, _) = read_contrapro(path, documents=film / "documents", sentences=0)
    assert whole.document.source == items[0].document.source
    assert read_contrapro(path)[0].document.source == ("It sleeps .",)
    assert "without context" in caplog.text


@pytest.mark.parametrize("times", [[3, 2], [1, 1]], ids=["every candidate", "every item"])
def test_contrapro_items_with_context_files(film, times):
    path = write_json(film / "contrapro.json", [CONTRAPRO, {**CONTRAPRO, "errors": CONTRAPRO["errors"][:1]}])
    for language, second in (("en", "The dog ."), ("de", "Der Hund .")):
        lines = ["", "first"] * times[0] + ["a", second] * times[1]
        write_lines(film / f"context.{language}", lines)
    items = read_contrapro(path, context=str(film / "context"))
    assert items[0].document.source == ("first", "It sleeps .")
    assert items[1].document.source == ("a", "The dog .", "It sleeps .")
    assert items[1].document.target == ("a", "Der Hund .", "Sie schläft .")


def test_contrapro_context_of_items_with_any_number_of_lines(film):
    """Three lines per item are as many as one per candidate."""
    path = write_json(film / "contrapro.json", [CONTRAPRO, CONTRAPRO])
    for language in ("en", "de"):
        write_lines(film / f"context.{language}", ["a", "b", "c", "d", "e", "f"])
    items = read_contrapro(path, context=str(film / "context"))
    assert [item.document.source[:-1] for item in items] == [("a", "b", "c"), ("d", "e", "f")]
    write_json(path, [CONTRAPRO] * 5)
    with pytest.raises(InputError):
        read_contrapro(path, context=str(film / "context"))


def test_contrapro_documents_of_another_release(film):
    for language, count in (("en", 4), ("de", 3)):
        write_lines(film / "documents" / f"uneven.{language}", ["a", "b", "It sleeps .", "c"][:count])
    for changes in ({"document id": "other.de"}, {"segment id": 4}, {"segment id": 2}, {"document id": "uneven.de"}):
        path = write_json(film / "contrapro.json", [{**CONTRAPRO, **changes}])
        with pytest.raises(InputError):
            read_contrapro(path, documents=film / "documents")


CTXPRO = {"src segment": "She likes you.", "expected": "sie", "rule": "ACC", "document id": "x", "src pronoun": "You"}


def test_ctxpro_items(tmp_path):
    path = write_json(tmp_path / "items.json", [{**CTXPRO, "ante distance": distance} for distance in (0, 4)])
    write_lines(tmp_path / "inputs", ["Pumpkin!<eos> She likes you.", "She likes you."])
    items = ctxpro.read(path, tmp_path / "inputs")
    assert items[0].document.source == ("Pumpkin!", "She likes you.") and items[0].line == 1
    assert items[1].document.source == ("She likes you.",) and items[0].attributes["distance"] == "0"
    assert items[1].attributes == {"rule": "ACC", "distance": "> 3", "source pronoun": "you"}
    for lines in (["Pumpkin!<eos> She likes you."], ["She likes you.", "She likes him."]):
        write_lines(tmp_path / "inputs", lines)
        with pytest.raises(InputError):
            ctxpro.read(path, tmp_path / "inputs")


def test_ctxpro_forms_are_words():
    found = [ctxpro.contains(text, "sie") for text in ("Sie mag Sie.", "(SIE)", "Ich mag dich!", "Siegel", "")]
    assert found == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("translation", "current"),
    [
        ("Sie schläft.<eos> Er isst. Er mag dich.", "Er isst. Er mag dich."),
        ("Sie schläft. <brk> Er mag dich. <eos>", "Er mag dich."),
        ("Sie schläft. Er mag dich.", "Er mag dich."),
        ("„Sie schläft!“ – Er mag dich, Mr. Bean.", "– Er mag dich, Mr. Bean."),
        ("Sie schläft... und mag dich am 3. Mai, J. Bean!", "Sie schläft... und mag dich am 3. Mai, J. Bean!"),
        ("", ""),
    ],
)
def test_ctxpro_current_sentence(tmp_path, translation, current):
    path = write_json(tmp_path / "items.json", [CTXPRO])
    write_lines(tmp_path / "inputs", ["Pumpkin!<eos> She likes you."])
    (item,) = ctxpro.read(path, tmp_path / "inputs")
    assert ctxpro.current_sentence(translation, item) == current
    (without_context,) = ctxpro.read(path)
    assert ctxpro.current_sentence(translation, without_context) == (current if "<" in translation else translation)


def without(entry, name):
    return {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (voita.read, [VOITA, {**VOITA, "true_ind": 2}], "item 1: "),
        (voita.read, [{**VOITA, "dst": ["A _eos B"]}], "item 0: dst[0]"),
        (bawden.read, {"1": {"src": ["a", "b"], "trg": [{"correct": ["x", "y"]}]}}, "item 1: "),
        (ctxpro.read, [without(CTXPRO, "expected")], "item 0: missing or invalid field (KeyError: 'expected')"),
    ],
)
def test_bad_fields(tmp_path, read, content, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read(write_json(tmp_path / "set.json", content))


SETS = Path(os.environ.get("DOCNMT_SHARED_DATA", "")) / "contrastive"


@pytest.mark.skipif(not SETS.exists(), reason="no contrastive sets in DOCNMT_SHARED_DATA")
def test_published_sets():
    for name in ("anaphora", "lexical-choice"):
        assert len(bawden.read(SETS / "discevalmt" / f"{name}.json")) == 200
    (inputs,) = (SETS / "ctxpro").glob("*inputs*")
    (path,) = (SETS / "ctxpro").glob("*evalsets*.json")
    assert len(ctxpro.read(path, inputs)) == 615
    for split, examples in (("valid", 112), ("test", 834)):
        assert len(read_scat(SETS / "scat" / f"highlighted.{split}", "en", "fr").examples) == examples
