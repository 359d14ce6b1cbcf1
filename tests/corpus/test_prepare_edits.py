"""Targets as edit operations: what docnmt prepare makes of them, and docnmt postprocess of a model's."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.edits import apply_operations
from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.corpus.text_codec import decoder, encoder
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import read_translation
from tests.support.documents import write_lines

TRANSLATED = ["the dog sleep .", "it is is black .", "", "we see <keep> the dog .", ""]
EDITED = ["the dog sleeps .", "it is black .", "", "we saw <keep> the cat .", ""]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "test"):
        write_lines(folder / f"{split}.mt", TRANSLATED * (3 if split == "train" else 1))
        write_lines(folder / f"{split}.pe", EDITED * (3 if split == "train" else 1))
    return folder


def config(folder, output, **options):
    files = {"train": str(folder / "train"), "test": [str(folder / "test")]}
    kind = {"subwords": "bpe", "vocab_size": 50, "character_coverage": 1.0}
    return PrepareConfig("mt", "pe", output, **files, **{**kind, "edits_of": "mt", **options})


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("options", [{}, {"subwords": "none", "joint": False}], ids=["subwords", "words"])
def test_operations_are_binarised_and_a_models_are_applied(corpus, tmp_path, options):
    from fairseq.data import Dictionary

    manifest = prepare(config(corpus, tmp_path, **options))
    assert manifest["options"]["edits_of"] == "mt"
    operations, translated = lines(tmp_path / "edits" / "test.pe"), lines(tmp_path / "subword" / "test.mt")
    assert [apply_operations(mt.split(), ops.split()) for mt, ops in zip(translated, operations)] == [
        line.split() for line in lines(tmp_path / "subword" / "test.pe")
    ]
    assert manifest["counts"]["test"]["subword_tokens"]["pe"] == sum(len(line.split()) for line in operations)
    dictionary = Dictionary.load(str(tmp_path / "data-bin" / "dict.pe.txt"))
    assert {"<keep>", "<delete>"} <= {*dictionary.symbols}
    log = tmp_path / "generate.log"
    write_lines(log, [f"H-{i}\t-0.5\t{line}" for i, line in enumerate(operations) if line])
    found = read_translation(tmp_path, "test", log)
    assert found.text == found.tokens == found.reference_text == EDITED
    write_lines(log, [f"H-{i}\t-0.5\t<delete>" for i, line in enumerate(operations) if line])
    assert read_translation(tmp_path, "test", log).tokens[-2] == "see <keep> the dog ."


def test_scores_of_the_translation_itself(corpus, tmp_path, capsys):
    data = tmp_path / "data"
    prepare(config(corpus, data, subwords="none"))
    log, output = tmp_path / "generate.log", tmp_path / "out"
    write_lines(log, [f"H-{i}\t-0.5\t" for i, line in enumerate(TRANSLATED) if line])
    assert cli.main(["postprocess", "--data", str(data), "--log", str(log), "--output", str(output)]) == 0
    assert lines(output) == TRANSLATED
    assert f"HTER over tokens: {100 * 4 / 14:.2f} (" in capsys.readouterr().out


def test_operations_joined_as_subwords_are_named(corpus, tmp_path):
    folder = tmp_path
    write_lines(folder / "manifest.json", [json.dumps({"options": config(corpus, "").as_options()})])
    (folder / "text").mkdir()
    (folder / "subword").mkdir()
    for stage in ("text", "subword"):
        write_lines(folder / stage / "test.mt", TRANSLATED)
    log = folder / "log"
    write_lines(log, [f"H-{i}\t-0.5\t<keep><keep>" for i, line in enumerate(TRANSLATED) if line])
    with pytest.raises(InputError, match="generate without --remove-bpe"):
        read_translation(folder, "test", log)


@pytest.mark.parametrize("codec", [lambda options: decoder(options), lambda options: encoder(Path("x"), options, 1)])
def test_operations_are_not_taken_for_text(corpus, codec):
    with pytest.raises(InputError, match="the targets of this data are edit operations on its mt side"):
        codec(config(corpus, "").as_options())


SPLIT_ALIKE = "--edits-of mt: must be split into words and subwords as the target is"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edits_of": "pe"}, "--edits-of pe: must be the side with machine translations, one of mt"),
        ({"truecase": True}, SPLIT_ALIKE),
        ({"joint": False}, SPLIT_ALIKE),
        ({"target_tokenizer": "moses"}, SPLIT_ALIKE),
        ({"source_lang": "en", "extra": ["mt=own"]}, SPLIT_ALIKE),
        ({"source_lang": "en", "extra": ["mt"], "joint": False}, SPLIT_ALIKE),
    ],
)
def test_bad_options(corpus, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        replace(config(corpus, tmp_path), **options).check()


@pytest.mark.parametrize("options", [{"extra": ["mt=like-target"], "truecase": True}, {"extra": ["mt"]}])
def test_operations_on_a_extra_side(corpus, tmp_path, options):
    replace(config(corpus, tmp_path), source_lang="en", **options).check()
