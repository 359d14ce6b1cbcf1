"""End to end, from corpora to a data-bin."""

import json
import shutil
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from docnmt_fairseq.corpus import binarise
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.shares import Held
from docnmt_fairseq.corpus.splits import Split, at_least_one
from docnmt_fairseq.errors import InputError

TRAIN = "the cat sat .\nIt was big .\n<p>\nwe saw the cat .\n\nthe dog saw us .\n\n\nso the dog sat .\n"
TEST = "the cat sat .\n<p>\na dog &amp; a <p> .\nit sat .\n<p>\n\nwe sat .\n"
WMT = """<dataset><doc id="d"><src lang="en"><p><seg id="1">the cat .</seg></p><p><seg id="2">it sat .</seg></p></src>
<ref lang="de"><p><seg id="1">the dog .</seg></p><p><seg id="2">it was .</seg></p></ref></doc></dataset>"""


def write_corpus(folder):
    for name, text in (("train", TRAIN), ("test", TEST)):
        (folder / f"{name}.en").write_text(text)
        (folder / f"{name}.de").write_text(text.upper().replace("<P>", "<p>"))
    (folder / "wmt.xml").write_text(WMT)


def config(folder, **options):
    given = {"train": str(folder / "train"), "test": [str(folder / "test")], "subwords": "bpe", "vocab_size": 60}
    given = {**given, "output": folder / "out", "character_coverage": 1.0, **options}
    return PrepareConfig("en", "de", **given)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Returns a corpus folder with a finished output; not to be changed."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    manifest = prepare(config(folder, tokenizer="moses", truecase=True, workers=3))
    return folder, manifest


@pytest.fixture
def runs(monkeypatch):
    """What data-bins were made of."""
    runs = []

    def counted(target, dictionaries, splits, tokens):
        runs.append({name: text.held for name, text in splits.items()})
        return binarise.binarise(target, dictionaries, splits, tokens)

    monkeypatch.setattr("docnmt_fairseq.corpus.shards.binarise", counted)
    return runs


def times(folder):
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}


def sizes(prefix):
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dataset = MMapIndexedDataset(str(prefix))
    return [int(size) for size in dataset.sizes], [dataset[i].tolist() for i in range(len(dataset))]


def test_data_bin_holds_every_line(finished):
    folder, manifest = finished
    out = folder / "out"
    for language in ("en", "de"):
        dictionary = Dictionary.load(str(out / "data-bin" / f"dict.{language}.txt"))
        for split in ("train", "test"):
            lines = (out / "subword" / f"{split}.{language}").read_text().split("\n")[:-1]
            lengths, items = sizes(out / "data-bin" / f"{split}.en-de.{language}")
            assert lengths == [len(line.split()) + 1 for line in lines]
            known = [" ".join(word if word in dictionary else "<unk>" for word in line.split()) for line in lines]
            assert [dictionary.string(item) for item in items] == known
            assert items[lines.index("")] == [dictionary.eos()]
            assert items[lines.index("<p>")] == [
                dictionary.index("<p>"),
                dictionary.eos(),
            ]
            assert sum(lengths) == manifest["counts"][split]["subword_tokens"][language] + len(lines) + lines.count(
                "<p>"
            )


def test_text_is_normalised_delimited_text(finished):
    folder, _ = finished
    read = {stage: (folder / "out" / stage / "test.en").read_text() for stage in ("text", "tokenized", "truecased")}
    assert read["text"] == TEST.replace("<p>\n\n", "\n") + "\n"
    assert read["tokenized"] == read["text"].replace("a <p>", "a < p >").replace("&amp;", "& amp ;")
    assert "\nIt was big" in (folder / "out" / "tokenized" / "train.en").read_text()


def test_manifest(finished):
    folder, manifest = finished
    assert json.loads((folder / "out" / "manifest.json").read_text()) == manifest
    train = manifest["counts"]["train"]
    expected = {"documents": 3, "paragraphs": 4, "sentences": 5, "longest_document": 3, "dropped_pairs": 0}
    assert train.items() >= expected.items()
    assert train["words"] == {"en": 23, "de": 23}
    assert manifest["inputs"]["test"][1]["path"] == str(folder / "test.de")
    assert manifest["inputs"]["test"][1]["size"] == len(TEST)
    assert {"docnmt_fairseq", "sentencepiece", "sacremoses", "torch", "python"} <= manifest["versions"].keys()
    assert manifest["options"]["tokenizer"] == "moses"


