"""Models that are trained here, exported, and loaded by Hugging Face's transformers."""

import shutil

from docnmt_fairseq.corpus.prepare import PrepareConfig, prepare
from tests.support import toy
from tests.support.documents import write_lines
from tests.support.pair import Pair, assert_same_encoder_states, assert_same_log_probabilities, assert_same_translations
from tests.support.pretrained import ENGLISH, GERMAN, transformers

PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
STOCK = {"task": "translation", "arch": "transformer"}


def made(folder, **options):
    for side, lines in (("en", ENGLISH), ("de", GERMAN)):
        write_lines(folder / f"train.{side}", [*lines, ""] * 4)
    prefix = str(folder / "train")
    fixed = dict(tokenizer="none", truecase=False)
    prepare(PrepareConfig(
        "en", "de", train=prefix, valid=[prefix], test=[prefix], output=folder / "data", **{**fixed, **options},
    ))  # fmt: skip
    return folder / "data"


def trained(data, folder, *options, updates=100, **kind):
    """Trains a model; returns a folder with data and checkpoint, in the layout of docnmt import."""
    shutil.copytree(data, folder / "model")
    fixed = ["-s", "en", "-t", "de", "--max-update", str(updates), "--lr", "0.02", "--max-tokens", "300"]
    path = toy.train(data / "data-bin", folder / "trained", *fixed, *options, **kind)
    shutil.copyfile(path, folder / "model" / "checkpoint.pt")
    return folder / "model"


def loaded(folder):
    """Returns model and tokenizer of an exported folder, which has all tensors."""
    model, about = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    missing = {name for name in about["missing_keys"] if "embed_positions" not in name}
    assert not missing and not about["unexpected_keys"] and not about["mismatched_keys"]
    tokenizer = folder / "tokenizer_config.json"
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder) if tokenizer.is_file() else None


def pair_of(hub, data):
    """Returns the pair of an exported folder and the model in ``data``."""
    model, tokenizer = loaded(hub)
    generation = model.generation_config
    return Pair(model, tokenizer, data, generation.decoder_start_token_id, generation.forced_bos_token_id)


def assert_same(pair, translated=True):
    """Asserts equal symbols, states, probabilities and translations."""
    for side, lines in ((0, ENGLISH), (1, GERMAN)):
        ours, theirs = pair.symbols(side, lines)
        assert ours == theirs
    assert_same_encoder_states(pair)
    assert_same_log_probabilities(pair)
    if translated:
        assert_same_translations(pair.hypotheses(ENGLISH))
