"""End to end; fairseq-preprocess takes seconds a run, so that most tests share one output."""

import json
import shutil
from pathlib import Path

import pytest

from docnmt_fairseq.corpus import binarise
from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
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
def fake_preprocess(monkeypatch):
    """Stands in for fairseq-preprocess where a test is about everything before it; counts its runs."""
    runs = []

    def fake(folder, stage, languages, dictionaries, expected, *, joint, workers):
        runs.append((expected, joint))
        (folder / "data-bin").mkdir(exist_ok=True)
        (folder / "data-bin" / "dict.en.txt").write_text(str(len(runs)))

    monkeypatch.setattr("docnmt_fairseq.corpus.prepare.binarise", fake)
    return runs


def times(folder):
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}


def sizes(prefix):
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dataset = MMapIndexedDataset(str(prefix))
    return [int(size) for size in dataset.sizes], [dataset[i].tolist() for i in range(len(dataset))]


def test_data_bin_holds_every_line(finished):
    from fairseq.data import Dictionary

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
    monkeypatch.setattr(binarise.subprocess, "run", None)
    before = times(folder / "out")
    before.pop(str(folder / "out" / "manifest.json"))
    assert prepare(config(folder, tokenizer="moses", truecase=True, workers=1)) == manifest
    after = times(folder / "out")
    after.pop(str(folder / "out" / "manifest.json"))
    assert after == before


def test_reuse_for_a_new_test_set(finished, tmp_path, fake_preprocess):
    folder, first = finished
    write_corpus(tmp_path)
    test = [[str(tmp_path / "wmt.xml")]]
    manifest = prepare(
        PrepareConfig("en", "de", tmp_path / "out", test=test, test_format="wmt-xml", reuse=folder / "out")
    )
    assert manifest["models"] == first["models"]
    assert (tmp_path / "out" / "truecased" / "test.en").read_text() == "the cat .\n<p>\nit sat .\n\n"
    assert list(manifest["counts"]) == ["test"]
    ((expected, joint),) = fake_preprocess
    assert joint and expected["test"][0].items == 4 and expected["test"][0].documents == 1


def test_reuse_of_another_pair_or_of_nothing(finished, tmp_path):
    folder, _ = finished
    test = [str(folder / "test")]
    with pytest.raises(InputError, match="was made for en-de, not de-en"):
        prepare(PrepareConfig("de", "en", tmp_path / "out", test=test, reuse=folder / "out"))
    with pytest.raises(InputError, match=r"no manifest\.json"):
        prepare(PrepareConfig("en", "de", tmp_path / "out", test=test, reuse=tmp_path))


def test_changed_option_redoes_that_step_and_the_later_ones(tmp_path, fake_preprocess):
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
    assert len(fake_preprocess) == 2


def test_changed_input_redoes(tmp_path, fake_preprocess):
    write_corpus(tmp_path)
    prepare(config(tmp_path))
    before = times(tmp_path / "out")
    (tmp_path / "test.en").write_text(TEST.replace("cat", "dog"))
    prepare(config(tmp_path))
    changed = {path for path, time in times(tmp_path / "out").items() if before[path] != time}
    assert str(tmp_path / "out" / "subword" / "test.en") in changed
    assert not [path for path in changed if "train" in path or "models" in path]
    assert len(fake_preprocess) == 2


def test_killed_run_goes_on(tmp_path, fake_preprocess):
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


def test_empty_sides_are_dropped_and_counted(tmp_path, fake_preprocess):
    write_corpus(tmp_path)
    (tmp_path / "test.de").write_text((tmp_path / "test.de").read_text().replace("IT SAT .", ""))
    with pytest.raises(InputError, match=r"test\.de:4: "):
        prepare(config(tmp_path))
    counts = prepare(config(tmp_path, on_empty="drop"))["counts"]["test"]
    assert (counts["dropped_pairs"], counts["sentences"], counts["documents"]) == (1, 3, 2)


def test_text_that_is_already_split(tmp_path, fake_preprocess):
    write_corpus(tmp_path)
    prepare(config(tmp_path, subwords="none", joint=False))
    out = tmp_path / "out"
    assert (out / "subword" / "test.en").read_text() == (out / "text" / "test.en").read_text()
    words = {side: (out / "models" / f"dict.{side}.txt").read_text().split()[::2] for side in ("en", "de")}
    assert "cat" in words["en"] and "cat" not in words["de"] and "<p>" in words["en"] and "<p>" in words["de"]


def test_given_subword_models(finished, tmp_path, fake_preprocess):
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
        ({"subwords": "wordpiece"}, "--subwords must be one of unigram, bpe, none"),
        ({"workers": 0}, "--workers"),
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
    with pytest.raises(InputError, match=r"--output .*cannot be made"):
        prepare(config(tmp_path, output=tmp_path / "train.en" / "out"))


def test_failing_or_losing_preprocess_is_noticed(finished, tmp_path, monkeypatch):
    folder, _ = finished
    out = folder / "out"
    wanted = binarise.Expected(9, 3, 10**6)
    with pytest.raises(InputError, match=r"test\.en-de\.en: fairseq-preprocess wrote .* but the text holds"):
        binarise._check(out / "data-bin" / "test.en-de.en", wanted)
    shutil.copytree(out / "models", tmp_path / "models")
    dictionaries = (tmp_path / "models" / "dict.en.txt", tmp_path / "models" / "dict.de.txt")
    with pytest.raises(InputError, match=r"fairseq-preprocess failed .*subword/test"):
        binarise.binarise(
            tmp_path, "subword", ("en", "de"), dictionaries, {"test": (wanted, wanted)}, joint=True, workers=1
        )
    assert not (tmp_path / "data-bin").exists()
