"""Readers of contrastive sets: what they make of each format, and how they name what is wrong."""

import json
import re

import pytest

from docnmt_fairseq.corpus.synth import SynthOptions, write_corpus
from docnmt_fairseq.corpus.synth.table import read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.contrast import bawden, contrapro, ctxpro, synth, voita
from docnmt_fairseq.evaluation.contrast.items import distance_group
from tests.support.documents import write_lines


def write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    write_corpus(SynthOptions(train_documents=40, valid_documents=2, test_documents=4), folder)
    return folder


def test_synth_items_are_the_cases_in_their_whole_documents(corpus):
    items, cases = synth.read(corpus / "test.phenomena.tsv"), read_cases(corpus / "test.phenomena.tsv")
    lines = (corpus / "test.tgt").read_text(encoding="utf-8").split("\n")
    assert len(items) == len(cases) > 20
    documents = {item.document for item in items}
    assert len(documents) == 4 and all("<p>" in document.source for document in documents)
    for item, case in zip(items, cases):
        (line,) = item.lines
        true = item.candidates[item.right][line].split()
        assert " ".join(true) == lines[case.id] == item.document.target[line]
        assert true[case.position] == case.right
        assert [candidate[line].split()[case.position] for candidate in item.candidates[1:]] == list(case.wrong)
        assert all(
            [word for place, word in enumerate(candidate[line].split()) if place != case.position]
            == [word for place, word in enumerate(true) if place != case.position]
            for candidate in item.candidates
        )
        assert item.facts == {"phenomenon": case.kind, "distance": case.distance}


def test_synth_files_that_do_not_fit_are_refused(corpus, tmp_path):
    for name in ("lexicon.json", "test.phenomena.tsv", "test.src", "test.tgt"):
        (tmp_path / name).write_bytes((corpus / name).read_bytes())
    table = tmp_path / "test.phenomena.tsv"
    target = tmp_path / "test.tgt"
    lines = target.read_text(encoding="utf-8").splitlines()
    first = read_cases(table)[0]
    write_lines(target, [line if number != first.id else "other words" for number, line in enumerate(lines)])
    with pytest.raises(InputError, match=rf"phenomena.tsv:2: word \d of line {first.id + 1} of .*test.tgt is not"):
        synth.read(table)
    write_lines(target, lines[:-2])
    with pytest.raises(InputError, match=r"lines.*write the corpus again"):
        synth.read(table)
    with pytest.raises(InputError, match=r"phenomena\.tsv"):
        synth.read(target)


def test_voita_items_of_docnmt_synth_ask_the_same(corpus):
    whole, cut = synth.read(corpus / "test.phenomena.tsv"), voita.read(corpus / "test.contrastive.json")
    for one, other in zip(whole, cut):
        assert one.facts == other.facts
        assert one.candidates[one.right][one.lines[0]] == other.candidates[other.right][other.lines[0]]
        assert other.lines == [len(other.document.source) - 1] and len(other.document.source) >= 2


VOITA = {"src": "a _eos b _eos c _eos d", "dst": ["A _eos B _eos C _eos D", "A _eos B _eos X _eos D"], "true_ind": 0}


def test_voita_items_judge_the_sentences_from_the_first_that_differs(tmp_path):
    gap = {**VOITA, "dst": ["A _eos B _eos C _eos D", "A _eos X _eos C _eos Y"]}
    (item, other) = voita.read(write_json(tmp_path / "set.json", [{**VOITA, "ctx_dist": 2}, gap]))
    assert item.document.source == ("a", "b", "c", "d") and item.document.target == ("A", "B", "C", "D")
    assert item.candidates == ({2: "C", 3: "D"}, {2: "X", 3: "D"}) and item.right == 0
    assert item.facts == {"distance": 2} and other.candidates[1] == {1: "X", 2: "C", 3: "Y"}


PAIR = {"correct": ["Les maisons .", "Elles"], "incorrect": ["Les maisons .", "Ils"]}
SEMI = {"semi-correct": ["Les abris .", "Ils"], "incorrect": ["Les abris .", "Elles"], "type": "f.pl"}
ANAPHORA = {
    "10": {"src": ["The houses .", "They"], "trg": [PAIR]},
    "2": {"src": ["The houses .", "They"], "trg": [SEMI]},
}
EXAMPLES = [{"src": ["Some lemonade ?", "Lemonade !"], "trg": PAIR}]
CHOICE = {"1": {"type": "repet", "examples": EXAMPLES}}


