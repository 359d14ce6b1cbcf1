import pytest

from docnmt_fairseq.corpus.dictionaries import dictionary_from_model, dictionary_from_text
from docnmt_fairseq.corpus.subwords import SubwordOptions, load_subword_model, subword_encoder, train_subword_model
from docnmt_fairseq.corpus.transform import transform_file
from docnmt_fairseq.errors import InputError

TEXT = (
    "\n".join(["the cat sat on the mat", "<p>", "a dog saw the other cat", "", "the dog sat on a log", ""] * 4) + "\n"
)


@pytest.fixture(params=["unigram", "bpe"])
def options(request):
    return SubwordOptions(request.param, vocab_size=26, character_coverage=1.0)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "train.en"
    path.write_text(TEXT)
    return path


def test_training_is_repeatable_and_marks_bypass_the_model(tmp_path, text, options):
    for name in ("one", "two"):
        train_subword_model([text], tmp_path / name, options)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    transform_file(text, tmp_path / "out", subword_encoder(tmp_path / "one", workers=2))
    lines = (tmp_path / "out").read_text().split("\n")
    assert [line for line in lines if line in ("", "<p>")] == [line for line in TEXT.split("\n") if line in ("", "<p>")]
    decoded = [line.replace(" ", "").replace("▁", " ").strip() for line in lines]
    assert "\n".join(decoded) == TEXT


@pytest.mark.parametrize(
    "size, message",
    [
        (10**5, r"--vocab-size 100000 is too large .*at most \d+$"),
        *((n, rf"--vocab-size {n} .*at least \d+") for n in (1, 5)),
    ],
)
def test_vocabulary_that_does_not_suit_the_text(tmp_path, text, options, size, message):
    unsuitable = SubwordOptions(options.kind, vocab_size=size)
    with pytest.raises(InputError, match=message) as error:
        train_subword_model([text], tmp_path / "model", unsuitable)
    assert not (tmp_path / "model").exists()
    limit = int(str(error.value).split("at most ")[1]) if size > 100 else None
    if limit:
        train_subword_model([text], tmp_path / "model", SubwordOptions(options.kind, vocab_size=limit))


def test_outputs_of_before_byte_fallback_are_still_theirs():
    assert "byte_fallback" not in SubwordOptions().as_inputs()
    assert SubwordOptions(byte_fallback=True).as_inputs()["byte_fallback"]


@pytest.mark.parametrize("kind", ["subword-nmt", "none"])
def test_only_sentencepiece_falls_back_to_bytes(kind):
    assert SubwordOptions(kind, byte_fallback=True).problems() == [
        f"--byte-fallback: of SentencePiece's pieces, not of --subwords {kind}; leave it out"
    ]


def test_text_of_lines_that_are_too_long(tmp_path, options):
    (tmp_path / "long").write_text("a word " * 3000 + "\n")
    with pytest.raises(InputError, match=r"within 16,384 bytes.*: give a sentence a line"):
        train_subword_model([tmp_path / "long"], tmp_path / "model", options)


def test_dictionary_from_model(tmp_path, text, options):
    from fairseq.data import Dictionary

    train_subword_model([text], tmp_path / "model", options)
    size = dictionary_from_model(tmp_path / "model", tmp_path / "dict")
    dictionary = Dictionary.load(str(tmp_path / "dict"))
    processor = load_subword_model(tmp_path / "model")
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    assert dictionary.symbols[4:] == [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]
    assert "<p>" in dictionary and len(dictionary) == size == 26 + 1  # four specials instead of three


def test_dictionary_from_a_foreign_model(tmp_path, text):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "m"), vocab_size=26, pad_id=3, minloglevel=2
    )
    dictionary_from_model(tmp_path / "m.model", tmp_path / "dict")
    symbols = [line.split()[0] for line in (tmp_path / "dict").read_text().splitlines()]
    assert symbols[-1] == "<p>" and len(symbols) == 26 - 4 + 1 and "<pad>" not in symbols


def test_dictionary_from_text(tmp_path, text):
    (tmp_path / "train.de").write_text("die Katze\n\n")
    assert dictionary_from_text([text], tmp_path / "dict") == 4 + 10 + 1
    assert (tmp_path / "dict").read_text().startswith("the 16\n")
    assert dictionary_from_text([text, tmp_path / "train.de"], tmp_path / "dict") == 4 + 12 + 1
    dictionary_from_text([tmp_path / "train.de"], tmp_path / "dict", min_count=2)
    assert (tmp_path / "dict").read_text() == "<p> 1\n"


def test_not_a_model(tmp_path, text):
    for path in (text, tmp_path / "none"):
        with pytest.raises(InputError, match="not a SentencePiece model"):
            subword_encoder(path)
