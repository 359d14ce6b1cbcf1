"""Models of fairseq's own tasks in folders as they are released."""

import json
import shutil

import torch
from fairseq import checkpoint_utils

from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from tests.support import toy
from tests.support.preprocess import fairseq_preprocess
from tests.support.pretrained import ENGLISH, GERMAN, train_sentencepiece
from tests.support.toy import TINY


def binarise(folder):
    """Writes a data-bin of SentencePiece pieces, one sentence per line; returns the folder."""
    processor = train_sentencepiece(folder / "spm.model", ENGLISH + GERMAN, 80)
    for side, lines in (("en", ENGLISH), ("de", GERMAN)):
        text = "".join(" ".join(processor.encode(line, out_type=str)) + "\n" for line in lines)
        (folder / f"train.{side}").write_text(text, encoding="utf-8")
    arguments = ["-s", "en", "-t", "de", "--trainpref", str(folder / "train"), "--testpref", str(folder / "train")]
    arguments += ["--destdir", str(folder / "bin"), "--joined-dictionary", "--padding-factor", "1"]
    fairseq_preprocess(arguments)
    return folder


def released(binarised, folder, *options, task="translation", arch="transformer", updates="3"):
    """Trains with a task of fairseq; returns the folder of a release."""
    settings = ["--max-update", updates, "--source-lang", "en", "--target-lang", "de"]
    if task == "translation_multi_simple_epoch":
        settings = ["--max-update", updates, "--lang-pairs", "en-de", "--sampling-method", "concat"]
    toy.train(binarised / "bin", folder / "saved", *settings, *options, task=task, arch=arch, tiny=TINY)
    place = folder / "released"
    place.mkdir()
    for name in ("spm.model", "bin/dict.en.txt", "bin/dict.de.txt"):
        shutil.copy(binarised / name, place)
    shutil.copy(folder / "saved" / "checkpoint_last.pt", place / "model.pt")
    return place


def logits_of_fairseq(path, data_bin, **overrides):
    """Returns the model and its task as loaded by fairseq."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(path)], arg_overrides={"data": str(data_bin), **overrides}
    )
    return model.eval(), task


def codec_of(folder):
    return TextCodec.of_output(folder / "imported")


def tokens(codec, source, target, dictionaries):
    return [token_ids(codec.encode(side, [line]), one)[0]
            for side, (line, one) in enumerate(zip((source, target), dictionaries))]  # fmt: skip


@torch.no_grad()
def log_probabilities(model, source, target):
    previous = torch.cat([torch.tensor([2]), target[:-1]])[None]
    return model(source[None], torch.tensor([len(source)]), previous)[0][0].log_softmax(-1)


def tokens_of(folder):
    """Returns the language tokens of an imported model."""
    options = json.loads((folder / "manifest.json").read_text())["options"]
    return options["source_lang_token"], options["target_lang_token"]
