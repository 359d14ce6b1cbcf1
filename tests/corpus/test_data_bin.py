"""Data-bins: equal to those of fairseq-preprocess byte by byte; ids of pieces equal to ids of their text."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, make_builder
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.data_bin import (
    DictionaryNumbering,
    Items,
    ItemWriter,
    SentencePieceNumbering,
    dictionary_from_model,
)
from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.subwords import SubwordOptions, subword_encoder, train_subword_model
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines
from tests.support.preprocess import fairseq_preprocess

TEXT = ["the cat sat .", "It was big .", "<p>", "we saw the cat .", "", "the dog saw us .", "", "so it sat so .", ""]


def preprocessed(output, stage, side, other, joint, only_source=False):
    """Returns the files that fairseq-preprocess writes for a folder of tokens."""
    folder = output.parent / f"theirs-{side}"
    arguments = ["--source-lang", side, "--target-lang", other, "--destdir", str(folder)]
    arguments += ["--srcdict", str(output / "models" / f"dict.{side}.txt")]
    if only_source:
        arguments.append("--only-source")
    else:
        own = ["--tgtdict", str(output / "models" / f"dict.{other}.txt")]
        arguments += ["--joined-dictionary"] if joint else own
    prefixes = {kind: str(output / stage / kind) for kind in ("train", "valid", "test")}
    prefixes["test"] += f",{output / stage / 'test1'}"
    for kind, prefix in prefixes.items():
        arguments += [f"--{kind}pref", prefix]
    fairseq_preprocess(arguments)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".bin", ".idx", ".txt")}


CASES = {
    "joint": {"subwords": "bpe", "vocab_size": 60},
    "separate": {"subwords": "unigram", "vocab_size": 23, "joint": False},
    "words and extra": {"subwords": "none", "min_count": 4, "joint": False, "extra": ("mt=own",)},
    "edits": {"subwords": "bpe", "vocab_size": 60, "extra": ("mt=like-target",), "edits_of": "mt"},
    "tokens": {"subwords": "bpe", "vocab_size": 60, "source_lang_token": "__en__", "target_lang_token": "▁the"},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_bytes_equal_fairseq_preprocess(tmp_path, options):
    unknown = [*TEXT[:5], "so ☃☃ saw x☃ .", ""]
    for split, lines in (("train", TEXT * 3), ("valid", TEXT), ("test", unknown), ("other", TEXT[5:])):
        write_lines(tmp_path / f"{split}.en", lines)
        write_lines(tmp_path / f"{split}.de", [line.upper().replace("<P>", "<p>") for line in lines])
        write_lines(tmp_path / f"{split}.mt", [line.replace("saw", "was") for line in lines])
    output = tmp_path / "out"
    files = {split: str(tmp_path / split) for split in ("train", "valid", "test", "other")}
    given = {"train": files["train"], "valid": [files["valid"]], "test": [files["test"], files["other"]], **options}
    config = PrepareConfig("en", "de", output, character_coverage=1.0, **given)
    prepare(config)
    stage = "edits" if config.edits_of else "subword"
    theirs = preprocessed(output, stage, "en", "de", config.joint)
    if config.extra:
        own = preprocessed(output, stage, "mt", "de", False, only_source=True)
        theirs.update({name.replace("mt-de.mt", "en-de.mt"): content for name, content in own.items()})
    files = (path for path in (output / "data-bin").iterdir() if path.suffix in (".bin", ".idx", ".txt"))
    ours = {path.name: path.read_bytes() for path in files}
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert 3 in np.frombuffer(ours["test.en-de.en.bin"], dtype=np.uint16)  # <unk>


@pytest.mark.parametrize("symbols", [10, 65_499, 65_500, 70_000])
def test_files_equal_those_of_fairseq(tmp_path, symbols):
    lines = [[symbols - 1, 5, 2], [2], [4, 2], [7] * 9 + [2]]
    builder = make_builder(str(tmp_path / "theirs.bin"), "mmap", vocab_size=symbols)
    with ItemWriter(tmp_path / "ours", symbols) as writer:
        for block in (lines[:2], lines[2:]):
            writer.add(Items(np.concatenate(block), np.array(list(map(len, block)))))
    for line in lines:
        builder.add_item(torch.tensor(line, dtype=torch.int32))
    builder.finalize(str(tmp_path / "theirs.idx"))
    for ending in (".bin", ".idx"):
        assert (tmp_path / f"ours{ending}").read_bytes() == (tmp_path / f"theirs{ending}").read_bytes()
    assert (writer.lines, writer.tokens) == (4, 16)


def test_index_of_a_file_larger_than_2_gib(tmp_path):
    size = 2**29  # the file is sparse
    with ItemWriter(tmp_path / "large", 10) as writer:
        writer._sizes = [np.array([size, size, size, 3], dtype=np.int32)]
        writer.lines = 4
        writer._file.seek(3 * size * 2)
        writer._file.write(np.array([5, 6, 2], dtype=np.uint16).tobytes())
    index = MMapIndexedDataset.Index(str(tmp_path / "large.idx"))
    assert [index[n][0] for n in range(4)] == [0, size * 2, size * 4, size * 6] and size * 6 > 2**31


# --- Ids of pieces ---


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "text").write_text("the cat sat\nwe saw the cat\nthat hat was that\n")
    options = SubwordOptions(kind=request.param, vocab_size=18, character_coverage=1.0)
    train_subword_model([folder / "text"], folder / "model", options)
    dictionary_from_model(folder / "model", folder / "dict", ("☃☃", "q"))
    return folder / "model", Dictionary.load(str(folder / "dict"))


def by_text(model, dictionary, token, lines):
    encode = subword_encoder(model)
    return DictionaryNumbering(dictionary)(
        map_sentences(lines, lambda texts: [f"{token or ''} {tokens}" for tokens in encode(texts)])
    )


# Known and unknown characters, symbols that only the dictionary knows, boundaries inside of sentences.
PART = st.sampled_from(["the", "cat", "sat", "s", "☃", "☃☃", "q", "q<s>", "<pad>", "</s>", "<p>", "x y", "▁", "ﬀ", "é"])
SENTENCE = st.lists(PART, min_size=1, max_size=5).map(" ".join).filter(lambda line: line not in ("<p>", "▁"))
LINE = st.one_of(SENTENCE, st.sampled_from(["", "<p>"]))


@pytest.mark.parametrize("token", [None, "q", "__none__"])
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE, max_size=8))
def test_ids_of_pieces_equal_ids_of_their_text(model, token, lines):
    wanted = by_text(*model, token, lines)
    try:
        found = SentencePieceNumbering(*model, token)(lines, "x", 1)
    except InputError:
        kept = [line for line in lines if subword_encoder(model[0])([line])[0].strip() in ("", "<p>")]
        assert [line for line in kept if line not in ("", "<p>")]
        return
    assert found.sizes.tolist() == wanted.sizes.tolist() and found.tokens.tolist() == wanted.tokens.tolist()


@pytest.mark.parametrize("token", [None, "q"])
def test_sentence_without_pieces_is_an_error(model, token):
    with pytest.raises(InputError, match=r"file:12: "):
        SentencePieceNumbering(*model, token)(["the cat", "", "\u200b"], "file", 10)


# --- Language tokens ---
