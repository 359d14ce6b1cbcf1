"""A model of edit operations, through prepare, fairseq's commands and postprocess, mends what can be mended."""

import random

import pytest

from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.evaluation.hter import human_targeted_error_rate
from docnmt_fairseq.evaluation.postprocess import read_text_as_translation, read_translation
from tests import toy
from tests.conftest import write_lines

WORDS = [f"w{i}" for i in range(12)]
SIZES = ["--encoder-embed-dim", "32", "--decoder-embed-dim", "32", "--encoder-layers", "1", "--decoder-layers", "1"]
SIZES += ["--encoder-normalize-before", "--decoder-normalize-before", "--dropout", "0"]


def write_corpus(folder):
    """Writes post-edits, and translations in which one word of each is doubled and w0 stands for w1."""
    chance = random.Random(1)
    for split, size in (("train", 3000), ("test", 40)):
        edited = [chance.choices(WORDS[1:], k=chance.randint(3, 6)) for _ in range(size)]
        translated = []
        for words in edited:
            place = chance.randrange(len(words))
            translated.append(["w0" if word == "w1" else word for word in [*words[: place + 1], *words[place:]]])
        write_lines(folder / f"{split}.mt", map(" ".join, translated))
        write_lines(folder / f"{split}.pe", map(" ".join, edited))


@pytest.mark.slow
def test_systematic_mistakes_are_mended(tmp_path):
    write_corpus(tmp_path)
    data = tmp_path / "data"
    files = {split: [str(tmp_path / f"{split}.{side}") for side in ("mt", "pe")] for split in ("train", "test")}
    options = {"format": "wmt-ape", "subwords": "none", "edits_of": "mt"}
    prepare(PrepareConfig("mt", "pe", data, train=files["train"], test=[files["test"]], **options))
    training = ["--max-update", "250", "--max-tokens", "1000", "--no-epoch-checkpoints", "--warmup-updates", "50"]
    training += ["--lr-scheduler", "inverse_sqrt", "--share-all-embeddings", "--lr", "0.005"]
    checkpoint = toy.train(data / "data-bin", tmp_path, *training, arch="document_transformer_tiny", tiny=SIZES)
    log = tmp_path / "generate.log"
    log.write_text(toy.generate_text(data / "data-bin", checkpoint, "--beam", "2"), encoding="utf-8")
    before, after = read_text_as_translation(data, "test", "mt"), read_translation(data, "test", log)
    rates = [human_targeted_error_rate(found.tokens, found.reference_tokens).hter for found in (before, after)]
    assert rates[0] > 20 and rates[1] < 0.75 * rates[0]