def test_bawden_items(tmp_path):
    two, ten = bawden.read(write_json(tmp_path / "anaphora.json", ANAPHORA))
    assert two.document.target == ("Les abris .", "Ils") and two.candidates == ({1: "Ils"}, {1: "Elles"})
    assert two.facts == {"phenomenon": "anaphora, semi-correct, f.pl"}
    assert ten.facts == {"phenomenon": "anaphora, correct"} and ten.document.source == ("The houses .", "They")
    (item,) = bawden.read(write_json(tmp_path / "choice.json", CHOICE))
    assert item.facts == {"phenomenon": "lexical choice, repet"} and item.candidates[1] == {1: "Ils"}


CONTRAPRO = {
    "document id": "film.de",
    "segment id": 3,
    "source": "It sleeps .",
    "src segment": "It sleeps .",
    "ref segment": "Sie schläft .",
    "src pronoun": "it",
    "ref pronoun": "Sie",
    "ante distance": 1,
    "intrasegmental": False,
    "errors": [{"contrastive": "Er schläft ."}, {"contrastive": "Es schläft ."}],
}


@pytest.fixture
def film(tmp_path):
    folder = tmp_path / "documents" / "2016"
    folder.mkdir(parents=True)
    write_lines(folder / "film.en", ["Hello .", "The cat .", "It  sleeps ."])
    write_lines(folder / "film.de", ["Hallo .", "Die Katze .", "Sie schläft ."])
    return tmp_path


def test_contrapro_items_with_documents(film, caplog):
    path = write_json(film / "contrapro.json", [CONTRAPRO, {**CONTRAPRO, "ante distance": 7, "ref pronoun": "sie"}])
    items = contrapro.read(path, ("en", "de"), documents=film / "documents")
    assert items[0].document.source == ("Hello .", "The cat .", "It sleeps .")
    assert items[0].document.target == ("Hallo .", "Die Katze .", "Sie schläft .")
    assert items[0].candidates == ({2: "Sie schläft ."}, {2: "Er schläft ."}, {2: "Es schläft ."})
    assert items[0].document.name == items[1].document.name == "film.de"  # drawn together in the bootstrap
    assert [item.facts["distance"] for item in items] == ["1", "> 3"]
    assert {item.facts["pronoun"] for item in items} == {"sie"}
    assert [distance_group(distance) for distance in (0, 3, 4)] == ["0", "3", "> 3"]
    (one, _) = contrapro.read(path, ("en", "de"), documents=film / "documents", sentences=1)
    assert one.document.source == ("The cat .", "It sleeps .") and one.lines == [1]
    late = {**CONTRAPRO, "document id": "long.de", "segment id": 15}
    long = write_json(film / "long.json", [late, {**late, "segment id": 3}])
    for language, hello, sleeps in (("en", "Hello .", "It sleeps ."), ("de", "Hallo .", "Sie schläft .")):
        write_lines(film / "documents" / f"long.{language}", [hello, hello, sleeps, *[hello] * 11, sleeps])
    for told, expected in (({}, 10), ({"sentences": 0}, 14)):  # sentences before, unless told otherwise: 0 is all
        found = contrapro.read(long, ("en", "de"), documents=film / "documents", **told)
        assert [item.lines for item in found] == [[expected], [2]]
    assert contrapro.read(path, ("en", "de"))[0].document.source == ("It sleeps .",)
    assert "neither --documents nor --context-files: every sentence stands alone" in caplog.text


@pytest.mark.parametrize("each", [3, 1], ids=["every candidate", "every item"])
def test_contrapro_items_with_plain_context(film, each):
    """Two lines of context, for every candidate as ContraPro's script writes them, or once an item."""
    path = write_json(film / "contrapro.json", [CONTRAPRO, {**CONTRAPRO, "errors": CONTRAPRO["errors"][:1]}])
    times = [3, 2] if each == 3 else [1, 1]
    for language, second in (("en", "The dog ."), ("de", "Der Hund .")):
        lines = ["", "first"] * times[0] + ["a", second] * times[1]
        write_lines(film / f"context.{language}", lines)
    items = contrapro.read(path, ("en", "de"), context=str(film / "context"))
    assert items[0].document.source == ("first", "It sleeps .")
    assert items[1].document.source == ("a", "The dog .", "It sleeps .")
    assert items[1].document.target == ("a", "Der Hund .", "Sie schläft .")


