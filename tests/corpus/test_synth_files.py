"""``docnmt synth``: files, options, interrupted runs."""

import json
from dataclasses import replace

import pytest

from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.synth import SynthOptions, read_cases, write_corpus
from docnmt_fairseq.corpus.synth.documents import documents
from docnmt_fairseq.errors import InputError

SMALL = SynthOptions(
    train_documents=40, valid_documents=2, test_documents=3, max_distance=6, sentences_per_document=(16, 20)
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    write_corpus(SMALL, folder)
    return folder


def test_seed_determines_every_file(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_corpus(replace(SMALL, seed=seed), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert [p.name for p in sorted((tmp_path / "b").iterdir())] == files
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)
    assert not any((tmp_path / "a" / f).read_bytes() == (tmp_path / "c" / f).read_bytes() for f in files)


def test_lexicon_does_not_depend_on_the_documents(tmp_path, corpus):
    write_corpus(replace(SMALL, train_documents=50, test_documents=1), tmp_path)
    one, other = (json.loads((folder / "lexicon.json").read_text()) for folder in (tmp_path, corpus))
    del one["options"], other["options"]
    assert one == other


@pytest.mark.parametrize(
    "change, named",
    [
        ({"sentences_per_document": (10, 20)}, "--sentences-per-document 10 20: from 14"),
        ({"nouns": 10}, "--nouns"),
        ({"verbs": 0}, "--verbs 0"),
        ({"kinds": ()}, "--kinds"),
        ({"kinds": ("gender",)}, "--kinds gender"),
        ({"target_lang": "src"}, "--target-lang src"),
        ({"source_lang": "phenomena.tsv"}, "--source-lang"),  # would overwrite the table
        ({"max_distance": 1}, "leave pronouns out of --kinds"),
        ({"min_distance": 7}, "--max-distance 6"),
    ],
)
def test_impossible_options(change, named):
    with pytest.raises(InputError, match=named):
        replace(SMALL, **change)


def test_introductions_need_room_in_the_shortest_documents():
    full = {"kinds": ("pronoun", "ambiguous"), "sentences_per_document": (16, 16), "max_distance": 12, "places": 12}
    with pytest.raises(InputError):
        replace(SMALL, introductions=9, **full)
    for seed in range(40):
        list(documents(replace(SMALL, introductions=8, seed=seed, **full), "test"))


def test_documents_without_room_for_any_word(tmp_path, capsys):
    options = ["--kinds", "ambiguous", "--max-distance", "1", "--sentences-per-document", "6", "6"]
    assert main(["synth", "--output", str(tmp_path / "x"), "--train-documents", "9", *options]) == 2
    assert "--sentences-per-document: no document has room for an undecidable word" in capsys.readouterr().err


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


def test_damaged_table(tmp_path, corpus):
    table = tmp_path / "test.phenomena.tsv"
    header, row, *_ = (corpus / "test.phenomena.tsv").read_text().split("\n")
    for line in ("1\t2", row.replace("\t", "\tx", 1)):
        table.write_text("\n".join([header, row, line]))
        with pytest.raises(InputError, match=f"{table.name}:3: "):
            read_cases(table)


def test_lexicon_exists_only_in_complete_corpora(tmp_path):
    write_corpus(SMALL, tmp_path)
    with pytest.raises(InputError):
        write_corpus(replace(SMALL, train_documents=1, ambiguous_words=12), tmp_path)
    assert (tmp_path / "train.src").exists() and not (tmp_path / "lexicon.json").exists()
