"""``docnmt prepare`` from corpora to data-bins: files, manifest, cached steps, reuse, extra sides, bad options."""

import importlib.util
import json
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq.corpus import prepare as module
from docnmt_fairseq.corpus.config import PrepareConfig, config_of
from docnmt_fairseq.corpus.edits import apply_operations
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.subwords import RELEASED
from docnmt_fairseq.errors import InputError
from tests.support import toy
from tests.support.reading import write

TRAIN = "the cat sat .\nIt was big .\n<p>\nwe saw the cat .\n\nthe dog saw us .\n\n\nso the dog sat .\n"
TEST = "the cat sat .\n<p>\na dog &amp; a <p> .\nit sat .\n<p>\n\nwe sat .\n"
WMT = """<dataset><doc id="d"><src lang="en"><p><seg id="1">the cat .</seg></p><p><seg id="2">it sat .</seg></p></src>
<ref lang="de"><p><seg id="1">the dog .</seg></p><p><seg id="2">it was .</seg></p></ref></doc></dataset>"""


def write_corpus(folder):
    for name, text in (("train", TRAIN), ("test", TEST)):
        target = text.upper().replace("<P>", "<p>")
        for side, content in (("en", text), ("de", target), ("mt", target.replace("SAW", "WAS"))):
            (folder / f"{name}.{side}").write_text(content)
        (folder / f"{name}.gloss").write_text(text.replace("o", "0"))
    (folder / "wmt.xml").write_text(WMT)


def config(folder, **options):
    given = {"train": str(folder / "train"), "test": [str(folder / "test")], "subwords": "bpe", "vocab_size": 60}
    return PrepareConfig("en", "de", **{**given, "output": folder / "out", "character_coverage": 1.0, **options})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Returns a corpus folder with a complete output, which tests must not change, and its manifest."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder, prepare(config(folder, tokenizer="moses", truecase=True, workers=2))


