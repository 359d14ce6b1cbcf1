"""``prepare`` from native formats, as for a recipe of Chinese-English talks."""

import importlib.util

import pytest

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.errors import InputError
from tests.support.reading import write

needs_jieba = pytest.mark.skipif(importlib.util.find_spec("jieba") is None, reason="jieba is not installed")
TAGS = "<url>u</url>\n<talkid>{talk}</talkid>\n<title>Not a sentence</title>\n{text}"
TEST = '<refset><doc docid="{talk}"><seg id="1">{first}</seg>\n<seg id="2">{second}</seg></doc></refset>'
TRAIN = {
    "zh": ["我们看见了北京。\n他在北京。\n", "她问我：“你在哪里？”\n"],
    "en": ["We saw Beijing.\nHe is in Beijing.\n", 'She asked me, "where are you?"\n'],
}


def talks(folder):
    for language, texts in TRAIN.items():
        content = "".join(TAGS.format(talk=talk, text=text) for talk, text in enumerate(texts, start=1))
        write(folder, f"train.tags.zh-en.{language}", content)
        for year, talk in (("2010", 3), ("2011", 4)):
            first, second = ("北京很大。", "他知道。") if language == "zh" else ("Beijing is Big.", "Do you know NATO?")
            write(folder, f"tst{year}.{language}.xml", TEST.format(talk=talk, first=first, second=second))
    tests = [str(folder / f"tst{year}.{language}.xml") for year in ("2010", "2011") for language in ("zh", "en")]
    return PrepareConfig(
        "zh", "en", folder / "out", train=str(folder / "train.tags.zh-en"), train_format="ted-tags",
        test=[[*tests[:2], "+", *tests[2:]]], test_format="ted-xml", source_tokenizer="jieba",
        target_tokenizer="moses", truecase=True, subwords="bpe", vocab_size=45, joint=False, character_coverage=1.0,
        workers=2,
    )  # fmt: skip


@needs_jieba
def test_chinese_english_talks(tmp_path, monkeypatch):
    config = talks(tmp_path)
    manifest = prepare(config)
    out = tmp_path / "out"
    assert {split: counts["documents"] for split, counts in manifest["counts"].items()} == {"train": 2, "test": 2}
    assert [file["path"] for file in manifest["inputs"]["test"]] == [file for file in config.test[0] if file != "+"]
    assert (out / "tokenized" / "train.zh").read_text() == (
        "我们 看见 了 北京 。\n他 在 北京 。\n\n她 问 我 ： “ 你 在 哪里 ？ ”\n\n"
    )
    assert (out / "truecased" / "test.zh").read_text() == (out / "tokenized" / "test.zh").read_text()
    assert (out / "truecased" / "test.en").read_text() == "Beijing is Big .\nDo you know NATO ?\n\n" * 2
    # The model knows the training text's words only, of the one side that has case.
    assert {file.name for file in out.glob("models/truecaser.*")} == {"truecaser.en"}
    assert "nato" not in (out / "models" / "truecaser.en").read_text().lower()
    assert {"subword.zh.model", "subword.en.model"} <= manifest["models"].keys()
    assert (out / "data-bin" / "test.zh-en.zh.bin").stat().st_size > 0

    monkeypatch.setattr("docnmt_fairseq.corpus.shards.binarise", None)
    assert prepare(config) == manifest


def test_films_in_a_folder_are_inputs(tmp_path):
    group = '<linkGrp fromDoc="de/1.xml.gz" toDoc="en/1.xml.gz"><link xtargets="1;1" /></linkGrp>'
    alignment = write(tmp_path, "de-en.xml", f"<cesAlign>{group}</cesAlign>")
    for language in ("de", "en"):
        (tmp_path / language).mkdir()
        write(tmp_path / language, "1.xml", f'<document><s id="1">text in {language}</s></document>')
    files = [str(alignment), str(tmp_path / "en"), str(tmp_path / "de")]
    config = PrepareConfig("en", "de", tmp_path / "out", train=files, format="opus-xml", subwords="none")
    first = prepare(config)["inputs"]["train"]
    assert (tmp_path / "out" / "text" / "train.en").read_text() == "text in en\n\n"
    write(tmp_path / "en", "1.xml", '<document><s id="1">another text</s></document>')
    second = prepare(config)["inputs"]["train"]
    assert (tmp_path / "out" / "text" / "train.en").read_text() == "another text\n\n"
    assert second[1]["size"] == (tmp_path / "en" / "1.xml").stat().st_size
    assert [one["sha256"] == two["sha256"] for one, two in zip(first, second)] == [True, False, True]


def test_table_with_its_columns(tmp_path):
    table = write(tmp_path, "t.tsv", "id\tde\ten\na\tA\ta\na\t\tb\nc\tC\tc\n")
    given = {"train": [str(table)], "format": "tsv", "subwords": "none"}
    given["reader_options"] = {"columns": ("en", "de", "id"), "header": True}
    with pytest.raises(InputError, match=r"t\.tsv:3: .*--on-empty drop"):
        prepare(PrepareConfig("en", "de", tmp_path / "out", **given))
    manifest = prepare(PrepareConfig("en", "de", tmp_path / "out", on_empty="drop", **given))
    assert manifest["options"]["columns"] == ["en", "de", "id"] and manifest["counts"]["train"]["dropped_pairs"] == 1
    assert (tmp_path / "out" / "text" / "train.de").read_text() == "A\n\nC\n\n"


def test_halves_of_characters_are_left_out(tmp_path):
    rows = '{"en": ["a \\ud83d", "\\ude00 b"], "de": ["A", "\\ud83d\\ude00"]}\n'
    path = write(tmp_path, "x.jsonl", rows)
    options = dict(train_format="jsonl", tokenizer="none", truecase=False, subwords="none", workers=1)
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(path), **options))
    texts = [(tmp_path / "out" / "text" / f"train.{side}").read_text(encoding="utf-8") for side in ("en", "de")]
    assert texts == ["a\nb\n\n", "A\n\U0001f600\n\n"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tokenizer": "jieba"}, "--target-tokenizer jieba: splits Chinese, not en"),
        ({"source_tokenizer": "mose"}, "--tokenizer must be one of none, moses, moses-escaped, jieba"),
        ({"train": ["a", "+"]}, r"a \+: \+ stands between corpora"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        prepare(PrepareConfig("zh", "en", tmp_path / "out", **{"train": "nowhere", **options}))


def test_jieba_is_missed_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="--source-tokenizer jieba: needs the package jieba; run pip install jieba"):
        prepare(PrepareConfig("zh", "en", tmp_path / "out", train="nowhere", source_tokenizer="jieba"))


def test_a_table_that_gets_another_name_is_read_anew(tmp_path):
    table = write(tmp_path, "nc.de-en.tsv", "the cat\tdie Katze\n\nit sat\tsie sass\n")
    options = {"format": "news-commentary", "subwords": "none"}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(table), **options))
    renamed = table.rename(tmp_path / "nc.en-de.tsv")  # its columns were the other way round
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(renamed), **options))
    assert (tmp_path / "out" / "text" / "train.en").read_text() == "the cat\n\nit sat\n\n"
