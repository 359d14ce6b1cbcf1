"""What options of ``docnmt prepare`` come to, and which do not go together, before anything is read."""

import pytest

from docnmt_fairseq.corpus.config import SAMPLED, PrepareConfig, config_of
from docnmt_fairseq.corpus.subwords import MERGES, RELEASED, SubwordOptions
from docnmt_fairseq.errors import InputError


def config(**options):
    return PrepareConfig(**{"source_lang": "en", "target_lang": "de", "output": "out", "train": "t", **options})


def problems(**options):
    """Returns what is said, or an empty text."""
    try:
        config(**options).check()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("options", "formats"),
    [
        ({}, ["delimited"]),
        ({"valid_format": "tsv", "test_format": "jsonl"}, ["delimited"]),  # of no files
        ({"valid": ["v"], "valid_format": "tsv", "test": ["x", "y"]}, ["delimited", "tsv"]),
        ({"train": None, "format": "tsv", "test": ["x"], "test_format": "jsonl"}, ["jsonl"]),
    ],
    ids=str,
)
def test_formats_are_those_of_the_files_that_are_given(options, formats):
    assert config(**options).formats == formats


@pytest.mark.parametrize(
    ("options", "documents"),
    [
        ({}, 0),
        ({"shards": 2}, SAMPLED),
        ({"shards": 2, "sample_documents": 5}, 5),
        ({"sample_documents": 5}, 5),
        ({"shards": 2, "reuse": "earlier"}, 0),
        ({"shards": 2, "train": None, "valid": ["v"]}, 0),
    ],
    ids=str,
)
def test_models_are_learnt_from_a_sample_of_many_shards(options, documents):
    found = config(**options)
    assert found.sampled == documents and found.learnt_from == ("sample" if documents else "train")


def test_every_side_has_its_own():
    found = config(tokenizer="moses", source_tokenizer="none", extra=["mt=own", "pe=like-source"],
                   source_lang_token="__en__", target_lang_token="__de__")  # fmt: skip
    assert [side.tokenizer for side in found.sides] == ["none", "moses", "moses", "none"]
    assert found.language_tokens == {"en": "__en__", "de": "__de__"}


def test_subwords_are_trained_as_asked_for():
    options = dict(vocab_size=50, character_coverage=0.99, normalization="identity", seed=3, byte_fallback=True)
    assert config(subwords="bpe", **options).subword_options == SubwordOptions("bpe", **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output": ""}, "--output and --reuse: an empty name"),
        ({"reuse": ""}, "--output and --reuse: an empty name"),
        ({"output": __file__}, r"--output \S+: is not a folder"),
        ({"output": "a", "reuse": "b/../a"}, "--reuse and --output must be different folders"),
        ({"train": None, "valid": ["v"], "sample_documents": 3, "reuse": "x"}, "--sample-documents: of --train, which"),
        ({"train": None, "valid": ["v"], "subword_model": ["m"], "truecase": True}, "--train is needed"),
        ({"normalization": "x"}, "--normalization: one of"),
        ({"subwords": "wordpiece", "reuse": "x"}, "--subwords must be one of"),
        ({"subwords": RELEASED[0]}, "--subwords must be one of"),
        ({"subword_model": ["a", "b", "c"], "joint": False}, "--subword-model takes one joint model, or two"),
        ({"subword_model": ["a"], "subwords": "none"}, "--subword-model cannot go with --subwords none"),
        ({"subword_model": ["a"], "joint": False}, "--subword-model: one file for joint"),
        ({"target_tokenizer": "mose"}, "--tokenizer must be one of none"),
        ({"reader_options": {"columns": ["a", "b"]}}, "--columns: is no option of format delimited"),
        ({"edits_of": "de", "extra": ["mt=like-target"]}, "--edits-of de: must be .* one of en, mt$"),
    ],
    ids=str,
)
def test_what_does_not_go_together(options, told):
    with pytest.raises(InputError, match=told):
        config(**options).check()


@pytest.mark.parametrize(
    "options",
    [
        {"sample_documents": 1, "workers": 1, "shards": 2},
        {"train": None, "test": ["t"], "reuse": "x", "truecase": True},
        {"train": None, "test": ["t"], "reuse": "x", "subwords": RELEASED[0]},
        {"train": None, "valid": ["v"], "subword_model": ["m"]},
        {"joint": False, "subword_model": ["a", "b"]},
        {"joint": False},
        {"valid": ["v"], "valid_format": "tsv", "reader_options": {"columns": ["a", "b"]}},
        {"source_lang": "ZH", "source_tokenizer": "jieba"},
        {"edits_of": "mt", "extra": ["mt"], "source_lang": "en"},
        {"edits_of": "mt", "extra": ["mt"], "joint": False, "subwords": "none"},
        {"edits_of": "mt", "extra": ["mt=like-target"], "joint": False, "truecase": True},
    ],
    ids=str,
)
def test_what_goes_together(options):
    if options.get("source_tokenizer") == "jieba":
        pytest.importorskip("jieba")
    assert not problems(**options)


def test_the_library_of_merges_is_needed_where_they_are_learnt(monkeypatch):
    monkeypatch.setattr("docnmt_fairseq.corpus.bpe_codes.missing_library", lambda: "it")
    assert problems(subwords=MERGES) == f"--subwords {MERGES}: run pip install 'it'"
    others = ({"subwords": MERGES, "reuse": "x"}, {"subwords": MERGES, "subword_model": ["m"]}, {"subwords": "bpe"})
    assert not any(problems(**options) for options in others)


def test_options_by_name_go_to_formats_or_to_the_rest():
    names = {"source_lang": "en", "target_lang": "de", "output": "out", "columns": ["a", "b"]}
    found = config_of(names)
    assert found.reader_options == {"columns": ["a", "b"]} and found.output == "out"
    with pytest.raises(InputError, match="no such option of docnmt prepare: colums, reader_options"):
        config_of({**names, "colums": 1, "reader_options": {}})


def test_what_the_result_depends_on_is_json():
    found = config(extra=("mt",), reader_options={"columns": ("a", "b")}, workers=7, reuse="x").as_options()
    assert found["extra"] == ["mt"] and found["columns"] == ["a", "b"] and found["vocab_size"]
    assert not {"workers", "reuse", "output", "train", "valid", "test", "subword_model"} & found.keys()