def times(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def changed_parts(folder, before):
    after = times(folder)
    return {Path(path).relative_to(folder).parts[0] for path in after if before.get(path) != after[path]}


def test_stages_of_the_text(finished):
    folder, _ = finished
    read = {stage: (folder / "out" / stage / "test.en").read_text() for stage in ("text", "tokenized")}
    assert read["text"] == TEST.replace("<p>\n\n", "\n") + "\n"
    assert read["tokenized"] == read["text"].replace("a <p>", "a < p >").replace("&amp;", "& amp ;")
    assert "\nIt was big" in (folder / "out" / "truecased" / "train.en").read_text()


def test_manifest(finished):
    folder, manifest = finished
    assert json.loads((folder / "out" / "manifest.json").read_text()) == manifest
    train = manifest["counts"]["train"]
    expected = {"documents": 3, "paragraphs": 4, "sentences": 5, "longest_document": 3, "dropped_pairs": 0}
    assert train.items() >= expected.items() and train["words"] == {"en": 23, "de": 23}
    items = MMapIndexedDataset(str(folder / "out" / "data-bin" / "train.en-de.de"))
    lines = (folder / "out" / "subword" / "train.de").read_text().split("\n")[:-1]
    assert sum(items.sizes) == train["subword_tokens"]["de"] + len(lines) + lines.count("<p>")
    assert manifest["inputs"]["test"][1]["path"] == str(folder / "test.de")
    assert {"docnmt_fairseq", "sentencepiece", "torch", "python"} <= manifest["versions"].keys()
    assert manifest["options"]["tokenizer"] == "moses" and "workers" not in manifest["options"]


def test_second_run_changes_nothing(finished, monkeypatch):
    folder, manifest = finished
    monkeypatch.setattr(module, "write_data_bin", None)
    before = times(folder / "out")
    assert prepare(config(folder, tokenizer="moses", truecase=True, workers=1)) == manifest
    assert changed_parts(folder / "out", before) == {"manifest.json"}


def test_changed_option_or_input_reruns_the_later_steps(tmp_path):
    write_corpus(tmp_path)
    out = tmp_path / "out"
    prepare(config(tmp_path))
    before = times(out)
    prepare(config(tmp_path, vocab_size=50))
    assert changed_parts(out, before) == {"models", "subword", "data-bin", ".stamps", "manifest.json"}
    before = times(out)
    (tmp_path / "test.en").write_text(TEST.replace("cat", "dog"))
    prepare(config(tmp_path, vocab_size=50))
    assert changed_parts(out, before) == {"text", "subword", "data-bin", ".stamps", "manifest.json"}
    assert times(out)[str(out / "subword" / "train.en")] == before[str(out / "subword" / "train.en")]


def test_reuse_for_a_new_test_set(finished, tmp_path):
    folder, first = finished
    write_corpus(tmp_path)
    options = {"test": [[str(tmp_path / "wmt.xml")]], "test_format": "wmt-xml", "reuse": folder / "out"}
    manifest = prepare(PrepareConfig("en", "de", tmp_path / "out", **options))
    assert manifest["models"] == first["models"] and list(manifest["counts"]) == ["test"]
    assert (tmp_path / "out" / "truecased" / "test.en").read_text() == "the cat .\n<p>\nit sat .\n\n"


@pytest.mark.skipif(importlib.util.find_spec("jieba") is None, reason="jieba is not installed")
def test_chinese_english_talks(tmp_path):
    tags = "<url>u</url>\n<talkid>{talk}</talkid>\n<title>Not a sentence</title>\n{text}"
    refset = '<refset><doc docid="{talk}"><seg id="1">{first}</seg>\n<seg id="2">{second}</seg></doc></refset>'
    train = {
        "zh": ["我们看见了北京。\n他在北京。\n", "她问我：“你在哪里？”\n"],
        "en": ["We saw Beijing.\nHe is in Beijing.\n", 'She asked me, "where are you?"\n'],
    }
    test = []
    for language, texts in train.items():
        talks = (tags.format(talk=talk, text=text) for talk, text in enumerate(texts, start=1))
        write(tmp_path, f"train.tags.zh-en.{language}", "".join(talks))
        first, second = ("北京很大。", "他知道。") if language == "zh" else ("Beijing is Big.", "Do you know NATO?")
        test.append(str(write(tmp_path, f"{language}.xml", refset.format(talk=3, first=first, second=second))))
    manifest = prepare(PrepareConfig(
        "zh", "en", tmp_path / "out", train=str(tmp_path / "train.tags.zh-en"), train_format="ted-tags",
        test=[[*test, "+", *test]], test_format="ted-xml", source_tokenizer="jieba", target_tokenizer="moses",
        truecase=True, subwords="bpe", vocab_size=45, joint=False, character_coverage=1.0,
    ))  # fmt: skip
    out = tmp_path / "out"
    assert {split: counts["documents"] for split, counts in manifest["counts"].items()} == {"train": 2, "test": 2}
    tokens = "我们 看见 了 北京 。\n他 在 北京 。\n\n她 问 我 ： “ 你 在 哪里 ？ ”\n\n"
    assert (out / "tokenized" / "train.zh").read_text() == tokens
    assert (out / "truecased" / "test.zh").read_text() == (out / "tokenized" / "test.zh").read_text()
    assert (out / "truecased" / "test.en").read_text() == "Beijing is Big .\nDo you know NATO ?\n\n" * 2
    assert {file.name for file in out.glob("models/truecaser.*")} == {"truecaser.en"}


def test_renamed_table_is_read_again(tmp_path):
    table = write(tmp_path, "nc.de-en.tsv", "the cat\tdie Katze\n\nit sat\tsie sass\n")
    options = {"format": "news-commentary", "subwords": "none"}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(table), **options))
    renamed = table.rename(tmp_path / "nc.en-de.tsv")  # the name determines the order of the columns
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(renamed), **options))
    assert (tmp_path / "out" / "text" / "train.en").read_text() == "the cat\n\nit sat\n\n"


def test_reader_options_and_dropped_pairs(tmp_path):
    table = write(tmp_path, "t.tsv", "id\tde\ten\na\tA\ta\na\t\tb\nc\tC\tc\n")
    given = {"train": [str(table)], "format": "tsv", "subwords": "none"}
    given["reader_options"] = {"columns": ("en", "de", "id"), "header": True}
    with pytest.raises(InputError, match=r"t\.tsv:3: .*--on-empty drop"):
        prepare(PrepareConfig("en", "de", tmp_path / "out", **given))
    manifest = prepare(PrepareConfig("en", "de", tmp_path / "out", on_empty="drop", **given))
    assert manifest["options"]["columns"] == ["en", "de", "id"] and manifest["counts"]["train"]["dropped_pairs"] == 1
    assert (tmp_path / "out" / "text" / "train.de").read_text() == "A\n\nC\n\n"


@pytest.mark.parametrize(("source", "target"), [("a\nb\n", "A\n"), ("\n", "\n")], ids=["lines", "no sentence"])
def test_bad_input_leaves_no_finished_step(tmp_path, source, target):
    write_corpus(tmp_path)
    (tmp_path / "train.en").write_text(source)
    (tmp_path / "train.de").write_text(target)
    with pytest.raises(InputError):
        prepare(config(tmp_path))
    assert not (tmp_path / "out" / "manifest.json").exists() and not list(tmp_path.glob("out/.stamps/*"))


