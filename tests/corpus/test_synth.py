"""Artificial corpora: only context decides the undecidable words, at evenly distributed distances."""

import json
from collections import Counter

import pytest
from scipy.stats import chisquare

from docnmt_fairseq.corpus.synth import KINDS, SynthOptions, read_cases, write_corpus

SMALL = SynthOptions(
    seed=3,
    train_documents=300,
    valid_documents=2,
    test_documents=60,
    max_distance=6,
    sentences_per_document=(16, 20),
    nouns=12,
    places=8,
    fillers=12,
    verbs=6,
    introductions=6,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    write_corpus(SMALL, folder)
    return folder


@pytest.fixture(scope="module")
def default_corpus(tmp_path_factory):
    """Smaller than the default, but with its distances and languages."""
    folder = tmp_path_factory.mktemp("default")
    write_corpus(SynthOptions(train_documents=60, valid_documents=1, test_documents=60), folder)
    return folder


def lines_of(corpus, name):
    return (corpus / name).read_text(encoding="utf-8").split("\n")[:-1]


def context_of(lines, place):
    """Source sentences of the document before a line, with boundaries."""
    start = max((i + 1 for i in range(place) if lines[i] == ""), default=0)
    return [line.split() for line in lines[start:place]]


def right_form(lexicon, kind, sentence, context):
    """Right form of the undecidable word of a sentence, and its distance from the deciding sentence."""
    sentences = [words for words in context if words != ["<p>"]]
    if kind == "formality":
        marks = [i for i, words in enumerate(context) if words == ["<p>"]]
        opening = context[marks[-1] + 1] if marks else context[0]
        formality = next(name for name, words in lexicon["greetings"].items() if opening[0] in words)
        return lexicon["you_forms"][formality], len(context) - (marks[-1] + 1 if marks else 0)
    if kind == "ambiguous":
        found = [(i, t) for i, s in enumerate(sentences) for t, words in lexicon["topics"].items() if s[0] in words]
        assert len(found) == 1
        place, topic = found[0]
        return lexicon["ambiguous"][sentence[0]][topic], len(sentences) - place
    shared = next(word for word in sentence if word in lexicon["places"])
    found = [(i, s[0]) for i, s in enumerate(sentences) if s[0] in lexicon["nouns"] and shared in s]
    assert len(found) == 1
    place, noun = found[0]
    return lexicon["pronoun_forms"][lexicon["genders"][noun]], len(sentences) - place


@pytest.mark.parametrize("split", ["train", "test"])
def test_both_sides_have_the_same_boundaries_and_no_common_word(corpus, split):
    source, target = lines_of(corpus, f"{split}.src"), lines_of(corpus, f"{split}.tgt")
    boundaries = [[(i, line) for i, line in enumerate(side) if line in ("", "<p>")] for side in (source, target)]
    assert boundaries[0] == boundaries[1] and len(source) == len(target)
    assert source.count("") == getattr(SMALL, f"{split}_documents") and source[-1] == ""
    assert source.count("<p>") >= source.count("")
    assert not any(a in ("", "<p>") and b in ("", "<p>") for a, b in zip(["", *source], source))
    words = [{word for line in side for word in line.split()} - {"<p>"} for side in (source, target)]
    assert words[0].isdisjoint(words[1])


def test_context_decides_every_word(corpus):
    lexicon = json.loads((corpus / "lexicon.json").read_text())
    source, target = lines_of(corpus, "test.src"), lines_of(corpus, "test.tgt")
    cases = read_cases(corpus / "test.phenomena.tsv")
    assert len({case.id for case in cases}) == len(cases) > 400
    for case in cases:
        sentence = source[case.id].split()
        assert case.source_word in sentence
        assert right_form(lexicon, case.kind, sentence, context_of(source, case.id)) == (case.right, case.distance)
        words = target[case.id].split()
        assert words[case.position] == case.right and words.count(case.right) == 1
        assert not set(words) & set(case.wrong)


def test_table_contains_every_undecidable_word(corpus):
    lexicon = json.loads((corpus / "lexicon.json").read_text())
    words = {lexicon["pronoun"], lexicon["you"], *lexicon["ambiguous"]}
    named = {case.id for case in read_cases(corpus / "test.phenomena.tsv")}
    counts = [len(words & set(line.split())) for line in lines_of(corpus, "test.src")]
    assert {i for i, count in enumerate(counts) if count} == named and max(counts) == 1


def test_nearest_noun_is_often_wrong(default_corpus):
    lexicon = json.loads((default_corpus / "lexicon.json").read_text())
    source = lines_of(default_corpus, "test.src")
    cases = [case for case in read_cases(default_corpus / "test.phenomena.tsv") if case.kind == "pronoun"]
    right = 0
    for case in cases:
        nouns = [s[0] for s in context_of(source, case.id) if s[0] in lexicon["nouns"]]
        right += lexicon["pronoun_forms"][lexicon["genders"][nouns[-1]]] == case.right
    assert right / len(cases) < 0.65


def test_distances_are_even(default_corpus):
    cases = read_cases(default_corpus / "test.phenomena.tsv")
    for kind in KINDS:
        counts = Counter(case.distance for case in cases if case.kind == kind)
        assert sorted(counts) == list(range(1, 13))
        assert chisquare(list(counts.values())).pvalue > 0.01
    assert len(cases) / 60 > 17


def test_distances_are_even_in_documents_of_one_paragraph(tmp_path):
    kinds = ("pronoun", "ambiguous")
    sizes = {"train_documents": 40, "valid_documents": 1, "test_documents": 40, "nouns": 9, "fillers": 10}
    write_corpus(SynthOptions(kinds=kinds, max_distance=30, sentences_per_document=(34, 40), **sizes), tmp_path)
    cases = read_cases(tmp_path / "test.phenomena.tsv")
    assert "<p>" not in lines_of(tmp_path, "test.src")
    for kind in kinds:
        counts = Counter(case.distance for case in cases if case.kind == kind)
        assert sorted(counts) == list(range(1, 31))
        assert chisquare(list(counts.values())).pvalue > 0.01


def test_sentence_does_not_determine_the_answer(corpus):
    """A naive Bayes classifier on the words and the length of the sentence does not exceed the ceiling."""
    lexicon = json.loads((corpus / "lexicon.json").read_text())
    ceiling = json.loads((corpus / "test.ceiling.json").read_text())["kinds"]["pronoun"]
    source, target = lines_of(corpus, "train.src"), lines_of(corpus, "train.tgt")
    forms = list(lexicon["pronoun_forms"].values())
    seen = {form: Counter() for form in forms}

    def features(line):
        return [*line.split(), str(len(line.split()))]

    for line, translation in zip(source, target):
        if lexicon["pronoun"] in line.split():
            form = translation.split()[0]
            seen[form].update(features(line))
    cases = [case for case in read_cases(corpus / "test.phenomena.tsv") if case.kind == "pronoun"]
    test_source = lines_of(corpus, "test.src")
    right = 0
    for case in cases:
        score = {form: 1.0 for form in forms}
        for feature in features(test_source[case.id]):
            for form in forms:
                score[form] *= (seen[form][feature] + 1) / (sum(s[feature] for s in seen.values()) + 3)
        right += max(score, key=score.get) == case.right
    assert right / len(cases) <= ceiling["upper_bound"]


def test_ceiling_is_chance(corpus):
    ceiling = json.loads((corpus / "test.ceiling.json").read_text())
    lexicon = json.loads((corpus / "lexicon.json").read_text())
    shares = ceiling["source_words"]
    assert shares[lexicon["pronoun"]] == pytest.approx(1 / 3, abs=0.07)
    assert shares[lexicon["you"]] == pytest.approx(1 / 2, abs=0.07)
    for word, senses in lexicon["ambiguous"].items():
        assert shares[word] == pytest.approx(1 / len(set(senses.values())), abs=0.12)
    for figures in [*ceiling["kinds"].values(), ceiling["overall"]]:
        assert figures["accuracy"] < figures["upper_bound"] < 0.85
        assert figures["independent_draws"] <= 60


def test_contrastive_items_differ_in_one_word(corpus):
    items = json.loads((corpus / "test.contrastive.json").read_text())
    cases = read_cases(corpus / "test.phenomena.tsv")
    source, target = lines_of(corpus, "test.src"), lines_of(corpus, "test.tgt")
    assert [item["id"] for item in items] == [case.id for case in cases]
    assert len({item["true_ind"] for item in items}) > 1
    for item, case in zip(items, cases):
        sentences = item["src"].split(" _eos ")
        before = [line for line in context_of(source, case.id) if line != ["<p>"]]
        assert sentences[-1] == source[case.id]
        assert len(sentences) > case.distance == item["ctx_dist"]
        assert len(sentences) >= min(4, len(before) + 1)
        assert len(item["dst"]) == len(set(item["dst"])) == 1 + len(case.wrong)
        assert item["dst"][item["true_ind"]].split(" _eos ")[-1] == target[case.id]
        changed = {text.split(" _eos ")[-1].split()[case.position] for text in item["dst"]}
        assert changed == {case.right, *case.wrong}
        assert len({tuple(text.split(" _eos ")[:-1]) for text in item["dst"]}) == 1