def test_second_run_does_nothing(finished, monkeypatch):
    folder, manifest = finished
    monkeypatch.setattr("docnmt_fairseq.corpus.shards.binarise", None)
    before = times(folder / "out")
    before.pop(str(folder / "out" / "manifest.json"))
    assert prepare(config(folder, tokenizer="moses", truecase=True, workers=1)) == manifest
    after = times(folder / "out")
    after.pop(str(folder / "out" / "manifest.json"))
    assert after == before


def test_reuse_for_a_new_test_set(finished, tmp_path, runs):
    folder, first = finished
    write_corpus(tmp_path)
    test = [[str(tmp_path / "wmt.xml")]]
    manifest = prepare(
        PrepareConfig("en", "de", tmp_path / "out", test=test, test_format="wmt-xml", reuse=folder / "out")
    )
    assert manifest["models"] == first["models"]
    assert (tmp_path / "out" / "truecased" / "test.en").read_text() == "the cat .\n<p>\nit sat .\n\n"
    assert list(manifest["counts"]) == ["test"]
    assert runs == [{"test": Held(lines=4, documents=1)}]


def test_reuse_of_another_pair_or_of_nothing(finished, tmp_path):
    folder, _ = finished
    test = [str(folder / "test")]
    with pytest.raises(InputError, match="was made for en-de, not de-en"):
        prepare(PrepareConfig("de", "en", tmp_path / "out", test=test, reuse=folder / "out"))
    with pytest.raises(InputError, match=r"no manifest\.json"):
        prepare(PrepareConfig("en", "de", tmp_path / "out", test=test, reuse=tmp_path))


def test_changed_option_redoes_that_step_and_the_later_ones(tmp_path, runs):
    write_corpus(tmp_path)
    prepare(config(tmp_path))
    before = times(tmp_path / "out")
    prepare(config(tmp_path, vocab_size=50))
    changed = {
        Path(path).relative_to(tmp_path / "out").parts[0]
        for path, time in times(tmp_path / "out").items()
        if before[path] != time
    }
    assert changed == {"models", "subword", "data-bin", ".stamps", "manifest.json"}
    assert len(runs) == 2


def test_changed_input_redoes(tmp_path, runs):
    write_corpus(tmp_path)
    prepare(config(tmp_path))
    before = times(tmp_path / "out")
    (tmp_path / "test.en").write_text(TEST.replace("cat", "dog"))
    prepare(config(tmp_path))
    changed = {path for path, time in times(tmp_path / "out").items() if before[path] != time}
    assert str(tmp_path / "out" / "subword" / "test.en") in changed
    assert not [path for path in changed if "subword/train" in path or "models" in path]
    assert len(runs) == 2


def test_killed_run_goes_on(tmp_path, runs):
    write_corpus(tmp_path)
    manifest = prepare(config(tmp_path))
    out = tmp_path / "out"
    (out / ".stamps" / "subword.train.json").unlink()
    (out / "subword" / "train.en").replace(out / "subword" / "train.en.partial")
    (out / "manifest.json").unlink()
    before = times(out)
    assert prepare(config(tmp_path)) == manifest
    after = times(out)
    assert str(out / "subword" / "train.en") in after and not list(out.rglob("*.partial"))
    assert after[str(out / "subword" / "test.en")] == before[str(out / "subword" / "test.en")]


def test_bad_input_leaves_no_finished_file(tmp_path):
    write_corpus(tmp_path)
    (tmp_path / "train.de").write_text("A\n")
    with pytest.raises(InputError, match=r"train\.en:2: .*unequal line counts"):
        prepare(config(tmp_path))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    (tmp_path / "train.en").write_text("\n")
    (tmp_path / "train.de").write_text("\n")
    with pytest.raises(InputError, match=r"train\.en: no sentence in it \(--train\)"):
        prepare(config(tmp_path))


def test_a_further_test_set_without_sentences_is_named_by_its_option():
    split = Split("test1", "delimited", ((Path("other.en"), Path("other.de")),))
    with pytest.raises(InputError, match=r"other\.en: no sentence in it \(--test\)"):
        list(at_least_one([], split))


