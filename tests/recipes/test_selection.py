"""Held-out splits, balanced registers and pronouns."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import HoldOut
from docnmt_fairseq.recipes.selection import (
    balanced,
    held_out_runs,
    pronoun_of,
    register_of,
    repetitions,
    write_held_out,
)

DU, SIE, NEITHER = "Hast du dein Buch?", "Haben Sie Ihr Buch?", "Das Buch ist da."


@given(st.lists(st.integers(1, 9), min_size=20, max_size=40), st.integers(1, 12), st.integers(1, 99))
def test_held_out_runs_are_disjoint_and_long_enough(sizes, sentences, seed):
    runs = held_out_runs(sizes, HoldOut(["valid", "test"], sentences, seed))
    assert not {*runs["valid"]} & {*runs["test"]}
    for run in runs.values():
        assert sum(sizes[d] for d in run) >= sentences > sum(sizes[d] for d in run[:-1])


def test_no_sentence_and_no_document_is_in_two_splits(tmp_path):
    sizes = [3, 5, 2, 7, 4, 6, 3, 3, 8, 2, 5, 4]
    documents = [Document([[(f"s{d}.{s}", f"t{d}.{s}") for s in range(size)]]) for d, size in enumerate(sizes)]
    paths = {name: [tmp_path / f"{name}.{side}" for side in "st"] for name in ("train", "valid", "test")}
    write_held_out(lambda: documents, HoldOut(["valid", "test"], 7), paths)
    written = {name: list(read_documents(files)) for name, files in paths.items()}
    sentences = {name: [one for document in found for one in document.sentences()] for name, found in written.items()}
    everything = [one for document in documents for one in document.sentences()]
    for name in ("valid", "test"):  # consecutive
        start = everything.index(sentences[name][0])
        assert sentences[name] == everything[start : start + 7]
    numbers = {name: {one[0].split(".")[0] for one in found} for name, found in sentences.items()}
    assert not numbers["train"] & (numbers["valid"] | numbers["test"]) and not numbers["valid"] & numbers["test"]
    assert [document for document in documents if document in written["train"]] == written["train"]


@pytest.mark.parametrize("sizes", [[3, 3], [90], [5, 90]])
def test_small_training_set_is_an_error(sizes):
    with pytest.raises(InputError):
        held_out_runs(sizes, HoldOut(["valid", "test"], 5))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.integers(1, 9))
def test_repeated_documents_balance_the_registers_up_to_one_document(pairs, seed):
    lines = [Counter({"du": du, "Sie": sie}) for du, sie in pairs]
    documents = {name: [d for d, one in enumerate(lines) if one[name] > one[other]] for name, other in
                 (("du", "Sie"), ("Sie", "du"))}  # fmt: skip
    totals = {name: sum(lines[d][name] for d in found) for name, found in documents.items()}
    times = repetitions(lines, seed)
    if not all(totals.values()):
        assert times == [1] * len(lines)
        return
    common, rare = sorted(totals, key=lambda name: (-totals[name], name))
    reached = sum(times[d] * lines[d][rare] for d in documents[rare])
    assert totals[common] <= reached < totals[common] + max(lines[d][rare] for d in documents[rare])
    copies = {times[d] for d in documents[rare]}
    assert max(copies) - min(copies) <= 1
    assert all(times[d] == 1 for d in range(len(times)) if d not in documents[rare])


def test_copies_follow_the_originals():
    texts = {"a": [DU], "b": [SIE, SIE, NEITHER, SIE], "c": [NEITHER], "d": [DU, SIE]}
    corpus = [Document([[(f"{name} {i}", line) for i, line in enumerate(lines)]]) for name, lines in texts.items()]
    read = balanced(lambda: iter(corpus), register_of("de"))
    assert list(read()) == [*corpus, corpus[0], corpus[0]] == list(read())


def test_documents_of_the_rarer_pronoun_are_repeated():
    texts = [["He came.", "His son left.", "It rained."], ["Her son came.", "It left."], ["It rained."]]
    corpus = [Document([[("s", line) for line in lines]]) for lines in texts]
    assert list(balanced(lambda: iter(corpus), pronoun_of(["he", "she"]))()) == [*corpus, corpus[1]]
