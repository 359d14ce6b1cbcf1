"""Data-bins against those of fairseq-preprocess, byte by byte."""

import numpy as np
import pytest

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from tests.support.documents import write_lines
from tests.support.preprocess import fairseq_preprocess

TEXT = ["the cat sat .", "It was big .", "<p>", "we saw the cat .", "", "the dog saw us .", "", "so it sat so .", ""]


def write_corpus(folder):
    unknown = [*TEXT[:5], "so ☃☃ saw x☃ .", ""]
    for split, lines in (("train", TEXT * 3), ("valid", TEXT), ("test", unknown), ("other", TEXT[5:])):
        write_lines(folder / f"{split}.en", lines)
        write_lines(folder / f"{split}.de", [line.upper().replace("<P>", "<p>") for line in lines])
        write_lines(folder / f"{split}.mt", [line.replace("saw", "was") for line in lines])


def as_fairseq_does(output, stage, side, other, joint, only_source=False):
    """Binarises a folder of tokens by fairseq's own command; returns its files."""
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
    "words": {"subwords": "none", "min_count": 4, "joint": False},
    "extra": {"subwords": "bpe", "vocab_size": 60, "extra": ("mt=own",)},
    "edits": {"subwords": "bpe", "vocab_size": 60, "extra": ("mt=like-target",), "edits_of": "mt"},
    "tokens": {"subwords": "bpe", "vocab_size": 60, "source_lang_token": "__en__", "target_lang_token": "▁the"},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_bytes_are_those_of_fairseq_preprocess(tmp_path, options):
    write_corpus(tmp_path)
    output = tmp_path / "out"
    files = {split: str(tmp_path / split) for split in ("train", "valid", "test", "other")}
    given = {"train": files["train"], "valid": [files["valid"]], "test": [files["test"], files["other"]], **options}
    config = PrepareConfig("en", "de", output, character_coverage=1.0, **given)
    prepare(config)
    stage = "edits" if config.edits_of else "subword"
    theirs = as_fairseq_does(output, stage, "en", "de", config.joint)
    if config.extra:
        own = as_fairseq_does(output, stage, "mt", "de", False, only_source=True)
        theirs.update({name.replace("mt-de.mt", "en-de.mt"): content for name, content in own.items()})
    bytes_of = {path.name: path.read_bytes() for path in (output / "data-bin").iterdir()}
    ours = {name: content for name, content in bytes_of.items() if name.endswith((".bin", ".idx", ".txt"))}
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert 3 in np.frombuffer(ours["test.en-de.en.bin"], dtype=np.uint16)  # <unk>