def test_empty_sides_are_dropped_and_counted(tmp_path, runs):
    write_corpus(tmp_path)
    (tmp_path / "test.de").write_text((tmp_path / "test.de").read_text().replace("IT SAT .", ""))
    with pytest.raises(InputError, match=r"test\.de:4: "):
        prepare(config(tmp_path))
    counts = prepare(config(tmp_path, on_empty="drop"))["counts"]["test"]
    assert (counts["dropped_pairs"], counts["sentences"], counts["documents"]) == (1, 3, 2)


def test_text_that_is_already_split(tmp_path, runs):
    write_corpus(tmp_path)
    prepare(config(tmp_path, subwords="none", joint=False))
    out = tmp_path / "out"
    assert (out / "subword" / "test.en").read_text() == (out / "text" / "test.en").read_text()
    words = {side: (out / "models" / f"dict.{side}.txt").read_text().split()[::2] for side in ("en", "de")}
    assert "cat" in words["en"] and "cat" not in words["de"] and "<p>" in words["en"] and "<p>" in words["de"]


def test_given_subword_models(finished, tmp_path, runs):
    folder, first = finished
    write_corpus(tmp_path)
    model = folder / "out" / "models" / "subword.model"
    manifest = prepare(config(tmp_path, train=None, subword_model=[model]))
    assert manifest["models"]["subword.model"] == first["models"]["subword.model"]
    shutil.rmtree(tmp_path / "out")
    manifest = prepare(config(tmp_path, train=None, subword_model=[model, model], joint=False))
    assert {"subword.en.model", "subword.de.model"} <= manifest["models"].keys()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"train": None, "test": []}, "nothing to prepare"),
        ({"train": None}, "--train is needed"),
        ({"tokenizer": "mose"}, "--tokenizer must be one of none, moses"),
        ({"on_empty": "skip"}, "--on-empty must be one of error, drop"),
        ({"vocab_size": 0}, "--vocab-size must be from 1 to 10,000,000"),
        ({"vocab_size": 10**20}, "--vocab-size must be from 1 to 10,000,000"),
        ({"seed": -1}, "--seed must be from 0 to 4,294,967,295"),
        ({"seed": 10**20}, "--seed must be from 0 to 4,294,967,295"),
        ({"character_coverage": 0.9}, "--character-coverage must be from 0.98 to 1"),
        ({"workers": 0}, "--workers must be at least 1"),
        ({"subwords": "wordpiece"}, "--subwords must be one of unigram, bpe, subword-nmt, none"),
        ({"subword_model": ["a", "b"]}, "--subword-model: one file for joint"),
        ({"format": "sgm"}, "--format sgm"),
        ({"target_lang": "en"}, "--source-lang and --target-lang must differ"),
        ({"test": ["nowhere"]}, r"nowhere\.en: no such file"),
    ],
)
def test_bad_options(tmp_path, options, message):
    write_corpus(tmp_path)
    values = {**vars(config(tmp_path)), **options}
    with pytest.raises(InputError, match=message):
        prepare(PrepareConfig(**values))
    assert not (tmp_path / "out").exists()


def test_output_that_cannot_be_made(tmp_path):
    write_corpus(tmp_path)
    with pytest.raises(InputError, match=r"--output .*cannot be written"):
        prepare(config(tmp_path, output=tmp_path / "train.en" / "out"))


def test_text_that_changed_meanwhile_is_noticed(finished, tmp_path):
    folder, _ = finished
    paths = {side: folder / "out" / "models" / f"dict.{side}.txt" for side in ("en", "de")}
    dictionaries = {side: Dictionary.load(str(path)) for side, path in paths.items()}
    files = [folder / "out" / "subword" / f"test.{side}" for side in ("en", "de")]
    text = binarise.SplitItems(Held(7, 3), lambda: binarise.items_of_files(files, list(dictionaries.values())))
    with pytest.raises(InputError, match=r"test\.en-de\.en: the text has 7 lines in 2 documents, but had 7 lines in 3"):
        binarise.binarise(tmp_path / "data-bin", dictionaries, {"test": text}, {})
    assert not list(tmp_path.iterdir())
