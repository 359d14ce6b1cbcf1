"""BPE codes: merges made as their list says, files of both kinds that released models bring."""

import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE

from docnmt_fairseq.corpus.bpe_codes import bpe_encoder
from docnmt_fairseq.corpus.config import PrepareConfig, config_of
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.subwords import SubwordOptions, subword_encoder, train_subword_model
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError

WORDS = "lower lowest newer newest wider widest low new wide aa aaa aaaa banana bandana ß öö".split()  # noqa: SIM905


def learnt(words, merges):
    """Merges learnt from words, the most frequent pair first (algorithm 1 of the paper)."""
    texts = Counter(tuple([*word[:-1], word[-1] + "</w>"]) for word in words)
    found = []
    for _ in range(merges):
        pairs = Counter()
        for symbols, count in texts.items():
            for pair in pairwise(symbols):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        found.append(best)
        texts = Counter({merged(symbols, best): count for symbols, count in texts.items()})
    return found


def merged(symbols, pair):
    """The symbols with one pair merged wherever it stands, from the left."""
    result = list(symbols)
    place = 0
    while place < len(result) - 1:
        if (result[place], result[place + 1]) == pair:
            result[place : place + 2] = ["".join(pair)]
        place += 1
    return tuple(result)


def oracle(word, merges):
    """All merges in the order of their list, each once: what was learnt later needs what was learnt before."""
    symbols = tuple([*word[:-1], word[-1] + "</w>"])
    for pair in merges:
        symbols = merged(symbols, pair)
    return "@@ ".join(symbols).replace("</w>", "")


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """The merges, and their file as subword-nmt writes it."""
    merges = learnt(WORDS, 15)
    path = tmp_path_factory.mktemp("codes") / "bpecodes"
    path.write_text("#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges), encoding="utf-8")
    return merges, path


@given(st.lists(st.text("lowernstidabö", min_size=1, max_size=9), min_size=1, max_size=5))
def test_words_are_split_as_the_merges_say(codes, words):
    merges, path = codes
    (pieces,) = bpe_encoder(path)([" ".join(words)])
    assert pieces == " ".join(oracle(word, merges) for word in words)


def test_pieces_join_to_the_words(codes):
    (pieces,) = bpe_encoder(codes[1])([" ".join(WORDS)])
    assert "@@" in pieces and (pieces + " ").replace("@@ ", "").split() == WORDS


def test_files_with_counts_are_the_same(codes, tmp_path):
    """fastBPE's: no version, a count behind each merge."""
    merges, path = codes
    counted = tmp_path / "codes"
    counted.write_text("".join(f"{left} {right} 7\n" for left, right in merges), encoding="utf-8")
    assert bpe_encoder(counted)([" ".join(WORDS)]) == bpe_encoder(path)([" ".join(WORDS)])


def test_a_merge_that_comes_twice_has_its_first_rank(tmp_path):
    path = tmp_path / "codes"
    path.write_text("#version: 0.2\na b\nb c</w>\na b\n")
    assert bpe_encoder(path)(["abc"]) == ["ab@@ c"]


def test_symbols_that_are_white_space_are_symbols(tmp_path):
    """subword-nmt takes a no-break space for a part of a word."""
    path = tmp_path / "codes"
    path.write_text("#version: 0.2\n\u00a0 b</w>\n1 \u00a0\na b</w>\n", encoding="utf-8")
    assert bpe_encoder(path)(["ab cab"]) == ["ab c@@ ab"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#version: 0.1\na b</w>\n", "codes:1: .*only version 0.2"),
        ("a b</w>\nthree of these words\n", "codes:2: not a merge"),
        ("a b</w>\na  b\n", "codes:2: not a merge"),  # an empty symbol between two spaces
        ("a b\n", "no merge at the end of a word"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "codes").write_text(text)
    with pytest.raises(InputError, match=message):
        bpe_encoder(tmp_path / "codes")


LINES = ["lower lowest", "<p>", "newer newest", "<p>", "wider widest", "<p>", "low wide ß", "", "lower newer", ""] * 3


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "train.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def test_learnt_merges_are_those_of_the_library_and_of_the_paper(tmp_path, text):
    options = SubwordOptions("subword-nmt", vocab_size=20)
    for name in ("one", "two"):
        train_subword_model([text], tmp_path / name, options)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    found = [tuple(line.split()) for line in (tmp_path / "one").read_text(encoding="utf-8").splitlines()[1:]]
    words = [word for line in LINES if line != "<p>" for word in line.split()]  # marks are no words
    assert found == learnt(words, 20) != learnt([*words, *["<p>"] * LINES.count("<p>")], 20)
    with open(tmp_path / "one", encoding="utf-8") as stream:
        library = BPE(stream)
    sentences = ["lower widest unknown newness", "ß l"]
    assert subword_encoder(tmp_path / "one", kind="subword-nmt")(sentences) == list(
        map(library.process_line, sentences)
    )


def test_text_of_single_characters_has_nothing_to_merge(tmp_path):
    (tmp_path / "train.en").write_text("a b\n\n")
    with pytest.raises(InputError, match="no word of the training text has two characters"):
        train_subword_model([tmp_path / "train.en"], tmp_path / "codes", SubwordOptions("subword-nmt"))
    assert not (tmp_path / "codes").exists()


def test_without_the_library_the_remedy_is_said(tmp_path, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "subword_nmt", None)
    with pytest.raises(InputError, match=r"docnmt_fairseq\[bpe\]"):
        train_subword_model([text], tmp_path / "codes", SubwordOptions("subword-nmt"))
    options = {"source_lang": "en", "target_lang": "de", "output": tmp_path, "subwords": "subword-nmt"}
    with pytest.raises(InputError, match=r"docnmt_fairseq\[bpe\]"):  # before anything is read
        PrepareConfig(train="x", **options).check()
    PrepareConfig(train="x", subword_model=["codes"], **options).check()


@pytest.mark.parametrize("joint", [True, False])
def test_prepare_learns_merges_and_undoes_them(tmp_path, text, joint):
    (tmp_path / "train.de").write_text(text.read_text(encoding="utf-8").replace("low", "nied"), encoding="utf-8")
    settings = {"train": [str(tmp_path / "train")], "valid": [[str(tmp_path / "train")]], "subwords": "subword-nmt"}
    output = tmp_path / "out"
    prepare(
        config_of(
            {"source_lang": "en", "target_lang": "de", "output": output, "vocab_size": 12, "joint": joint, **settings}
        )
    )
    pieces = (output / "subword" / "train.de").read_text(encoding="utf-8").splitlines()
    assert [line.replace("@@ ", "") for line in pieces] == (tmp_path / "train.de").read_text(
        encoding="utf-8"
    ).splitlines()
    assert any("@@ " in line for line in pieces)
    known = {line.split()[0] for line in (output / "models" / "dict.de.txt").read_text(encoding="utf-8").splitlines()}
    assert {piece for line in pieces for piece in line.split()} <= known
    codec = TextCodec(output)
    written = (tmp_path / "train.de").read_text(encoding="utf-8").splitlines()
    assert codec.encode(1, written[:1]) == pieces[:1]
    assert codec.decode(codec.encode(1, ["nieder newest"])[0]) == "nieder newest"
    models = ["subword.model"] if joint else ["subword.de.model", "subword.en.model"]
    assert sorted(path.name for path in (output / "models").glob("subword*")) == models
    again = {**settings, "subword_model": [str(output / "models" / name) for name in sorted(models, reverse=True)]}
    prepare(
        config_of({"source_lang": "en", "target_lang": "de", "output": tmp_path / "again", "joint": joint, **again})
    )
    assert (tmp_path / "again" / "subword" / "train.de").read_text(encoding="utf-8").splitlines() == pieces