def test_plain_context_once_an_item_is_recognised_whatever_its_length(film):
    """Three lines an item are as many as one for each of three candidates."""
    path = write_json(film / "contrapro.json", [CONTRAPRO, CONTRAPRO])
    for language in ("en", "de"):
        write_lines(film / f"context.{language}", ["a", "b", "c", "d", "e", "f"])
    items = contrapro.read(path, ("en", "de"), context=str(film / "context"))
    assert [item.document.source[:-1] for item in items] == [("a", "b", "c"), ("d", "e", "f")]


CTXPRO = {"src segment": "She likes you.", "expected": "sie", "rule": "ACC", "document id": "x", "src pronoun": "You"}


def test_ctxpro_items(tmp_path):
    path = write_json(tmp_path / "items.json", [{**CTXPRO, "ante distance": distance} for distance in (0, 4)])
    write_lines(tmp_path / "inputs", ["Pumpkin!<eos> She likes you.", "She likes you."])
    items = ctxpro.read(path, tmp_path / "inputs")
    assert items[0].document.source == ("Pumpkin!", "She likes you.") and items[0].line == 1
    assert items[1].document.source == ("She likes you.",) and items[0].facts["distance"] == "0"
    assert items[1].facts == {"rule": "ACC", "distance": "> 3", "source pronoun": "you"}
    write_lines(tmp_path / "inputs", ["Pumpkin!<eos> She likes you."])
    with pytest.raises(InputError, match=r"inputs: 1 lines, but .* has 2 items"):
        ctxpro.read(path, tmp_path / "inputs")
    write_lines(tmp_path / "inputs", ["She likes you.", "She likes him."])
    with pytest.raises(InputError, match=r"item 1: field 'src segment' does not end line 2"):
        ctxpro.read(path, tmp_path / "inputs")


@pytest.mark.parametrize(
    ("translation", "found"),
    [("Sie mag Sie.", True), ("Ich mag dich!", False), ("Siegel", False), ("(SIE)", True), ("", False)],
)
def test_ctxpro_forms_are_words(translation, found):
    assert ctxpro.holds(translation, "sie") == found


@pytest.mark.parametrize(
    ("translation", "own"),
    [
        ("Sie schläft.<eos> Er isst. Er mag dich.", "Er isst. Er mag dich."),
        ("Sie schläft. <brk> Er mag dich. <eos>", "Er mag dich."),
        ("Sie schläft. Er mag dich.", "Er mag dich."),
        ("„Sie schläft!“ – Er mag dich, Mr. Bean.", "– Er mag dich, Mr. Bean."),
        ("Sie schläft... und mag dich am 3. Mai, J. Bean!", "Sie schläft... und mag dich am 3. Mai, J. Bean!"),
        ("", ""),
    ],
)
def test_of_a_translation_with_context_the_own_part_is_judged(tmp_path, translation, own):
    path = write_json(tmp_path / "items.json", [CTXPRO])
    (alone,) = ctxpro.read(path)
    write_lines(tmp_path / "inputs", ["Pumpkin!<eos> She likes you."])
    (item,) = ctxpro.read(path, tmp_path / "inputs")
    assert ctxpro.own_part(translation, item) == own
    whole = own if "<" in translation else translation  # no context that could be translated, but where it is marked
    assert ctxpro.own_part(translation, alone) == whole


def contrapro_of(path):
    return contrapro.read(path, ("en", "de"))


