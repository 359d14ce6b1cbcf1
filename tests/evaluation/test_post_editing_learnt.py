"""Post-editing model with two sources and edit operations, from prepare to postprocess."""

import random

import pytest

from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from docnmt_fairseq.evaluation.postprocess import human_targeted_error_rate, read_text_as_translation, read_translation
from tests.support import toy
from tests.support.documents import write_lines

SIZES = ["--encoder-embed-dim", "32", "--decoder-embed-dim", "32", "--encoder-layers", "1", "--decoder-layers", "1"]
SIZES += ["--encoder-normalize-before", "--decoder-normalize-before", "--dropout", "0"]
TRAINING = ["--max-update", "240", "--max-tokens", "1000", "--no-epoch-checkpoints", "--warmup-updates", "50"]
TRAINING += ["--lr-scheduler", "inverse_sqrt", "--share-decoder-input-output-embed", "--lr", "0.005"]
TRAINING += ["--save-interval", "1000"]  # at the end only
TRAINING += ["--extra-sources", "text:mt", "--attention-combination", "flat"]


def write_corpus(folder):
    """Writes sentences whose translation has t0 for t1 and t2, so that the source is needed to correct them."""
    chance = random.Random(1)
    for split, size in (("train", 2500), ("test", 40)):
        words = [chance.choices(range(1, 6), k=chance.randint(2, 4)) for _ in range(size)]
        write_lines(folder / f"{split}.src", (" ".join(f"s{i}" for i in one) for one in words))
        write_lines(folder / f"{split}.pe", (" ".join(f"t{i}" for i in one) for one in words))
        write_lines(folder / f"{split}.mt", (" ".join(f"t{0 if i < 3 else i}" for i in one) for one in words))


@pytest.mark.slow
def test_source_resolves_ambiguous_translation(tmp_path):
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
    rates = [human_targeted_error_rate(found.tokens, found.reference_tokens).score for found in (before, after)]
    # Guessing without the source corrects half of the errors.
    assert rates[0] > 30 and rates[1] < 0.4 * rates[0]
