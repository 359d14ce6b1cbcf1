"""A model of two sources and edit operations, through prepare, fairseq's commands and postprocess."""

import random

import pytest

from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.evaluation.postprocess import read_text_as_translation, read_translation
from docnmt_fairseq.evaluation.scores import human_targeted_error_rate
from tests.support import toy
from tests.support.documents import write_lines

SIZES = ["--encoder-embed-dim", "32", "--decoder-embed-dim", "32", "--encoder-layers", "1", "--decoder-layers", "1"]
SIZES += ["--encoder-normalize-before", "--decoder-normalize-before", "--dropout", "0"]
TRAINING = ["--max-update", "300", "--max-tokens", "1000", "--no-epoch-checkpoints", "--warmup-updates", "50"]
TRAINING += ["--lr-scheduler", "inverse_sqrt", "--share-decoder-input-output-embed", "--lr", "0.005"]
TRAINING += ["--extra-sources", "text:mt", "--attention-combination", "flat"]


def write_corpus(folder):
    """Writes sentences in which the translation has t0 for t1 and t2; only the source tells them apart."""
    chance = random.Random(1)
    for split, size in (("train", 2500), ("test", 40)):
        words = [chance.choices(range(1, 6), k=chance.randint(2, 4)) for _ in range(size)]
        write_lines(folder / f"{split}.src", (" ".join(f"s{i}" for i in one) for one in words))
        write_lines(folder / f"{split}.pe", (" ".join(f"t{i}" for i in one) for one in words))
        write_lines(folder / f"{split}.mt", (" ".join(f"t{0 if i < 3 else i}" for i in one) for one in words))


@pytest.mark.slow
def test_the_source_decides_what_the_translation_leaves_open(tmp_path):
    write_corpus(tmp_path)
    data, log = tmp_path / "data", tmp_path / "generate.log"
    prepare(
        PrepareConfig(
            "en", "de", data, train=str(tmp_path / "train"), test=[str(tmp_path / "test")], format="wmt-ape",
            subwords="none", joint=False, extra=["mt=like-target"], edits_of="mt",
        )
    )  # fmt: skip
    checkpoint = toy.train(data / "data-bin", tmp_path, *TRAINING, tiny=SIZES)
    log.write_text(toy.generate_text(data / "data-bin", checkpoint, "--beam", "2"), encoding="utf-8")
    before, after = read_text_as_translation(data, "test", "mt"), read_translation(data, "test", log)
    rates = [human_targeted_error_rate(found.tokens, found.reference_tokens).hter for found in (before, after)]
    # Without the source, half of what is wrong can be guessed.
    assert rates[0] > 30 and rates[1] < 0.4 * rates[0]