def without(entry, name):
    return {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (voita.read, [without(VOITA, "src")], "item 0: field 'src' is missing"),
        (voita.read, [VOITA, {**VOITA, "true_ind": "0"}], "item 1: field 'true_ind' is '0', expected a whole number"),
        (voita.read, [{**VOITA, "true_ind": 2}], "item 0: field 'true_ind' is 2, but there are 2 candidates"),
        (voita.read, [{**VOITA, "true_ind": True}], "item 0: field 'true_ind' is True"),
        (voita.read, [{**VOITA, "dst": ["A _eos B"]}], "item 0: element 0 of 'dst' has 2 sentences, 'src' has 4"),
        (voita.read, [{**VOITA, "dst": VOITA["dst"][:1]}], "item 0: needs a true and at least one false translation"),
        (voita.read, [{**VOITA, "dst": VOITA["dst"][:1] * 2}], "one false translation that differs from it"),
        (voita.read, [{**VOITA, "dst": ["a _eos b _eos c _eos  ", "a _eos b _eos c _eos e"]}], "a sentence is empty"),
        (voita.read, [], "expected a list of items"),
        (voita.read, {"a": 1}, "expected a list of items"),
        (voita.read, ["text"], "item 0: field 'src' is missing"),
        (bawden.read, {"x": {}}, "item 'x': items are numbered"),
        (bawden.read, {"1": {"src": ["a"], "trg": []}}, "item 1: field 'src' has 1 elements, expected 2"),
        (bawden.read, {"1": {"src": ["a", "b"], "trg": [{"correct": ["x", "y"]}]}}, "translation 0: field 'incorrect'"),
        (bawden.read, {"1": {"src": ["a", "b"], "trg": [["x", "y"]]}}, "translation 0: expected {correct, incorrect,"),
        (contrapro_of, [without(CONTRAPRO, "errors")], "item 0: field 'errors' is missing"),
        (contrapro_of, [CONTRAPRO, without(CONTRAPRO, "ante distance")], "item 1: field 'ante distance' is missing"),
        (contrapro_of, [{**CONTRAPRO, "errors": [{}]}], "item 0, error 0: field 'contrastive' is missing"),
        (contrapro_of, [{**CONTRAPRO, "ref segment": " "}], "item 0: field 'ref segment' is empty"),
        (ctxpro.read, [without(CTXPRO, "expected")], "item 0: field 'expected' is missing"),
    ],
)  # fmt: skip
def test_items_that_are_wrong_are_named_with_their_field(tmp_path, read, content, message):
    path = write_json(tmp_path / "set.json", content)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read(path)
    assert "set.json" in str(error.value)


def test_files_that_are_no_sets_are_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: cannot be read"):
        voita.read(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("[{]", encoding="utf-8")
    with pytest.raises(InputError, match=r"text\.json: not JSON"):
        bawden.read(tmp_path / "text.json")


def test_contrapro_documents_that_do_not_fit_are_named(film):
    def read(**changes):
        path = write_json(film / "contrapro.json", [{**CONTRAPRO, **changes}])
        return contrapro.read(path, ("en", "de"), documents=film / "documents")

    with pytest.raises(InputError, match=r"item 0: field 'document id': no other\.de in"):
        read(**{"document id": "other.de"})
    with pytest.raises(InputError, match=r"item 0: field 'segment id' is 4, document film\.de has 3 lines"):
        read(**{"segment id": 4})
    with pytest.raises(InputError, match=r"item 0: field 'src segment' is not line 2 of document film\.de"):
        read(**{"segment id": 2})
    for language, count in (("en", 4), ("de", 3)):
        write_lines(film / "documents" / f"uneven.{language}", ["a", "b", "It sleeps .", "c"][:count])
        write_lines(film / f"context.{language}", ["a", "b", "c", "d"][:count])
    with pytest.raises(InputError, match=r"uneven\.de: 3 lines, .*uneven\.en has 4"):
        read(**{"document id": "uneven.de"})
    path = write_json(film / "contrapro.json", [CONTRAPRO] * 3)
    with pytest.raises(InputError, match=r"context\.en has 4 lines, .*context\.de 3"):
        contrapro.read(path, ("en", "de"), context=str(film / "context"))
    write_lines(film / "context.de", ["a", "b", "c", "d"])
    with pytest.raises(InputError, match=r"context\.en: 4 lines, not as many for each of the 9 candidates .*3 items"):
        contrapro.read(path, ("en", "de"), context=str(film / "context"))
    with pytest.raises(InputError, match=r"no such folder"):
        contrapro.read(path, ("en", "de"), documents=film / "nowhere")
    with pytest.raises(InputError, match="--context-sentences -1: at least 0"):
        contrapro.read(path, ("en", "de"), documents=film / "documents", sentences=-1)


def test_a_false_translation_that_is_the_true_one_is_left_out_and_said(tmp_path, caplog):
    true, false = VOITA["dst"][:2]
    path = write_json(tmp_path / "set.json", [{**VOITA, "dst": [true, false, true], "true_ind": 2}])
    (item,) = voita.read(path)
    assert len(item.candidates) == 2 and item.right == 1
    assert "item 0: 1 false translations are the true one" in caplog.text
