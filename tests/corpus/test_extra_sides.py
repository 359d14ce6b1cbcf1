"""Extra sides of a corpus, from delimited text to the data-bin."""

import shutil

import pytest

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.errors import InputError
from tests.support import toy

SOURCE = "the cat sat .\nit was big .\n<p>\nwe saw the cat .\n\nthe dog saw us .\n\nso the dog sat .\n"


def write_corpus(folder):
    for name in ("train", "test"):
        (folder / f"{name}.en").write_text(SOURCE)
        (folder / f"{name}.de").write_text(SOURCE.upper().replace("<P>", "<p>"))
        (folder / f"{name}.mt").write_text(SOURCE.upper().replace("<P>", "<p>").replace("SAW", "WAS"))
        (folder / f"{name}.gloss").write_text(SOURCE.replace("o", "0"))


def config(folder, extra=("mt=like-target", "gloss=own"), **options):
    given = {"train": str(folder / "train"), "test": [str(folder / "test")], "subwords": "bpe", "vocab_size": 40}
    given = {**given, "output": folder / "out", "character_coverage": 1.0, "extra": extra, **options}
    return PrepareConfig("en", "de", **given)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Returns a corpus folder with a finished output; not to be changed."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder, prepare(config(folder, joint=False, tokenizer="moses", truecase=True))


def test_the_task_reads_what_prepare_wrote(finished):
    folder, manifest = finished
    options = ["-s", "en", "-t", "de", "--extra-sources", "text:mt,text:gloss"]
    _, task, _ = toy.build(folder / "out" / "data-bin", *options)
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[number] for number in range(len(dataset))])
    for suffix, source in zip(("mt", "gloss"), batch["net_input"]["extra_sources"]):
        lines = (folder / "out" / "subword" / f"test.{suffix}").read_text().split("\n")[:-1]
        dictionary = task.extra_data.dictionary(suffix)
        found = source.values.split(source.lengths.tolist())
        for line, tokens in zip(batch["id"].tolist(), found):
            assert dictionary.string(tokens) == lines[line]
        assert len(found) == 5 and manifest["counts"]["test"]["words"][suffix] == 23
    assert {path.name for path in (folder / "out" / "data-bin").glob("dict.*")} == {
        f"dict.{side}.txt" for side in ("en", "de", "mt", "gloss")
    }


def test_models_are_those_of_the_named_side(finished):
    models = finished[1]["models"]
    assert models["dict.mt.txt"] == models["dict.de.txt"] != models["dict.gloss.txt"]
    assert {"subword.gloss.model", "truecaser.gloss"} <= models.keys()
    assert not {"subword.mt.model", "truecaser.mt"} & models.keys()


def test_a_second_run_does_nothing(finished, monkeypatch):
    folder, manifest = finished
    monkeypatch.setattr("docnmt_fairseq.corpus.shards.binarise", None)
    assert prepare(config(folder, joint=False, tokenizer="moses", truecase=True)) == manifest


def test_reuse_brings_the_sides_along(finished, tmp_path):
    folder, first = finished
    write_corpus(tmp_path)
    test = [str(tmp_path / "test")]
    manifest = prepare(PrepareConfig("en", "de", tmp_path / "out", test=test, reuse=folder / "out"))
    assert manifest["models"] == first["models"]
    assert (tmp_path / "out" / "subword" / "test.gloss").is_file()


@pytest.mark.parametrize("subwords", ["bpe", "none"])
def test_joint_models_serve_sides_like_either(tmp_path, subwords):
    write_corpus(tmp_path)
    options = {"subwords": subwords, "extra": ("mt", "gloss=like-target")}
    models = prepare(config(tmp_path, **options))["models"]
    assert len({models[f"dict.{side}.txt"] for side in ("en", "de", "mt", "gloss")}) == 1
    text = (tmp_path / "out" / "models" / "dict.mt.txt").read_text()
    assert "0" not in {line.split()[0] for line in text.splitlines()}  # nothing is learnt from extra text
    shutil.rmtree(tmp_path / "out")
    own = prepare(config(tmp_path, **{**options, "extra": ("gloss=own",)}))["models"]
    assert own["dict.gloss.txt"] != own["dict.en.txt"] == models["dict.en.txt"]


def test_a_side_that_gets_the_models_of_another_is_split_anew(tmp_path):
    write_corpus(tmp_path)
    found = []
    for output, models in (("out", "like-source"), ("out", "like-target"), ("anew", "like-target")):
        prepare(config(tmp_path, (f"mt={models}",), joint=False, output=tmp_path / output))
        files = ("subword/train.mt", "data-bin/train.en-de.mt.bin")
        found.append([(tmp_path / output / file).read_bytes() for file in files])
    assert found[0] != found[1] == found[2]


def test_marks_on_other_lines_are_refused_by_file_and_line(tmp_path):
    write_corpus(tmp_path)
    (tmp_path / "train.mt").write_text(SOURCE.replace("<p>\n", "so .\n"))
    with pytest.raises(InputError, match=r"train\.en:3: <p> here, but not in .*train\.mt"):
        prepare(config(tmp_path))


def test_empty_sides_are_dropped_with_their_sentence(tmp_path):
    write_corpus(tmp_path)
    (tmp_path / "train.mt").write_text(SOURCE.replace("it was big .", ""))
    counts = prepare(config(tmp_path, on_empty="drop"))["counts"]["train"]
    assert (counts["dropped_pairs"], counts["sentences"]) == (1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra": ["mt=both"]}, "--extra mt=both: must be one of like-source, like-target, own"),
        ({"extra": ["de"]}, "--extra de: another side has that name"),
        ({"extra": ["mt", "mt=own"]}, "--extra mt: another side"),
        ({"extra": ["=own"]}, "--extra =own: must be SUFFIX"),
        ({"extra": ["none"]}, r"train\.none: no such file"),
        ({"train": ["train.en", "train.de"]}, "--extra mt: needs .* a PREFIX or one file a side"),
        ({"format": "d-lines", "train": ["train.en", "train.de"]}, "--extra mt: needs format delimited or wmt-ape"),
    ],
)
def test_bad_options(tmp_path, options, message):
    write_corpus(tmp_path)
    if isinstance(options.get("train"), list):
        options = {**options, "train": [str(tmp_path / name) for name in options["train"]]}
    with pytest.raises(InputError, match=message):
        prepare(config(tmp_path, **options))
