"""Artificial corpora: only context decides the undecidable words, at evenly distributed distances."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from scipy.stats import chisquare

from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.synth import KINDS, SynthOptions, read_cases, write_corpus
from docnmt_fairseq.errors import InputError

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


TINY = SynthOptions(
    train_documents=40, valid_documents=2, test_documents=3, max_distance=6, sentences_per_document=(16, 20)
)


def test_seed_determines_every_file(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_corpus(replace(TINY, seed=seed), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert [p.name for p in sorted((tmp_path / "b").iterdir())] == files
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)
    assert not any((tmp_path / "a" / f).read_bytes() == (tmp_path / "c" / f).read_bytes() for f in files)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"sentences_per_document": (10, 20)}, "--sentences-per-document 10 20: from 14"),
        ({"kinds": ("gender",)}, "--kinds gender"),
        ({"source_lang": "phenomena.tsv"}, "--source-lang"),  # would overwrite the table
        ({"max_distance": 1}, "leave pronouns out of --kinds"),
    ],
)
def test_impossible_options(change, named):
    with pytest.raises(InputError, match=named):
        replace(TINY, **change)


def test_command_prints_a_summary_and_writes_all_files(tmp_path, capsys):
    arguments = (
        "--seed 5 --train-documents 60 --valid-documents 2 --test-documents 2 --max-distance 4 --introductions 3"
    )
    more = "--sentences-per-document 12 14 --source-lang en --target-lang de --kinds pronoun formality"
    assert main(["synth", "--output", str(tmp_path / "x"), *arguments.split(), *more.split()]) == 0
    printed = capsys.readouterr().out
    assert "train: 60 documents" in printed and "overall" in printed and "ambiguous" not in printed
    assert {path.name for path in (tmp_path / "x").iterdir()} == {
        *(f"{split}.{lang}" for split in ("train", "valid", "test") for lang in ("en", "de")),
        *(f"{split}.{kind}" for split in ("valid", "test") for kind in ("ceiling.json", "contrastive.json")),
        *(f"{split}.phenomena.tsv" for split in ("valid", "test")),
        "lexicon.json",
    }


def test_lexicon_exists_only_in_complete_corpora(tmp_path):
    write_corpus(TINY, tmp_path)
    with pytest.raises(InputError):
        write_corpus(replace(TINY, train_documents=1, ambiguous_words=12), tmp_path)
    assert (tmp_path / "train.src").exists() and not (tmp_path / "lexicon.json").exists()