# --- Extra sides and edit operations ---


@pytest.fixture(scope="module")
def with_extra_sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extra")
    write_corpus(folder)
    options = {"extra": ("mt=like-target", "gloss=own"), "joint": False, "tokenizer": "moses", "truecase": True}
    return folder, prepare(config(folder, vocab_size=40, **options))


def test_extra_sides_in_a_task(with_extra_sides):
    folder, _ = with_extra_sides
    options = ["-s", "en", "-t", "de", "--extra-sources", "text:mt,text:gloss"]
    _, task, _ = toy.build(folder / "out" / "data-bin", *options)
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[number] for number in range(len(dataset))])
    for suffix, source in zip(("mt", "gloss"), batch["net_input"]["extra_sources"]):
        lines = (folder / "out" / "subword" / f"test.{suffix}").read_text().split("\n")[:-1]
        dictionary = task.extra_data.dictionary(suffix)
        known = [" ".join(word if word in dictionary else "<unk>" for word in line.split()) for line in lines]
        for line, tokens in zip(batch["id"].tolist(), source.values.split(source.lengths.tolist())):
            assert dictionary.string(tokens) == known[line]


def test_edit_operations_as_targets(tmp_path):
    write_corpus(tmp_path)
    out = tmp_path / "out"
    manifest = prepare(config(tmp_path, extra=("mt=like-target",), edits_of="mt"))
    operations = (out / "edits" / "test.de").read_text().splitlines()
    for line, translation, edited in zip(
        operations, *((out / "subword" / f"test.{side}").read_text().splitlines() for side in ("mt", "de"))
    ):
        if line not in ("", "<p>"):
            assert apply_operations(translation.split(), line.split()) == edited.split()
    words = [len(line.split()) for line in operations if line != "<p>"]
    assert manifest["counts"]["test"]["subword_tokens"]["de"] == sum(words)
    dictionary = Dictionary.load(str(out / "data-bin" / "dict.de.txt"))
    assert {"<keep>", "<delete>"} <= {*dictionary.symbols}


# --- Options ---

BAD_OPTIONS = [
    ({"train": None, "test": []}, "nothing to prepare"),
    ({"train": None}, "--train is required"),
    ({"tokenizer": "mose", "vocab_size": 0, "character_coverage": 0.9}, "--tokenizer.*--vocab-size.*--character-cov"),
    ({"subwords": RELEASED[0]}, "--subwords"),
    ({"subword_model": ["a", "b"]}, "--subword-model"),
    ({"source_tokenizer": "jieba"}, "--source-tokenizer jieba"),
    ({"output": "a", "reuse": "b/../a"}, "--reuse"),
    ({"extra": ["mt=both"]}, "--extra mt=both"),
    ({"edits_of": "de", "extra": ["mt=like-target"]}, "--edits-of de"),
    ({"edits_of": "en", "truecase": True}, "--edits-of en"),
    ({"edits_of": "mt", "extra": ["mt=own"]}, "--edits-of mt"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=str)
def test_bad_options(tmp_path, options, message):
    write_corpus(tmp_path)
    with pytest.raises(InputError, match=message):
        prepare(PrepareConfig(**{**vars(config(tmp_path)), **options}))
    assert not (tmp_path / "out").exists()


def test_options_by_name():
    names = {"source_lang": "en", "target_lang": "de", "output": "out", "columns": ["a", "b"]}
    found = config_of(names)
    assert found.reader_options == {"columns": ["a", "b"]} and found.output == "out"


@pytest.mark.parametrize(
    ("word", "options", "remedies"),
    [
        ("می\u200cخواهم", {}, ["--normalization nfkc"]),
        ("می\u200cخواهم", {"normalization": "nfkc"}, []),
        ("می\u200cخواهم", {"subwords": "none", "tokenizer": "moses"}, ["--tokenizer none"]),
        ("ශ්\u200dරී", {}, []),
    ],
)
def test_non_joiners_that_models_drop(tmp_path, caplog, word, options, remedies):
    write_corpus(tmp_path)
    for name in ("train", "test"):
        path = tmp_path / f"{name}.de"
        path.write_text(path.read_text().replace("THE", word), encoding="utf-8")
    prepare(config(tmp_path, **options))
    assert [message.split("; ")[-1] for message in caplog.messages if "U+200C" in message] == [
        f"{remedy} keeps them" for remedy in remedies
    ]
